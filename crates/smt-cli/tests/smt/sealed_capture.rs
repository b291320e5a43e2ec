// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captures of simulated hosts whose devices seal packets by PSP.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::program::{Files, smt};
use crate::sim_capture::{captured, count};

/// The objects that a command writes.
fn json(words: &[&str]) -> Vec<Value> {
    let outcome = smt(words);
    let lines = outcome.text().lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
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
    assert!(others.clone().all(|packet| packet["error"] == "sealed packet"));
    let (data, others) = (data.count(), others.count());

    let opened = json(&["dump", "--json", &capture, "--key-log", &keys]);
    let opened: Vec<&Value> = opened.iter().filter(|packet| is_sealed(packet)).collect();
    assert_eq!(opened.len(), data + others);
    assert!(opened.iter().all(|packet| packet["opened"] == true));
    let count = |name| opened.iter().filter(|packet| packet["type"] == name).count();
    assert_eq!((count("DATA"), count("PROBE")), (data, others));
    assert!(others > 0, "no path was probed");
}

#[test]
fn forgeries_in_sealed_packets_and_beside_them_are_told() {
    let files = Files::empty();
    let (capture, keys, _) = captured(&files, "14", &["--arriving", "--attacked"]);
    let dump = smt(&["dump", &capture, "--key-log", &keys]);
    // Records of its own behind clear headers, and DATA without PSP.
    for remark in [" [ICV FAILED]", " [in no packet of PSP: a receiver drops it]"] {
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
    assert!(messages("attacked", &attacked) == expected, "a message differs");
}

#[test]
fn a_decrypted_capture_has_the_datagrams_of_sealed_packets_natively() {
    let files = Files::empty();
    let (capture, keys, _) = captured(&files, "7", &[]);
    let decrypted = files.path("plain");
    let sealed = json(&["dump", "--json", &capture, "--key-log", &keys, "--decrypt", &decrypted]);
    let plain = json(&["dump", "--json", &decrypted]);
    assert_eq!(sealed.len(), plain.len());
    let mut natively = 0;
    for (sealed, plain) in sealed.iter().zip(&plain) {
        for field in ["time_ns", "source", "target", "type", "session", "id", "offset", "payload"] {
            assert_eq!(sealed[field], plain[field], "{sealed} {plain}");
        }
        assert_eq!(plain["remark"], Value::Null, "{plain}");
        let expected = match sealed["carrier"].as_str().unwrap() {
            "psp" => "native",
            carrier => carrier,
        };
        assert_eq!(plain["carrier"], expected);
        natively += u64::from(plain["carrier"] == "native");
    }
    assert!(natively > 1_000, "{natively}");
    let rpcs = |capture: &str| json(&["dump", "--json", "--rpcs", capture]);
    assert_eq!(rpcs(&decrypted), rpcs(&capture));
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
