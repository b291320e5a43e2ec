// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim`: seeds repeat, swarms sum up, and seeds that once failed are well.

use std::io::{BufRead, BufReader, Read};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Files, Outcome, command, smt};

/// Every line of the output.
fn json(outcome: &Outcome) -> Vec<Value> {
    let lines: Vec<Value> =
        outcome.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["schema"] == 1));
    lines
}

/// The line of this kind.
fn line<'a>(lines: &'a [Value], kind: &str) -> &'a Value {
    lines.iter().find(|line| line["kind"] == kind).unwrap()
}

/// The text behind `word` in the outcome of a seed.
fn said(seed: &str, word: &str) -> String {
    let outcome = smt(&["sim", "run", "--seed", seed]);
    let told = outcome.text().lines().find_map(|line| line.strip_prefix(word));
    told.unwrap().trim().to_owned()
}

#[test]
fn a_seed_has_one_trace_in_every_process() {
    let trace = said("1", "trace ");
    assert_eq!(trace.len(), 32, "{trace}");
    assert_eq!(said("1", "trace "), trace);
    assert_ne!(said("2", "trace "), trace);
}

#[test]
fn a_repeated_seed_is_well_if_its_traces_are_equal() {
    let outcome = smt(&["sim", "run", "--seed", "1", "--repeat", "2"]);
    assert_eq!(outcome.text().matches("\ntrace ").count(), 2);
    assert_eq!(outcome.text().matches("found     nothing").count(), 2);
}

#[test]
fn a_case_is_told_to_people_and_programs() {
    let outcome = smt(&["sim", "run", "--seed", "1"]);
    for word in ["seed ", "link ", "host 0 ", "host 1 ", "messages ", "healed ", "fault"] {
        assert!(outcome.text().contains(&format!("{word} ")), "{word}");
    }
    let lines = json(&smt(&["sim", "run", "--seed", "1", "--repeat", "2", "--json"]));
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["case", "verdict", "verdict"]);
    assert_eq!(lines[1]["trace"], said("1", "trace "));
    assert_eq!(lines[1]["findings"], Value::Array(Vec::new()));
    assert_eq!(lines[0]["hosts"], outcome.text().matches("\nhost ").count());
}

#[test]
fn a_swarm_ends_well_with_a_table_of_what_was_reached() {
    let outcome = smt(&["sim", "swarm", "--first-seed", "1", "--count", "20"]);
    let text = outcome.text();
    assert!(text.starts_with("first seed 1, "), "{text}");
    assert!(text.contains("\n20 seeds in "), "{text}");
    assert!(text.contains("\n  100.00  packet HANDSHAKE\n"), "{text}");
    for goal in ["packet CLOSE", "fault Loss", "padding padme", "key update"] {
        assert!(text.contains(&format!("  {goal}\n")), "{goal}: {text}");
    }
}

#[test]
fn the_clock_gives_the_first_seed_unless_it_is_said() {
    // The findings of these two runs are ignored: each run plays other seeds.
    let first = || {
        let outcome = smt(&["sim", "swarm", "--count", "1", "--json"]);
        let line = outcome.output.split(|byte| *byte == b'\n').next().unwrap();
        let line: Value = serde_json::from_slice(line).unwrap();
        line["first_seed"].as_u64().unwrap()
    };
    let earlier = first();
    assert!(earlier < first());
}

#[test]
fn a_swarm_is_the_sum_of_its_seeds() {
    let words = ["sim", "swarm", "--first-seed", "7", "--count", "5", "--json"];
    let alone = json(&smt(&[&words[..], &["--jobs", "1"]].concat()));
    let together = json(&smt(&[&words[..], &["--jobs", "3"]].concat()));
    assert_eq!(line(&alone, "configuration")["first_seed"], 7);
    assert_eq!(line(&alone, "coverage"), line(&together, "coverage"));
    for name in ["seeds", "messages", "succeeded", "packets", "failed"] {
        assert_eq!(line(&alone, "totals")[name], line(&together, "totals")[name]);
    }
    let packets = |seed: u64| {
        let lines = json(&smt(&["sim", "run", "--seed", &seed.to_string(), "--json"]));
        line(&lines, "verdict")["packets"].as_u64().unwrap()
    };
    assert_eq!(line(&alone, "totals")["packets"], (7..12).map(packets).sum::<u64>());
}

#[test]
fn a_swarm_can_be_attacked_in_every_case() {
    let words = ["sim", "swarm", "--first-seed", "1", "--count", "5", "--attacked", "--json"];
    let lines = json(&smt(&words));
    assert_eq!(line(&lines, "configuration")["attacked"], true);
    let goals = line(&lines, "coverage")["goals"].as_array().unwrap();
    let adversary = goals.iter().find(|goal| goal["name"] == "fault Adversary");
    assert_eq!(adversary.unwrap()["percent"], 100.0);
    let alone = |seed: &str| json(&smt(&["sim", "run", "--seed", seed, "--attacked", "--json"]));
    let packets = |seed: &str| line(&alone(seed), "verdict")["packets"].as_u64().unwrap();
    let sum: u64 = ["1", "2", "3", "4", "5"].into_iter().map(packets).sum();
    assert_eq!(line(&lines, "totals")["packets"], sum);
}

#[test]
fn listed_seeds_are_played() {
    let files = Files::empty();
    let path = files.write("seeds.txt", "# two\n8\n\n9 # the second\n");
    let lines = json(&smt(&["sim", "swarm", "--seeds", &path, "--json"]));
    let counted = json(&smt(&["sim", "swarm", "--first-seed", "8", "--count", "2", "--json"]));
    assert_eq!(line(&lines, "coverage"), line(&counted, "coverage"));
    assert_eq!(line(&lines, "totals")["seeds"], 2);
}

#[test]
fn the_end_of_the_time_and_ctrl_c_end_a_swarm_with_its_sums() {
    let words = ["sim", "swarm", "--first-seed", "1", "--time"];
    let outcome = smt(&[&words[..], &["1ms"]].concat());
    assert!(outcome.text().contains(" seeds in "), "{outcome:?}");
    let mut child = command(&[&words[..], &["24h"]].concat()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    // From its first line on it ends gracefully.
    output.read_line(&mut text).unwrap();
    let process = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(process, Signal::INT).unwrap();
    output.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(text.contains(" seeds in ") && text.contains("packet DATA"), "{text}");
}

#[test]
fn a_wrong_line_of_seeds_is_named() {
    let files = Files::empty();
    let path = files.write("seeds.txt", "# one\n8\n9 10\n");
    smt(&["sim", "swarm", "--seeds", &path]).fails_with(&["seeds.txt:3: \"9 10\" is no seed"]);
    smt(&["sim", "swarm", "--seeds", &files.path("missing")]).fails_with(&[
        "reading ",
        "missing",
        "No such file",
    ]);
}

#[test]
fn wrong_usage_says_what_is_wrong() {
    for (words, said) in [
        (&["sim"][..], "Usage"),
        (&["sim", "run"], "--seed"),
        (&["sim", "run", "--seed", "one"], "'one'"),
        (&["sim", "run", "--seed", "1", "--load", "0.5"], "SCENARIO"),
        (&["sim", "run", "smoke", "--load", "1.5"], "0.001 to 1"),
        (&["sim", "run", "smoke", "--duration", "11s"], "1us to 10s"),
        (&["sim", "run", "smoke", "--transport", "tcp"], "\"pool-N\""),
        (&["sim", "run", "smoke", "--attacked"], "cannot be used with"),
        (&["sim", "run", "smoke", "--key-log", "x"], "cannot be used with"),
        (&["sim", "run", "--seed", "1", "--host", "1"], "--capture"),
        (
            &["sim", "run", "smoke", "--capture", "x", "--link", "spine0"],
            "a link is named as rack0-spine3",
        ),
        (&["sim", "report"], "<RESULT>"),
        (&["sim", "run", "--seed", "1", "--repeat", "0"], "--repeat"),
        (&["sim", "swarm", "--count", "0"], "--count"),
        (&["sim", "swarm", "--time", "5"], "with its unit"),
        (&["sim", "swarm", "--jobs", "0"], "--jobs"),
        (&["sim", "swarm", "--coverage-least", "101"], "in percent"),
        (&["sim", "swarm", "--seeds", "x", "--count", "1"], "cannot be used with"),
        (&["sim", "swarm", "--seeds", "x", "--first-seed", "1"], "cannot be used with"),
    ] {
        let outcome = smt(words);
        assert_eq!(outcome.status.code(), Some(2), "{words:?}: {}", outcome.errors);
        assert!(outcome.output.is_empty(), "{words:?}");
        assert!(outcome.errors.contains(said), "{words:?}: {}", outcome.errors);
    }
}

#[test]
fn seeds_that_once_failed_are_well() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../smt-sim/seeds.txt");
    let lines = json(&smt(&["sim", "swarm", "--seeds", path, "--json"]));
    assert_eq!(line(&lines, "configuration")["seeds"], line(&lines, "totals")["seeds"]);
}
