// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::super::named::Named;
use super::*;
use crate::baseline::Pooling;

/// A file that is well, in 13 lines.
const GOOD: &str = r#"transport = "smt"
messages = "w1"
duration_us = 100
[topology]
kind = "datacenter"
racks = 3
hosts_per_rack = 4
spines = 2
[switch]
buffer_bytes = 5_000
[pattern]
kind = "uniform"
load = 0.5
"#;

/// The error of a file in which this line is another.
fn said(line: usize, instead: &str) -> String {
    let mut lines: Vec<&str> = GOOD.lines().collect();
    lines[line - 1] = instead;
    ScenarioFile::parse(&lines.join("\n")).unwrap_err().to_string()
}

/// A line, what stands there instead, and what is said of it.
const WRONG: &[(usize, &str, &str)] = &[
    (
        1,
        "transport = \"tcp\"",
        "1: transport is \"tcp\"; permitted: \"smt\", \"ndp\", \"ndp-shortest\", \"stream\", \"pool-N\"",
    ),
    (1, "transport = \"pool-65\"", "1: transport is \"pool-65\"; permitted: "),
    (1, "transport = true", "1: transport is true; permitted: \"smt\""),
    (1, "", "1: transport is missing; permitted: \"smt\""),
    (1, "transports = \"smt\"", "1: transports is no field: transport?"),
    (1, "carrier = \"smt\"", "1: transport is missing"),
    (2, "messages = \"w6\"", "2: messages is \"w6\"; permitted: \"w1\" to \"w5\", or the bytes"),
    (2, "messages = 0", "2: messages is \"0\"; permitted: "),
    (2, "messages = 33_554_433", "from 1 to 33554432"),
    (2, "messages = 1.5", "2: messages is 1.5; permitted: "),
    (2, "messages = -1", "2: messages is \"-1\"; permitted: "),
    (
        2,
        "messages = 0x1_0000_0000_0000_0000",
        "2: messages is \"0x10000000000000000\"; permitted: ",
    ),
    (3, "duration_us = 0", "3: duration_us is 0; permitted: a whole number from 1 to 10000000"),
    (3, "duration_us = -1", "3: duration_us is -1; permitted: "),
    (3, "duration_us = 10_000_001", "3: duration_us is 10000001; permitted: "),
    (3, "duration_us = \"1ms\"", "3: duration_us is \"1ms\"; permitted: a whole number"),
    (
        3,
        "duration_us = 100\nwarm_up_us = 100",
        "4: warm_up_us is 100; permitted: a whole number from 0 to 99",
    ),
    (3, "duration_us = 100\nseed = -1", "4: seed is -1; permitted: "),
    (
        3,
        "duration_us = 100\nseeds = 1",
        "4: seeds is no field; permitted here: about, seed, transport, ",
    ),
    (4, "[topologie]", "4: topologie is no field: topology?"),
    (4, "topology = 1", "topology is 1; permitted: a table [topology]"),
    (
        5,
        "kind = \"ring\"",
        "5: topology.kind is \"ring\"; permitted: \"datacenter\", \"rack\", \"two-hosts\"",
    ),
    (5, "", "4: topology.kind is missing; permitted: \"datacenter\""),
    (
        5,
        "kind = \"rack\"",
        "4: topology.hosts is missing; permitted: a whole number from 2 to 4096",
    ),
    (5, "kind = \"two-hosts\"", "6: topology.racks is no field; permitted here: kind, edge_gbps"),
    (6, "racks = 1", "6: topology.racks is 1; permitted: a whole number from 2 to 256"),
    (
        7,
        "hosts_per_rack = 1366",
        "7: topology.hosts_per_rack is 1366; permitted: a whole number from 1 to 1365",
    ),
    (8, "spines = 65", "8: topology.spines is 65; permitted: a whole number from 1 to 64"),
    (8, "spines = 1\nedge_gbps = 401", "9: topology.edge_gbps is 401; permitted: "),
    (8, "spines = 1\nhost_in_ns = 10_000_001", "9: topology.host_in_ns is 10000001; permitted: "),
    (8, "spines = 1\npayload_bytes_max = 1_471", "permitted: a whole number from 1472 to 8972"),
    (
        10,
        "buffer_bytes = \"much\"",
        "10: switch.buffer_bytes is \"much\"; permitted: a whole number from 1538 to 1000000000, or \"unlimited\"",
    ),
    (
        9,
        "payload_bytes_max = 8_972\n[switch]",
        "switch.buffer_bytes is 5000; permitted: a whole number from 9038 to ",
    ),
    (10, "trim_above_bytes = 1", "10: switch.trim_above_bytes is 1; permitted: "),
    (10, "mark_above_bytes = \"no\"", "or \"auto\", \"never\""),
    (
        10,
        "spreading = \"flow\"",
        "10: switch.spreading is \"flow\"; permitted: \"auto\", \"packet\", \"entropy\"",
    ),
    (10, "colour = 1", "10: switch.colour is no field; permitted here: delay_ns, buffer_bytes, "),
    (12, "kind = \"all\"", "12: pattern.kind is \"all\"; permitted: \"uniform\", \"incast\""),
    (
        12,
        "kind = \"incast\"",
        "11: pattern.senders is missing; permitted: a whole number from 1 to 11",
    ),
    (
        12,
        "kind = \"incast\"\nsenders = 12",
        "13: pattern.senders is 12; permitted: a whole number from 1 to 11",
    ),
    (12, "kind = \"incast\"\nsenders = 1", "11: pattern.every_us is missing"),
    (13, "load = 1.01", "13: pattern.load is 1.01; permitted: a number from 0.001 to 1"),
    (13, "load = 0", "13: pattern.load is 0; permitted: a number from 0.001 to 1"),
    (13, "load = nan", "13: pattern.load is nan; permitted: "),
    (
        13,
        "load = 0.5\nevery_us = 1",
        "14: pattern.every_us is no field; permitted here: kind, load, peers",
    ),
    (13, "load = 0.5\npeers = 0", "14: pattern.peers is 0; permitted: a whole number from 1 to 11"),
    (13, "load = 0.5\nload = 0.6", "14: this is no TOML: "),
    (13, "load = ", "13: this is no TOML: "),
    (1, "transport = \"\\u001B[31m\"", "1: transport is \"\\u{1b}[31m\"; permitted: "),
    (
        1,
        "about = \"\\u001B[31m\"\ntransport = \"smt\"",
        "1: about is \"\\u{1b}[31m\"; permitted: one line of text",
    ),
    (
        13,
        "load = 0.5\npeers = 1_0o\u{1}\u{1}0",
        "14: pattern.peers is 10o\\u{1}\\u{1}0; permitted: ",
    ),
    (1, "transport = \"smt", "1: this is no TOML: "),
];

mod parse {
    use super::*;

    #[test]
    fn a_file_is_what_it_says() {
        let scenario = ScenarioFile::parse(GOOD).unwrap().scenario();
        assert_eq!(scenario.topology.hosts(), 12);
        assert_eq!(scenario.topology.edge.rate, 10_000_000_000);
        assert_eq!(scenario.topology.core.rate, 40_000_000_000);
        assert_eq!(scenario.topology.switch.buffer, 5_000);
        assert_eq!(scenario.pattern, Pattern::Uniform { load: 0.5 });
        assert_eq!((scenario.peers, scenario.seed), (11, 1));
        assert_eq!(scenario.workload, Workload::W1);
        assert_eq!(scenario.duration, Duration::from_micros(100));
    }

    #[test]
    fn a_number_is_the_same_in_any_radix() {
        for (written, bytes) in
            [("0x10", 16), ("0o17", 15), ("0b1_01", 5), ("+1_0", 10), ("\"1K\"", 1_024)]
        {
            let text = GOOD.replace("\"w1\"", written);
            let scenario = ScenarioFile::parse(&text).unwrap().scenario();
            assert_eq!(scenario.workload, Workload::Fixed(bytes), "{written}");
        }
        let text = GOOD.replace("= 100", "= 0x1_0");
        let scenario = ScenarioFile::parse(&text).unwrap().scenario();
        assert_eq!(scenario.duration, Duration::from_micros(16));
    }

    #[test]
    fn what_is_wrong_is_told_with_line_field_and_what_is_permitted() {
        for (line, instead, expected) in WRONG {
            let said = said(*line, instead);
            assert!(said.contains(expected), "{instead}: {said:?}, not {expected:?}");
            assert!(!said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn any_end_and_any_byte_is_an_error_or_a_scenario() {
        for end in 0..GOOD.len() {
            assert!(ScenarioFile::parse(&GOOD[..end]).is_err() || end + 2 > GOOD.len());
            let mut bytes = GOOD.as_bytes().to_vec();
            for byte in [0, b'"', b'=', b'[', b'9'] {
                bytes[end] = byte;
                let text = String::from_utf8(bytes.clone()).unwrap();
                if let Ok(file) = ScenarioFile::parse(&text) {
                    assert!(file.scenario().topology.hosts() >= 2);
                }
            }
        }
    }
}

mod scenario {
    use super::*;

    #[test]
    fn what_a_file_leaves_open_suits_the_transport() {
        let mut file = ScenarioFile::parse(GOOD).unwrap();
        assert_eq!(file.scenario().topology.switch.mark_above, None);
        file.set_transport("pool-3".parse().unwrap());
        let scenario = file.scenario();
        assert_eq!(scenario.transport, Transport::Stream(Pooling::Pool(3)));
        assert_eq!(scenario.topology.switch.mark_above, Some(23_070));
        assert_eq!(scenario.topology.switch.spreading, Spreading::ByEntropy);
        assert_eq!(scenario.topology.switch.buffer, 5_000);
    }

    #[test]
    fn what_suits_follows_the_path_and_the_size_of_packets() {
        let thresholds = |link: &str| {
            let text = GOOD.replace("spines = 2", &format!("spines = 2\n{link}"));
            let text = text.replace("5_000", "50_000");
            let mut file = ScenarioFile::parse(&text).unwrap();
            let mut switch = |transport: &str| {
                file.set_transport(transport.parse().unwrap());
                file.scenario().topology.switch
            };
            (switch("stream").mark_above, switch("ndp").trim_above)
        };
        assert_eq!(thresholds(""), (Some(23_070), Some(10_766)));
        // 68,000 B fill the path at 100 Gb/s.
        let fast = "edge_gbps = 100\nhost_out_ns = 1_500\nhost_in_ns = 750";
        assert_eq!(thresholds(fast), (Some(136_000), Some(10_766)));
        assert_eq!(thresholds("edge_gbps = 1"), (Some(23_070), Some(10_766)));
        assert_eq!(thresholds("payload_bytes_max = 8_972"), (Some(23_070), Some(63_266)));
    }

    #[test]
    fn what_a_file_says_stands_whatever_the_transport() {
        let says = "[switch]\nmark_above_bytes = \"never\"\ntrim_above_bytes = 9_000\nspreading = \"packet\"";
        let mut file = ScenarioFile::parse(&GOOD.replace("[switch]", says)).unwrap();
        file.set_transport("stream".parse().unwrap());
        let switch = file.scenario().topology.switch;
        assert_eq!((switch.mark_above, switch.trim_above), (None, Some(9_000)));
        assert_eq!(switch.spreading, Spreading::ByPacket);
    }

    #[test]
    fn another_duration_has_the_same_share_of_warm_up() {
        let text = GOOD.replace("duration_us = 100", "duration_us = 100\nwarm_up_us = 20");
        let mut file = ScenarioFile::parse(&text).unwrap();
        file.set_duration(Duration::from_millis(1));
        assert_eq!(file.scenario().warm_up, Duration::from_micros(200));
    }

    #[test]
    fn only_a_load_can_be_changed() {
        let mut file = ScenarioFile::parse(GOOD).unwrap();
        assert!(file.set_load(0.25));
        assert_eq!(file.scenario().pattern, Pattern::Uniform { load: 0.25 });
        let mut incast = ScenarioFile::parse(Named::find("incast-100").unwrap().text).unwrap();
        assert!(!incast.set_load(0.25));
    }
}

mod named {
    use super::*;

    #[test]
    fn all_are_well_and_say_what_they_are() {
        for named in Named::ALL {
            let file = ScenarioFile::parse(named.text);
            let file = file.unwrap_or_else(|error| panic!("{}:{error}", named.name));
            assert!(file.about.len() > 20, "{}", named.name);
            let comments = named.text.lines().filter(|line| line.starts_with("# "));
            assert!(comments.count() > 1, "{}", named.name);
        }
    }

    #[test]
    fn every_file_of_the_folder_has_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut names: Vec<String> =
            Named::ALL.iter().map(|named| format!("{}.toml", named.name)).collect();
        names.sort();
        assert_eq!(files, names);
    }

    #[test]
    fn homa_s_are_those_of_the_papers() {
        for (name, workload, edge) in [
            ("homa-w1", "w1", 10),
            ("homa-w2", "w2", 10),
            ("homa-w3", "w3", 10),
            ("homa-w4", "w4", 10),
            ("homa-w5", "w5", 10),
            ("homa-w4-100g", "w4", 100),
        ] {
            let named = Named::find(name).unwrap();
            let scenario = ScenarioFile::parse(named.text).unwrap().scenario();
            assert_eq!(scenario.workload, workload.parse().unwrap());
            let papers = Topology::datacenter(edge * 1_000_000_000, 4 * edge * 1_000_000_000);
            let topology = scenario.topology;
            assert_eq!(topology.hosts(), papers.hosts());
            assert_eq!(topology.host_delay, papers.host_delay);
            assert_eq!(topology.switch.delay, papers.switch.delay);
            assert_eq!(topology.edge.rate, papers.edge.rate);
            assert_eq!(topology.core.rate, papers.core.rate);
            assert_eq!(topology.spines, papers.spines);
        }
    }
}
