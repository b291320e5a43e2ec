// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bytes that no honest peer sends: parsing ends in an error or in a packet, never in a panic.
//!
//! Samples are the vectors, so a type that has a vector is covered here too. A failing case of
//! proptest prints itself and is kept under `proptest-regressions/`.

use proptest::prelude::*;
use serde_json::Value;
use smt_wire::{
    FlightBody, InnerHeader, PLAINTEXT_VERSION, Packet, PacketType, Params, ParseError, VERSION,
    parse,
};

/// Name, version and bytes of every vector.
fn samples() -> Vec<(String, u8, Vec<u8>)> {
    let file: Value =
        serde_json::from_str(include_str!("../../../vectors/packets.json")).expect("JSON");
    let vectors = file["packets"].as_array().expect("a list");
    vectors
        .iter()
        .map(|vector| {
            let hex = vector["hex"].as_str().expect("hex").as_bytes();
            let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a digit") as u8;
            let bytes = hex.chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect();
            let version = vector["version"].as_u64().expect("a version") as u8;
            (format!("{} {}", vector["type"], vector["name"]), version, bytes)
        })
        .collect()
}

/// Parses a whole datagram as a receiver does, and looks at everything that was parsed.
fn walk(version: u8, mut datagram: &[u8]) -> usize {
    let mut packets = 0;
    loop {
        match parse(version, datagram) {
            Ok((packet, rest)) => {
                assert!(rest.len() < datagram.len(), "every packet takes bytes");
                assert!(!format!("{packet} {packet:?}").contains('\n'));
                packets += 1;
                datagram = rest;
            }
            Err(ParseError::UnknownType { length, .. }) if length > 0 => {
                datagram = &datagram[length..]
            }
            Err(error) => {
                assert!(!error.to_string().contains('\n'));
                return packets;
            }
        }
    }
}

#[test]
fn truncated_at_every_length_is_refused() {
    for (name, version, bytes) in samples() {
        let (whole, _) = parse(version, &bytes).expect("a vector can be parsed");
        let to_the_end = matches!(whole, Packet::Data(_)) && bytes[6..8] == [0, 0];
        for length in 0..bytes.len() {
            let parsed = parse(version, &bytes[..length]);
            // DATA of no stated length is as long as its datagram, from the first payload byte on.
            assert_eq!(parsed.is_ok(), to_the_end && length > 36, "{name} cut to {length} bytes");
        }
    }
}

#[test]
fn stated_length_at_every_value_is_taken_at_its_word() {
    for (name, version, mut bytes) in samples() {
        for length in 0..=(bytes.len() as u16 + 1) {
            bytes[6..8].copy_from_slice(&length.to_be_bytes());
            if let Ok((_, rest)) = parse(version, &bytes) {
                let taken = if length == 0 { bytes.len() } else { usize::from(length) };
                assert_eq!(rest.len(), bytes.len() - taken, "{name} of {length} bytes");
            }
        }
    }
}

#[test]
fn every_byte_at_every_value_never_panics() {
    for (_, version, bytes) in samples() {
        for place in 0..bytes.len().min(80) {
            let mut bytes = bytes.clone();
            for value in 0..=255 {
                bytes[place] = value;
                walk(version, &bytes);
            }
        }
    }
}

// SMT [3-1]
#[test]
fn packets_before_a_bad_one_stand() {
    let samples = samples();
    let stated = samples
        .iter()
        .filter(|(_, version, bytes)| *version != PLAINTEXT_VERSION && bytes[6..8] != [0, 0]);
    let (mut datagram, mut packets) = (Vec::new(), 0);
    for (_, _, bytes) in stated {
        datagram.extend(bytes);
        packets += 1;
    }
    assert!(packets > PacketType::ALL.len(), "every type is among them");
    assert_eq!(walk(VERSION, &datagram), packets);
    datagram.extend([VERSION, PacketType::Ping as u8, 0xFF]);
    assert_eq!(walk(VERSION, &datagram), packets);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        walk(VERSION, &bytes);
        let _ = Params::parse(&bytes);
        let _ = FlightBody::parse(&bytes);
    }

    /// Random bytes hardly ever pass the prefix; so it is made right, and only the rest is random.
    #[test]
    fn random_bytes_behind_a_right_prefix_never_panic(
        ty in prop::sample::select(&PacketType::ALL[..]),
        mut bytes in prop::collection::vec(any::<u8>(), 12..1_700),
    ) {
        let length = bytes.len() as u16;
        bytes[0] = if ty == PacketType::VersionAnswer { 0 } else { VERSION };
        bytes[1] = ty as u8;
        bytes[4] = if ty == PacketType::Data { 0xB0 } else { 0x50 };
        bytes[6..8].copy_from_slice(&length.to_be_bytes());
        prop_assert!(walk(VERSION, &bytes) <= 1);
    }

    #[test]
    fn random_inner_headers_are_the_same_when_emitted_again(bytes in any::<[u8; 40]>(), kind in 0..5_u8) {
        let mut bytes = bytes;
        bytes[8] = kind;
        if let Ok(header) = InnerHeader::parse(&bytes) {
            let mut again = [0xFF; 40];
            header.emit(&mut again);
            prop_assert_eq!(InnerHeader::parse(&again), Ok(header));
        }
    }

    /// Parameters with one byte changed are refused, or the same when emitted again.
    #[test]
    fn changed_params_are_refused_or_stand(place in any::<prop::sample::Index>(), value in any::<u8>()) {
        let file: Value = serde_json::from_str(include_str!("../../../vectors/packets.json")).expect("JSON");
        let hex = file["params"][2]["hex"].as_str().expect("hex");
        let mut bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|byte| u8::from_str_radix(&hex[2 * byte..2 * byte + 2], 16).expect("hex"))
            .collect();
        let place = place.index(bytes.len());
        bytes[place] = value;
        if let Ok(params) = Params::parse(&bytes) {
            let mut again = [0xFF; Params::LEN_MAX];
            let length = params.emit(&mut again);
            prop_assert_eq!(Params::parse(&again[..length]), Ok(params));
        }
    }
}
