// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim run SCENARIO`: scenarios are listed, shown, changed and run, and a wrong one is told
//! line by line.

use serde_json::Value;

use crate::program::{Files, smt};

/// A small scenario that is well.
const GOOD: &str = r#"about = "four hosts"
transport = "smt"
messages = 3_000
duration_us = 200
[topology]
kind = "rack"
hosts = 4
[pattern]
kind = "uniform"
load = 0.5
"#;

/// The outcome of a run.
fn outcome(words: &[&str]) -> Value {
    let outcome = smt(&[&["sim", "run"], words, &["--json"]].concat());
    assert_eq!(outcome.text().lines().count(), 1);
    serde_json::from_str(outcome.text()).unwrap()
}

#[test]
fn smt_and_tcp_share_links_and_the_shares_are_told_as_tables() {
    let shared = smt(&["sim", "share", "--duration", "1ms"]);
    let rows = shared.text().lines().filter(|line| line.starts_with("| "));
    // Three tables with their heads: ten schedulers twice, and two ways to spread.
    assert_eq!(rows.clone().count(), 2 * 11 + 3);
    for name in ["in order", "priority, TCP at 7", "halves, SMT trimmed"] {
        let named = rows.clone().filter(|row| row.starts_with(&format!("| {name} |")));
        assert_eq!(named.count(), 2, "{name}");
    }
    let refused = smt(&["sim", "share", "--duration", "1us"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(refused.errors.contains("from 1ms to 1s"), "{refused:?}");
}

#[test]
fn listed_scenarios_can_be_shown_and_what_is_shown_can_be_run() {
    let listed = smt(&["sim", "scenarios"]);
    let names: Vec<&str> =
        listed.text().lines().map(|line| line.split_once(' ').unwrap().0).collect();
    for name in ["homa-w1", "homa-w5", "incast-100", "incast-1000"] {
        assert!(names.contains(&name), "{name}");
    }
    let files = Files::empty();
    for name in names {
        let shown = smt(&["sim", "run", name, "--show"]);
        assert!(shown.text().starts_with("# "), "{name}");
        files.write(&format!("{name}.toml"), shown.text());
    }
    // The others take longer; that they are well is a test of the simulator.
    for name in ["smoke", "fixed-size"] {
        let copied = outcome(&[&files.path(&format!("{name}.toml")), "--duration", "1us"]);
        assert_eq!(copied["name"], name);
        assert_eq!(copied["duration_ns"], 1_000);
    }
}

#[test]
fn a_thousand_senders_reach_one() {
    for transport in ["smt", "stream"] {
        let words = ["incast-1000", "--duration", "1us", "--transport", transport];
        let outcome = outcome(&words);
        assert_eq!(outcome["figures"]["messages"], 1_000);
        assert_eq!(outcome["figures"]["dropped"], 0);
        let rounds = outcome["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 1);
        assert_eq!(rounds[0]["bytes"], 10_000_000);
        assert_eq!(rounds[0]["unfinished"], 0);
        let took = rounds[0]["took_ns"].as_u64().unwrap();
        assert!((8_000_000..12_000_000).contains(&took), "{transport}: {took}");
    }
}

#[test]
fn a_scenario_repeats_from_its_seed() {
    let files = Files::empty();
    let path = files.write("mine.toml", GOOD);
    let run = |seed: &str| {
        let mut outcome = outcome(&[&path, "--seed", seed]);
        outcome["command"] = Value::Null;
        outcome
    };
    assert_eq!(run("5"), run("5"));
    assert_ne!(run("5")["rows"], run("6")["rows"]);
    assert_eq!(run("5")["seed"], 5);
}

#[test]
fn options_override_the_file() {
    let files = Files::empty();
    let path = files.write("mine.toml", GOOD);
    let plain = outcome(&[&path]);
    assert_eq!(plain["transport"], "smt");
    assert_eq!(plain["figures"]["marked"], 0);
    let words = ["--transport", "pool-2", "--load", "0.25", "--duration", "400us"];
    let changed = outcome(&[&[path.as_str()], &words[..]].concat());
    assert_eq!(changed["transport"], "pool-2");
    assert_eq!(changed["load"], 0.25);
    assert_eq!(changed["duration_ns"], 400_000);
    let half = plain["figures"]["links_used"].as_f64().unwrap();
    let quarter = changed["figures"]["links_used"].as_f64().unwrap();
    assert!(quarter > 0.0 && quarter < half, "{quarter} {half}");
    let commands = [&plain, &changed].map(|outcome| outcome["command"].as_str().unwrap());
    assert!(commands[1].starts_with("smt sim run ") && commands[1].contains("--load 0.25"));
}

#[test]
fn a_table_is_for_people_and_has_what_the_json_has() {
    let files = Files::empty();
    let (path, results) = (files.write("mine.toml", GOOD), files.path("results.json"));
    let told = smt(&["sim", "run", &path, "--results", &results]);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&results).unwrap()).unwrap();
    let messages = written["figures"]["messages"].as_u64().unwrap();
    assert!(messages > 20);
    let text = told.text();
    assert!(text.starts_with("mine: four hosts\n"), "{text}");
    assert!(text.contains(&format!("{messages} messages of 3000 over smt at load 0.5")), "{text}");
    let p99 = written["all"]["p99"].as_f64().unwrap();
    assert!(p99 >= 1.0 && text.contains(&format!(" {p99:.2} ")), "{text}");
    // The divisors of slowdowns: 3,000 B take 2.4 us on each of two links.
    let alone = &written["alone"][0];
    assert_eq!(alone["bytes"], 3_000);
    let took = alone["took_ns"].as_u64().unwrap();
    assert!((2_400..5_000).contains(&took), "{took}");
    let words = format!("a message alone: 3000 B {:.2} us", took as f64 / 1e3);
    assert!(text.contains(&words), "{text}");
    assert!(written["samples"].as_array().unwrap().len() <= 500);
}

#[test]
fn rates_are_of_the_counted_time_alone() {
    let files = Files::empty();
    let text = GOOD.replace("duration_us = 200", "duration_us = 1_000\nwarm_up_us = 500");
    let outcome = outcome(&[&files.write("mine.toml", text), "--load", "0.3"]);
    let samples = outcome["samples"].as_array().unwrap();
    let counted = |name: &str| {
        let late = samples.iter().filter(|sample| sample["at_ns"].as_u64().unwrap() > 500_000);
        late.map(|sample| sample[name].as_u64().unwrap()).sum::<u64>() as f64
    };
    // Bits of four hosts in half a millisecond, each with a link of 10 Gb/s.
    let a_second_and_host = 8.0 / 4.0 / 0.5e-3;
    let goodput = outcome["figures"]["goodput_bits_per_s"].as_f64().unwrap();
    assert!((counted("arrived_bytes") * a_second_and_host / goodput - 1.0).abs() < 1e-9);
    let used = outcome["figures"]["links_used"].as_f64().unwrap();
    assert!((counted("carried_bytes") * a_second_and_host / 1e10 / used - 1.0).abs() < 0.01);
}

/// Over so long a path a session has all its ids under way before the first is acknowledged.
#[test]
fn percentiles_of_what_arrived_are_not_those_of_all() {
    let files = Files::empty();
    let lame = GOOD.replace("3_000", "100").replace("200", "3_000");
    let lame = lame.replace("hosts = 4", "hosts = 2\nedge_delay_ns = 1_000_000");
    let lame = files.write("lame.toml", lame);
    let (good, results) = (files.write("good.toml", GOOD), files.path("results.json"));
    for (path, is_lame) in [(&lame, true), (&good, false)] {
        let told = smt(&["sim", "run", path, "--results", &results]);
        let written = std::fs::read_to_string(&results).unwrap();
        let written: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["percentiles_invalid"].is_string(), is_lame);
        let words = "percentiles are not valid";
        assert_eq!(told.text().contains(words), is_lame, "{}", told.text());
        let page = smt(&["sim", "report", &results]);
        assert_eq!(page.text().contains(words), is_lame);
    }
}

/// The longest messages of W5 have most of its bytes, and are still on their way when so short a
/// run is over.
#[test]
fn a_load_that_was_not_reached_is_told() {
    let files = Files::empty();
    let heavy = files.write("heavy.toml", GOOD.replace("3_000", "\"w5\""));
    let good = files.write("good.toml", GOOD.replace("200", "5_000\nwarm_up_us = 500"));
    for (path, is_missed) in [(&heavy, true), (&good, false)] {
        let results = files.path("results.json");
        let told = smt(&["sim", "run", path, "--results", &results]);
        let words = "the load was not reached";
        assert_eq!(told.text().contains(words), is_missed, "{}", told.text());
        let page = smt(&["sim", "report", &results]);
        assert_eq!(page.text().contains(words), is_missed);
    }
}

#[test]
fn messages_of_one_length_have_no_shorter_half() {
    let files = Files::empty();
    for (messages, has_half) in [("3_000", false), ("\"w2\"", true)] {
        let path = files.write("mine.toml", GOOD.replace("3_000", messages));
        let results = files.path("results.json");
        let told = smt(&["sim", "run", &path, "--results", &results]);
        assert_eq!(told.text().contains("shorter half"), has_half, "{messages}");
        let written = std::fs::read_to_string(&results).unwrap();
        let written: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["shorter_half"].is_object(), has_half, "{messages}");
        let page = smt(&["sim", "report", &results]);
        assert_eq!(page.text().contains("shorter half"), has_half, "{messages}");
    }
}

#[test]
fn an_incast_tells_its_rounds_against_the_best_possible() {
    for transport in ["smt", "stream"] {
        let outcome = outcome(&["incast-100", "--transport", transport]);
        let rounds = outcome["rounds"].as_array().unwrap();
        // The last begins with the last moment.
        assert_eq!(rounds.len(), 11);
        for round in rounds {
            assert_eq!(round["bytes"], 1_000_000);
            assert_eq!(round["best_ns"], 800_000);
            assert_eq!(round["unfinished"], 0);
            let took = round["took_ns"].as_u64().unwrap();
            assert!((800_000..2_000_000).contains(&took), "{transport}: {took}");
        }
        // Nearly all bytes wait at one port.
        let queue = outcome["figures"]["queue_bytes_max"].as_u64().unwrap();
        assert!((900_000..1_200_000).contains(&queue), "{transport}: {queue}");
        let samples = outcome["samples"].as_array().unwrap();
        let sum =
            |name: &str| samples.iter().map(|sample| sample[name].as_u64().unwrap()).sum::<u64>();
        // The round that begins last has no time to arrive within the duration.
        assert_eq!(sum("arrived_bytes"), 10_000_000);
        let carried = sum("carried_bytes");
        assert!((10_500_000..11_500_000).contains(&carried), "{transport}: {carried}");
        let longest = samples.iter().map(|sample| sample["queue_longest_bytes"].as_u64().unwrap());
        assert!(longest.max().unwrap() > 900_000);
    }
}

/// Figures that only some runs have: bytes asked for again, and the side that asked.
#[test]
fn trimmed_packets_are_asked_for_by_pulls_and_counted() {
    let files = Files::empty();
    let shown = smt(&["sim", "run", "incast-ndp", "--show"]);
    let small = shown.text().replace("senders = 100 ", "senders = 20 ");
    let path = files.write("small.toml", small.replace("100_000", "20_000"));
    let pulled = &outcome(&[&path])["figures"];
    assert_eq!((&pulled["messages"], &pulled["asked_by_timer"]), (&20.into(), &0.into()));
    let asked = pulled["asked_by_trimmed"].as_u64().unwrap();
    assert!(asked > 20, "{asked}");
    // 400,000 B at 10 Gb/s.
    let lasted = pulled["lasted_ns"].as_u64().unwrap();
    assert!((320_000..600_000).contains(&lasted), "{lasted}");
    let told = smt(&["sim", "run", &path]);
    let words =
        format!("missing bytes asked for {asked} times after trimmed packets, 0 times by timers");
    assert!(told.text().contains(&words), "{}", told.text());
}

/// Hosts that have no use for trimmed packets: timers ask. If all did so at the same intervals, a
/// third of the messages would be missing after half a second, since the same ten find room in the
/// queue each time.
#[test]
fn those_who_lost_packets_together_do_not_repeat_them_together() {
    let files = Files::empty();
    let shown = smt(&["sim", "run", "incast-ndp", "--show"]);
    let path = files.write("trimmed.toml", shown.text().replace("\"auto\"", "10_766"));
    let figures = &outcome(&[&path, "--transport", "smt"])["figures"];
    assert_eq!(figures["asked_by_trimmed"], 0);
    assert!(figures["asked_by_timer"].as_u64().unwrap() > 100);
    assert_eq!(figures["unfinished"], 0);
    let lasted = figures["lasted_ns"].as_u64().unwrap();
    assert!(lasted < 100_000_000, "{lasted}");
}

#[test]
fn messages_that_do_not_arrive_in_time_are_in_no_percentile() {
    let files = Files::empty();
    let shown = smt(&["sim", "run", "incast-ndp", "--show"]);
    // 90 MB, which take 0.72 s.
    let slow = shown.text().replace("= 100_000 ", "= 900_000 ");
    let slow = slow.replace("gbps = 10", "gbps = 1");
    let path = files.write("slow.toml", slow);
    let outcome = outcome(&[&path, "--transport", "smt"]);
    let figures = &outcome["figures"];
    let (arrived, missing) = (&figures["messages"], &figures["unfinished"]);
    let (arrived, missing) = (arrived.as_u64().unwrap(), missing.as_u64().unwrap());
    assert_eq!(arrived + missing, 100);
    let invalid = outcome["percentiles_invalid"].as_str().unwrap();
    let words = format!("percentiles are not valid: {missing}.0 %");
    assert!(invalid.contains(&words), "{invalid}");
    let rate = figures["goodput_bits_per_s"].as_f64().unwrap();
    let until_last = arrived as f64 * 72e5 / figures["lasted_ns"].as_f64().unwrap() * 1e9;
    assert!((rate / until_last - 1.0).abs() < 1e-6, "{rate} {until_last}");
}

#[test]
fn a_wrong_file_is_told_with_its_line_and_field() {
    let files = Files::empty();
    for (from, to, said) in [
        (
            "hosts = 4",
            "hosts = 1",
            "wrong.toml:7: topology.hosts is 1; permitted: a whole number from 2 to 4096",
        ),
        (
            "load = 0.5",
            "load = 2",
            "wrong.toml:10: pattern.load is 2; permitted: a number from 0.001 to 1",
        ),
        ("load = 0.5", "lode = 0.5", "wrong.toml:10: pattern.lode is no field: load?"),
        ("about", "abuot", "wrong.toml:1: abuot is no field; permitted here: about, seed,"),
        ("\"rack\"", "\"rack", "wrong.toml:6: this is no TOML"),
    ] {
        let path = files.write("wrong.toml", GOOD.replacen(from, to, 1));
        smt(&["sim", "run", &path]).fails_with(&[said]);
    }
    smt(&["sim", "run", &files.path("missing.toml")]).fails_with(&["missing.toml", "No such file"]);
    smt(&["sim", "run", "homa-w6"]).fails_with(&["\"homa-w6\" is no scenario", "homa-w5"]);
    smt(&["sim", "run", "incast-100", "--load", "0.5"]).fails_with(&["has no load"]);
    let path = files.write("wrong.toml", GOOD.replacen("load", "lode", 1));
    let results = files.path("results.json");
    smt(&["sim", "run", &path, "--results", &results]).fails_with(&["is no field"]);
    assert!(!std::path::Path::new(&results).exists());
}

#[test]
fn a_network_that_carries_too_little_is_told_as_such() {
    let files = Files::empty();
    let path = files.write("narrow.toml", NARROW);
    smt(&["sim", "run", &path]).fails_with(&[
        "narrow cannot run: a message of 33554432 B that is alone does not arrive within 10 s",
        "buffer_bytes",
    ]);
}

/// Hosts of 400 Gb/s behind a core of 1, and switches that hold one packet.
const NARROW: &str = r#"transport = "smt"
messages = "32M"
duration_us = 1
[topology]
kind = "datacenter"
racks = 2
hosts_per_rack = 2
spines = 1
edge_gbps = 400
core_gbps = 1
[switch]
buffer_bytes = 1_538
[pattern]
kind = "uniform"
load = 0.01
"#;
