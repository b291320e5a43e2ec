// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams: every packet of both versions is what the specification says, or is none.
//!
//! 1. [`smt_wire::parse`] walks the input as a receiver does.
//! 2. At each step `model` says by itself what the specification permits; both must agree.
//! 3. Every packet is emitted again: the same bytes, but for reserved ones, which become zero.
//! 4. The input is also taken as a packet that a switch has trimmed (`trimmed`).
//!
//! Not here: tags and records (see [`crate::record`]).

mod emission;
mod model;
mod trimmed;

use smt_wire::{PLAINTEXT_VERSION, Packet, PacketType, ParseError, VERSION, parse};

use model::{Verdict, judge};

/// Checks one datagram in both versions, and once more as one packet with a right prefix: else
/// hardly any change of a length would get past it.
pub fn check(datagram: &[u8]) {
    walk(VERSION, datagram);
    walk(PLAINTEXT_VERSION, datagram);
    let mut packet = datagram.to_vec();
    if let ([version, ty, _, _, words, _, high, low, ..], Ok(length)) =
        (&mut packet[..], u16::try_from(datagram.len()))
    {
        *version = if *ty == PacketType::VersionAnswer as u8 { 0 } else { VERSION };
        *words = if *ty == PacketType::Data as u8 { 0xB0 } else { 0x50 };
        [*high, *low] = length.to_be_bytes();
        walk(VERSION, &packet);
    }
}

fn walk(version: u8, mut datagram: &[u8]) {
    trimmed::check(version, datagram);
    loop {
        let parsed = parse(version, datagram);
        let taken = match judge(version, datagram) {
            Verdict::Packet(length) => {
                let (packet, rest) = parsed.expect("the specification permits this packet");
                assert_eq!(rest, &datagram[length..], "the packet ends elsewhere");
                check_packet(version, &packet, &datagram[..length]);
                length
            }
            Verdict::Unknown(length) => {
                let ty = datagram[1];
                assert_eq!(parsed, Err(ParseError::UnknownType { ty, length }));
                if length == 0 {
                    return;
                }
                length
            }
            Verdict::OtherVersion => {
                assert_eq!(parsed, Err(ParseError::UnknownVersion(datagram[0])));
                return;
            }
            Verdict::Refused => {
                let error = parsed.expect_err("the specification does not permit this packet");
                assert!(is_one_line(&error.to_string()));
                return;
            }
        };
        datagram = &datagram[taken..];
    }
}

fn check_packet(version: u8, packet: &Packet<'_>, bytes: &[u8]) {
    assert_eq!(packet.packet_type() as u8, bytes[1]);
    assert!(is_one_line(&format!("{packet} {packet:?}")));
    emission::check(version, packet, bytes);
    if let Packet::Data(data) = packet {
        trimmed::check_cuts(version, data, bytes);
    }
}

/// Logs and dumps give each packet one line (house rule for `Display`).
fn is_one_line(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}
