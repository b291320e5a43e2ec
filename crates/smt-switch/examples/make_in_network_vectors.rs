// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes `vectors/in_network.json`: packets, and what the functions of this crate make of them.
//! `kernel/xdp` is held against them.
//!
//!     cargo run -p smt-switch --example make_in_network_vectors
//!     cargo run -p smt-switch --example make_in_network_vectors -- --check

use std::error::Error;
use std::fmt::Write;

use serde_json::{Value, json};
use smt_switch::{Balancer, IpPacket, Marking, Recognition, mark, trim};

/// The balancer's seed and its paths in the vectors.
const SEED: u64 = 0x5EED;
const PATHS: u32 = 4;

/// A version of IP, and the protocol in it: UDP, SMT's own, or TCP.
#[derive(Clone, Copy)]
struct Carrier {
    version: u8,
    protocol: u8,
}

const VERSIONS: [u8; 2] = [4, 6];
const PROTOCOLS: [u8; 3] = [17, 253, 6];

/// A DATA packet.
fn data(id: u64, offset: u32, payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; 36];
    (bytes[0], bytes[1], bytes[4], bytes[19]) = (1, 0x01, 0xB0, 5);
    bytes[20..28].copy_from_slice(&id.to_be_bytes());
    bytes[28..32].copy_from_slice(&100_000u32.to_be_bytes());
    bytes[32..36].copy_from_slice(&offset.to_be_bytes());
    bytes.extend((0..payload).map(|at| at as u8));
    bytes
}

/// Datagrams, each with its name.
fn datagrams() -> Vec<(&'static str, Vec<u8>)> {
    let mut control = data(9, 0, 24);
    (control[1], control[4], control[7]) = (0x24, 0x50, 60);
    let mut explicit = data(7, 1_414, 200);
    explicit[6..8].copy_from_slice(&236u16.to_be_bytes());
    let mut several = explicit.clone();
    several.extend_from_slice(&control);
    let mut beyond = data(7, 0, 100);
    beyond[6..8].copy_from_slice(&137u16.to_be_bytes());
    let mut version = data(7, 0, 100);
    version[0] = 2;
    let mut repeated = data(8, 2_828, 1_400);
    repeated[3] = 1;
    vec![
        ("DATA", data(6, 0, 1_100)),
        ("DATA, odd length", data(6, 1_102, 301)),
        ("DATA, one byte", data(2, 0, 1)),
        ("DATA with its length", explicit),
        ("DATA, repeated", repeated),
        ("DATA and ACK", several),
        ("ACK", control),
        ("DATA shorter than it says", beyond),
        ("another version", version),
        ("a trimmed header", data(6, 0, 0)),
        ("a part of a header", data(6, 0, 0)[..20].to_vec()),
    ]
}

/// A packet of IP; the sample of TCP has the bytes of SMT where its own would be.
fn packet(carrier: Carrier, class: u8, datagram: &[u8]) -> Vec<u8> {
    let Carrier { version, protocol } = carrier;
    let behind = 8 + datagram.len() as u16;
    let mut bytes = match version {
        4 => {
            let mut header = vec![0x45, class, 0, 0, 0, 7, 0x40, 0, 64, protocol, 0, 0];
            header.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            header[2..4].copy_from_slice(&(20 + behind).to_be_bytes());
            let sum = checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header
        }
        _ => {
            let mut header = vec![0x60 | class >> 4, class << 4, 0, 0, 0, 0, protocol, 64];
            header[4..6].copy_from_slice(&behind.to_be_bytes());
            for last in [1, 2] {
                header.extend_from_slice(&[0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
            }
            header
        }
    };
    let at = bytes.len();
    bytes.extend_from_slice(&[0x9C, 0x40, 0x43, 0xE3, 0, 0, 0, 0]);
    if protocol == 17 {
        bytes[at + 4..at + 6].copy_from_slice(&behind.to_be_bytes());
    }
    bytes.extend_from_slice(datagram);
    if protocol == 17 {
        let addresses = if version == 4 { 12..20 } else { 8..40 };
        let mut all = bytes[addresses].to_vec();
        all.extend_from_slice(&[0, 17]);
        all.extend_from_slice(&behind.to_be_bytes());
        all.extend_from_slice(&bytes[at..]);
        let sum = checksum(&all);
        bytes[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

fn vector(name: String, bytes: &[u8]) -> Value {
    let recognition = Recognition::default();
    let path = Balancer::new(SEED).path_of(bytes, &recognition, PATHS);
    let mut cut = bytes.to_vec();
    let length = trim(&mut cut, &recognition);
    let mut marked = bytes.to_vec();
    let marking = mark(&mut marked, &recognition);
    let read = IpPacket::read(bytes, &recognition);
    let header = read.and_then(|read| read.data_header(bytes));
    json!({
        "name": name,
        "packet": hex(bytes),
        "message": header.map(|header| json!({"session": header.session, "id": header.id})),
        "path": path,
        "trimmed": length.map(|length| hex(&cut[..length])),
        "marked": (marking == Marking::Marked).then(|| hex(&marked)),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut vectors = Vec::new();
    let carriers = PROTOCOLS
        .into_iter()
        .flat_map(|protocol| VERSIONS.map(|version| Carrier { version, protocol }));
    for carrier in carriers {
        let Carrier { version, protocol } = carrier;
        for (number, (name, datagram)) in (0..).zip(datagrams()) {
            // Each code point of ECN, and classes with and without a priority.
            let class = (number % 4) | ((number / 4) << 5);
            let bytes = packet(carrier, class, &datagram);
            vectors.push(vector(format!("{name}; IPv{version}, protocol {protocol}"), &bytes));
            if number == 0 {
                let mut padded = bytes.clone();
                padded.extend_from_slice(&[0; 6]);
                vectors.push(vector(format!("padded; IPv{version}, {protocol}"), &padded));
                let short = &bytes[..bytes.len() - 1];
                vectors.push(vector(format!("cut short; IPv{version}, {protocol}"), short));
            }
        }
    }
    let all = json!({"seed": SEED, "paths": PATHS, "vectors": vectors});
    let text = format!("{}\n", serde_json::to_string_pretty(&all)?);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/in_network.json");
    if std::env::args().any(|argument| argument == "--check") {
        let is_same = std::fs::read_to_string(path)? == text;
        return is_same.then_some(()).ok_or_else(|| "vectors/in_network.json is another".into());
    }
    Ok(std::fs::write(path, text)?)
}
