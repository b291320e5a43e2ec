// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim run --capture`, read by `smt dump`, with the keys and without.

use std::fs;

use serde_json::Value;

use crate::program::{Files, Outcome, smt};

/// Plays a case into a capture with its keys. Returns the paths, and the JSON of the verdict.
pub(crate) fn captured(files: &Files, seed: &str, more: &[&str]) -> (String, String, Value) {
    let (capture, keys) = (files.path("capture"), files.path("keys"));
    let words = ["sim", "run", "--json", "--seed", seed, "--capture", &capture, "--key-log", &keys];
    let outcome = smt(&[&words[..], more].concat());
    let verdict = serde_json::from_str(outcome.text().lines().last().unwrap()).unwrap();
    (capture, keys, verdict)
}

/// A short scenario with a capture.
fn smoke(capture: &str, more: &[&str]) -> Outcome {
    let words = ["sim", "run", "smoke", "--duration", "20us", "--capture"];
    smt(&[&words[..], &[capture], more].concat())
}

/// The number before a word in what `smt dump` says in the end.
pub(crate) fn count(dump: &Outcome, word: &str) -> u64 {
    let before = dump.errors.split(word).next().unwrap();
    before.split_whitespace().last().unwrap().parse().unwrap()
}

#[test]
fn every_packet_that_was_sent_is_there_and_opens() {
    // Devices seal the packets of cases 7 and 14.
    for seed in ["1", "3", "7", "8", "14"] {
        let files = Files::empty();
        let (capture, keys, verdict) = captured(&files, seed, &[]);
        let dump = smt(&["dump", &capture, "--key-log", &keys]);
        let text = dump.text();
        assert_eq!(count(&dump, " frames: "), verdict["packets"]);
        assert!(text.contains(" DATA epoch "), "{seed}");
        assert_eq!(text.matches("[no key]").count(), 0, "{seed}");
        assert_eq!(count(&dump, " FAILED; "), 0, "{seed}");
        assert!(count(&dump, " records and tags ok") > 1_000, "{seed}: {}", dump.errors);
        // Requests and replies; retransmissions make no second message.
        assert!(count(&dump, " messages whole") > 200, "{seed}: {}", dump.errors);
    }
}

#[test]
fn a_capture_changes_nothing() {
    let files = Files::empty();
    let (_, _, verdict) = captured(&files, "8", &[]);
    let alone = smt(&["sim", "run", "--json", "--seed", "8"]);
    let alone: Value = serde_json::from_str(alone.text().lines().last().unwrap()).unwrap();
    assert_eq!(alone["trace"], verdict["trace"]);
}

#[test]
fn captured_arrivals_have_the_faults_in_them() {
    // An attacker's actions differ from case to case; some damage records.
    let mut failed = 0;
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let files = Files::empty();
        let (capture, keys, verdict) = captured(&files, seed, &["--arriving", "--attacked"]);
        let dump = smt(&["dump", &capture, "--key-log", &keys]);
        assert_ne!(count(&dump, " frames: "), verdict["packets"], "{seed}");
        assert!(count(&dump, " messages whole") > 100, "{}", dump.errors);
        failed += count(&dump, " FAILED; ");
    }
    assert!(failed > 0, "no record was damaged");
}

#[test]
fn a_host_s_cable_has_what_it_sends_and_what_reaches_it() {
    let files = Files::empty();
    let (capture, keys, _) = captured(&files, "8", &["--host", "1"]);
    let dump = smt(&["dump", &capture, "--key-log", &keys]);
    let lines = dump.text().lines().filter(|line| line.contains(" > "));
    let (mut sent, mut received) = (0, 0);
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let host = "10.0.0.1:17379";
        assert_ne!(words[1] == host, words[3] == host, "{line}");
        sent += u64::from(words[1] == host);
        received += u64::from(words[3] == host);
    }
    assert!(sent > 100 && received > 100, "{sent} {received}");
    smt(&["sim", "run", "--seed", "8", "--capture", &capture, "--host", "9"])
        .fails_with(&["there is no host 9 here: give one from 0 to "]);
}

#[test]
fn a_capture_cut_short_is_read_as_far_as_it_goes_and_that_is_told() {
    let files = Files::empty();
    let (capture, keys, _) = captured(&files, "8", &[]);
    let whole = fs::read(&capture).unwrap();
    let cut = files.write("cut", &whole[..whole.len() / 2 + 1]);
    let dump = smt(&["dump", &cut, "--key-log", &keys]);
    assert!(dump.errors.contains("ends in the middle of a frame"), "{}", dump.errors);
    assert_eq!(count(&dump, " FAILED; "), 0);
    assert!(count(&dump, " messages whole") > 50);
}

#[test]
fn packets_of_a_scenario_can_be_captured_too() {
    let files = Files::empty();
    let capture = files.path("capture");
    smoke(&capture, &[]).text();
    let dump = smt(&["dump", &capture]);
    for word in ["HANDSHAKE ", "DATA epoch 0", "ACK epoch 0"] {
        assert!(dump.text().contains(word), "{word}");
    }
}

#[test]
fn members_of_a_bundle_are_told_one_by_one() {
    let has_bundle = |seed: &u64| {
        let files = Files::empty();
        let (capture, keys, _) = captured(&files, &seed.to_string(), &[]);
        let dump = smt(&["dump", &capture, "--key-log", &keys]);
        let text = dump.text();
        let mut lines = text.lines();
        let Some(line) = lines.find(|line| line.starts_with("    bundle ")) else {
            return false;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let count: usize = words[3].parse().unwrap();
        let is_member = |line: &&str| line.starts_with("    message ");
        assert!(line.ends_with(" messages") && count > 1, "{line}");
        assert_eq!(lines.take(count).filter(is_member).count(), count, "{line}");
        true
    };
    // A third of the cases have one.
    assert!((1..50).any(|seed| has_bundle(&seed)), "no case has a bundle");
}

#[test]
fn a_link_between_switches_has_what_passes_between_its_rack_and_others() {
    let files = Files::empty();
    let capture = files.path("capture");
    let run = |link: &str| smoke(&capture, &["--link", link]);
    assert!(run("rack1-spine0").text().contains("messages of W2"));
    let dump = smt(&["dump", &capture]);
    // Four hosts a rack: 4 to 7 are the second's.
    let is_of_rack = |address: &str| {
        let host = address.strip_prefix("10.0.0.").unwrap();
        let (host, _) = host.split_once(':').unwrap();
        (4..8).contains(&host.parse::<u32>().unwrap())
    };
    let lines: Vec<_> = dump.text().lines().filter(|line| line.contains(" > ")).collect();
    let from_rack = lines.iter().filter(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        assert_ne!(is_of_rack(words[1]), is_of_rack(words[3]), "{line}");
        is_of_rack(words[1])
    });
    let from_rack = from_rack.count();
    assert!(from_rack > 20 && lines.len() - from_rack > 20, "{from_rack}");
    run("rack3-spine0").fails_with(&["no rack3-spine0 here: give one from rack0-spine0 to rack2-"]);
    let case = ["sim", "run", "--seed", "1", "--capture", &capture];
    smt(&[&case[..], &["--link", "rack0-spine0"]].concat())
        .fails_with(&["there is one switch here"]);
}
