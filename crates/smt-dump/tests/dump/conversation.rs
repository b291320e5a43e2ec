// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The conversations of `vectors/` as captures: their datagrams are put behind IP and UDP headers.

use std::fs;

use serde_json::Value;
use smt_dump::Keys;

pub(crate) const CLIENT: u16 = 40_000;
pub(crate) const SERVER: u16 = 4_433;
/// The link type of frames without a header of their own.
pub(crate) const RAW_IP: u32 = 101;

/// The header of a classic capture in microseconds.
pub(crate) fn pcap_header(link_type: u32) -> Vec<u8> {
    [0xA1B2_C3D4_u32, 0x0002_0004, 0, 0, 65_535, link_type].map(u32::to_be_bytes).concat()
}

/// A capture file, and the keys of its session.
pub(crate) fn captured(name: &str) -> (Vec<u8>, Keys) {
    let path = format!("{}/../../vectors/conversations/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let conversation: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut file = pcap_header(RAW_IP);
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
