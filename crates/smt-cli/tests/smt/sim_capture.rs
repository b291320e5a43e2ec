// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim run --capture`, read by `smt dump`, with the keys and without.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::program::{Files, Outcome, smt};

/// Plays a case into a capture with its keys. Returns the paths, and the JSON of the verdict.
fn captured(files: &Files, seed: &str, more: &[&str]) -> (String, String, Value) {
    let (capture, keys) = (files.path("capture"), files.path("keys"));
    let words = [
        "sim",
        "run",
        "--json",
        "--seed",
        seed,
        "--capture",
        &capture,
        "--key-log",
        &keys,
    ];
    let outcome = smt(&[&words[..], more].concat());
    let verdict = serde_json::from_str(outcome.text().lines().last().unwrap()).unwrap();
    (capture, keys, verdict)
}

/// A short scenario with a capture.
fn smoke(capture: &str, more: &[&str]) -> Outcome {
    let words = ["sim", "run", "smoke", "--duration", "20us", "--capture"];
    smt(&[&words[..], &[capture], more].concat())
}

/// The objects that a command writes.
fn json(words: &[&str]) -> Vec<Value> {
    let outcome = smt(words);
    let lines = outcome.text().lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The number before a word in what `smt dump` says in the end.
fn count(dump: &Outcome, word: &str) -> u64 {
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
        assert!(
            count(&dump, " records and tags ok") > 1_000,
            "{seed}: {}",
            dump.errors
        );
        // Requests and replies; retransmissions make no second message.
        assert!(
            count(&dump, " messages whole") > 200,
            "{seed}: {}",
            dump.errors
        );
    }
}

#[test]
fn a_sealed_packet_shows_its_header_of_data_and_with_the_keys_all() {
    let files = Files::empty();
    let (capture, keys, _) = captured(&files, "14", &[]);
    let is_sealed = |packet: &Value| packet["carrier"] == "psp";
    let all = json(&["dump", "--json", &capture]);
    let shown: Vec<&Value> = all.iter().filter(|packet| is_sealed(packet)).collect();
    assert!(shown.len() > 1_000, "{}", shown.len());
    let data = shown.iter().filter(|packet| packet["type"] == "DATA");
    for packet in data.clone() {
        assert_eq!(packet["opened"], false);
        assert!(packet["message_length"].as_u64() >= Some(40), "{packet}");
        assert!(packet["source"].as_str().unwrap().ends_with(":17379"));
    }
    let others = shown.iter().filter(|packet| packet["type"] != "DATA");
    assert!(
        others
            .clone()
            .all(|packet| packet["error"] == "sealed packet")
    );
    let (data, others) = (data.count(), others.count());

    let opened = json(&["dump", "--json", &capture, "--key-log", &keys]);
    let opened: Vec<&Value> = opened.iter().filter(|packet| is_sealed(packet)).collect();
    assert_eq!(opened.len(), data + others);
    assert!(opened.iter().all(|packet| packet["opened"] == true));
    let count = |name| {
        opened
            .iter()
            .filter(|packet| packet["type"] == name)
            .count()
    };
    assert_eq!((count("DATA"), count("PROBE")), (data, others));
    assert!(others > 0, "no path was probed");
}

#[test]
fn forgeries_in_sealed_packets_and_beside_them_are_told() {
    let files = Files::empty();
    let (capture, keys, _) = captured(&files, "14", &["--arriving", "--attacked"]);
    let dump = smt(&["dump", &capture, "--key-log", &keys]);
    // Records of its own behind clear headers, and DATA without PSP.
    for remark in [
        " [ICV FAILED]",
        " [in no packet of PSP: a receiver drops it]",
    ] {
        assert!(dump.text().contains(remark), "{remark}");
    }
    assert!(count(&dump, " messages whole") > 100, "{}", dump.errors);
}

#[test]
fn no_byte_from_outside_of_a_sealed_packet_comes_among_those_in_one() {
    let files = Files::empty();
    let (capture, keys, _) = captured(&files, "14", &[]);
    let capture = fs::read(&capture).unwrap();
    let messages = |name: &str, bytes: &[u8]| {
        let (file, directory) = (files.write(name, bytes), files.path(&format!("{name}-out")));
        let dump = smt(&["dump", &file, "--key-log", &keys, "--out", &directory]);
        assert!(!dump.text().is_empty());
        let written = fs::read_dir(directory).unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name(), fs::read(entry.path()).unwrap())
        });
        written.collect::<BTreeMap<_, _>>()
    };
    let is_psp = |frame: &[u8]| frame[FRAME_HEADER + 22..][..2] == PSP_PORT.to_be_bytes();
    let (mut attacked, mut forged) = (capture[..FILE_HEADER].to_vec(), 0);
    for frame in frames(&capture) {
        attacked.extend(frame);
        if is_psp(frame) {
            attacked.extend(forged_in_the_clear(frame));
            forged += 1;
        }
    }
    assert!(forged > 1_000, "{forged}");
    let expected = messages("honest", &capture);
    assert!(expected.len() > 200, "{}", expected.len());
    assert!(
        messages("attacked", &attacked) == expected,
        "a message differs"
    );
}

/// The same packet without PSP, with other bytes behind its header.
fn forged_in_the_clear(frame: &[u8]) -> Vec<u8> {
    let headers = FRAME_HEADER + UDP_HEADERS;
    let contents = headers + PSP_HEADER + NATIVE_HEADER;
    let mut forged = frame[..headers].to_vec();
    forged.extend(&frame[contents..frame.len() - ICV]);
    forged[headers + DATA_HEADER..].fill(0);
    let length = forged.len() - FRAME_HEADER;
    for place in [8, 12] {
        forged[place..place + 4].copy_from_slice(&(length as u32).to_le_bytes());
    }
    let mut put = |place: usize, value: u16| {
        let place = FRAME_HEADER + place;
        forged[place..place + 2].copy_from_slice(&value.to_be_bytes());
    };
    put(2, length as u16);
    put(22, 17_379);
    put(24, length as u16 - 20);
    forged
}

/// The frames of a capture of the simulator, with their headers.
fn frames(capture: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    let mut rest = &capture[FILE_HEADER..];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap());
        let (frame, after) = rest.split_at(FRAME_HEADER + length as usize);
        frames.push(frame);
        rest = after;
    }
    frames
}

const FILE_HEADER: usize = 24;
const FRAME_HEADER: usize = 16;
/// The headers of IPv4 and UDP.
const UDP_HEADERS: usize = 28;
const PSP_PORT: u16 = 1_000;
const PSP_HEADER: usize = 16;
const NATIVE_HEADER: usize = 8;
const ICV: usize = 16;
const DATA_HEADER: usize = 36;

#[test]
fn a_decrypted_capture_has_the_datagrams_of_sealed_packets_natively() {
    let files = Files::empty();
    let (capture, keys, _) = captured(&files, "7", &[]);
    let plain = files.path("plain");
    let sealed = json(&[
        "dump",
        "--json",
        &capture,
        "--key-log",
        &keys,
        "--decrypt",
        &plain,
    ]);
    let plain = json(&["dump", "--json", &plain]);
    assert_eq!(sealed.len(), plain.len());
    let mut natively = 0;
    for (sealed, plain) in sealed.iter().zip(&plain) {
        for field in [
            "time_ns", "source", "target", "type", "session", "id", "offset", "payload",
        ] {
            assert_eq!(sealed[field], plain[field], "{sealed} {plain}");
        }
        let expected = match sealed["carrier"].as_str().unwrap() {
            "psp" => "native",
            carrier => carrier,
        };
        assert_eq!(plain["carrier"], expected);
        natively += u64::from(plain["carrier"] == "native");
    }
    assert!(natively > 1_000, "{natively}");
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
    smt(&[
        "sim",
        "run",
        "--seed",
        "8",
        "--capture",
        &capture,
        "--host",
        "9",
    ])
    .fails_with(&["there is no host 9 here: give one from 0 to "]);
}

#[test]
fn a_capture_cut_short_is_read_as_far_as_it_goes_and_that_is_told() {
    let files = Files::empty();
    let (capture, keys, _) = captured(&files, "8", &[]);
    let whole = fs::read(&capture).unwrap();
    let cut = files.write("cut", &whole[..whole.len() / 2 + 1]);
    let dump = smt(&["dump", &cut, "--key-log", &keys]);
    assert!(
        dump.errors.contains("ends in the middle of a frame"),
        "{}",
        dump.errors
    );
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
    assert!(
        (1..50).any(|seed| has_bundle(&seed)),
        "no case has a bundle"
    );
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
    let lines: Vec<_> = dump
        .text()
        .lines()
        .filter(|line| line.contains(" > "))
        .collect();
    let from_rack = lines.iter().filter(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        assert_ne!(is_of_rack(words[1]), is_of_rack(words[3]), "{line}");
        is_of_rack(words[1])
    });
    let from_rack = from_rack.count();
    assert!(
        from_rack > 20 && lines.len() - from_rack > 20,
        "{from_rack}"
    );
    run("rack3-spine0").fails_with(&["no rack3-spine0 here: give one from rack0-spine0 to rack2-"]);
    let case = ["sim", "run", "--seed", "1", "--capture", &capture];
    smt(&[&case[..], &["--link", "rack0-spine0"]].concat())
        .fails_with(&["there is one switch here"]);
}
