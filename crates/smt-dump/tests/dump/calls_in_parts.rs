// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Captures of calls in parts, as lines. The captures are the conversations of `vectors/`, whose
//! datagrams are put behind IP and UDP headers.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use serde_json::Value;
use smt_dump::{Keys, Wishes, dump};

/// The lines of a conversation, as its client has had it.
fn lines_of(name: &str) -> Vec<String> {
    let (capture, keys) = captured(name);
    let mut output = Vec::new();
    let wishes = Wishes { port: SERVER, keys: Some(keys), ..Wishes::default() };
    let summary = dump(&capture[..], wishes, &mut output).unwrap();
    assert!(summary.text.contains(" 0 FAILED; "), "{}", summary.text);
    let text = String::from_utf8(output).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A capture file, and the keys of its session.
fn captured(name: &str) -> (Vec<u8>, Keys) {
    let path = format!("{}/../../vectors/conversations/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let conversation: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    // Classic, in microseconds; the link type is raw IP.
    let mut file = [0xA1B2_C3D4_u32, 0x0002_0004, 0, 0, 65_535, 101].map(u32::to_be_bytes).concat();
    for step in conversation["steps"].as_array().unwrap() {
        let at = step["at_us"].as_u64().unwrap() as u32;
        let came = step.get("in").map(|hex| (hex, [SERVER, CLIENT]));
        let sent = step["out"].as_array().unwrap().iter();
        for (hex, ports) in came.into_iter().chain(sent.map(|hex| (hex, [CLIENT, SERVER]))) {
            let packet = ip_packet(ports, &bytes(hex));
            let length = packet.len() as u32;
            file.extend([0, at, length, length].map(u32::to_be_bytes).concat());
            file.extend(packet);
        }
    }
    let lines: Vec<&str> = conversation["key_log"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    (file, Keys::parse(lines.join("\n").as_bytes()).unwrap())
}

fn ip_packet([source, target]: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let udp = 8 + payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    for word in [source, target, udp, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

fn bytes(hex: &Value) -> Vec<u8> {
    let text = hex.as_str().unwrap();
    let places = (0..text.len()).step_by(2);
    let bytes = places.map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap());
    bytes.collect()
}

/// Those that end so, in their order.
fn that_say<'a>(lines: &'a [String], what: &str) -> Vec<&'a str> {
    let said = lines.iter().filter_map(|line| Some(&line[line.find(what)?..]));
    said.collect()
}

#[test]
fn each_part_of_a_reply_is_told_with_its_request_and_number() {
    let lines = lines_of("reply_in_parts_at_client");
    let parts = that_say(&lines, "whole: PART");
    let number = |number: u32, length: u32| {
        format!("whole: PART of {length} bytes, of request 0, number {number}, parts follow")
    };
    // The third is lost at first, the fourth comes late, and the last two are in a bundle, the
    // shorter one in front.
    let expected = [(0, 100), (1, 5_000), (4, 400), (6, 0), (5, 10), (3, 300), (2, 200)];
    assert_eq!(parts, expected.map(|(at, length)| number(at, length)));
    let replies = that_say(&lines, "whole: REPLY");
    assert_eq!(replies, ["whole: REPLY of 20 bytes, of 7 parts"]);
    assert!(
        lines
            .iter()
            .any(|line| line.contains("REQUEST of 100 bytes") && line.contains("reply in parts")),
        "{lines:#?}"
    );
}

#[test]
fn the_last_part_of_a_request_and_the_windows_are_told() {
    let lines = lines_of("request_in_parts_at_client");
    let parts = that_say(&lines, "whole: PART");
    assert_eq!(
        parts,
        [
            "whole: PART of 1500 bytes, of request 0, number 0, parts follow",
            "whole: PART of 1500 bytes, of request 0, number 1, parts follow",
            "whole: PART of 1000 bytes, of request 0, number 2, parts follow",
            "whole: PART of 0 bytes, of request 0, number 3, the last",
        ]
    );
    assert_eq!(that_say(&lines, "PART_WINDOW_REQUEST").len(), 2);
    let windows = that_say(&lines, "id 0 limit");
    assert_eq!(windows, ["id 0 limit 4096 [tag ok]", "id 0 limit 8120 [tag ok]"]);
}

const CLIENT: u16 = 40_000;
const SERVER: u16 = 4_433;
