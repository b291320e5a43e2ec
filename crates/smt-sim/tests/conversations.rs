// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `vectors/conversations/` has what the example makes, and a fresh endpoint that is given a file's
//! inputs sends and tells what the file says, byte for byte.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../examples/make_conversations/driven.rs"]
mod driven;
#[path = "../examples/make_conversations/network.rs"]
mod network;
#[path = "../examples/make_conversations/scripts.rs"]
mod scripts;
#[path = "../examples/make_conversations/setup.rs"]
mod setup;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use driven::Driven;
use serde_json::Value;
use setup::{Exchange, Setup, from_hex};
use smt_record::KeyLimits;
use smt_wire::{Packet, PacketType, VERSION, parse};

/// Names and texts of the files.
fn files() -> Vec<(String, String)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/conversations");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn the_files_are_what_the_example_makes() {
    let mut made: Vec<(String, String)> = scripts::all()
        .into_iter()
        .map(|(name, conversation)| (name.to_owned(), format!("{conversation:#}\n")))
        .collect();
    made.sort();
    let names = |of: &[(String, String)]| -> Vec<String> {
        of.iter().map(|(name, _)| name.clone()).collect()
    };
    let files = files();
    assert_eq!(names(&files), names(&made));
    for (file, made) in files.iter().zip(&made) {
        assert!(
            file == made,
            "{}: write it again: cargo run -p smt-sim --example make_conversations",
            file.0
        );
    }
}

#[test]
fn a_fresh_endpoint_says_what_the_files_say() {
    for (name, text) in files() {
        let conversation: Value = serde_json::from_str(&text).unwrap();
        let setup = setup_of(&conversation["endpoint"]);
        assert_eq!(setup.to_json(), conversation["endpoint"], "{name}");
        let mut driven = Driven::new(&setup);
        let mut before = 0;
        for (number, step) in conversation["steps"].as_array().unwrap().iter().enumerate() {
            let mut input = step.clone();
            input.as_object_mut().unwrap().remove("out");
            input.as_object_mut().unwrap().remove("events");
            let at_us = step["at_us"].as_u64().unwrap();
            // A timer goes off when the endpoint wants it, and never later.
            let due = driven.due_us().map(|due| due.max(before));
            let is_timer = input.get("timer").is_some();
            let is_right = due.is_none_or(|due| at_us <= due) && (!is_timer || due == Some(at_us));
            assert!(is_right, "{name}, step {number}: the timer is set to {due:?}");
            before = at_us;
            assert_eq!(driven.step(&input), *step, "{name}, step {number}");
        }
        let lines: Vec<Value> = driven.lines.take().into_iter().map(Value::from).collect();
        assert_eq!(Value::from(lines), conversation["key_log"], "{name}");
    }
}

/// Otherwise a change of the protocol could empty a conversation unseen.
#[test]
fn the_files_have_packets_of_every_type_that_they_are_about() {
    let mut seen = BTreeSet::new();
    for (_, text) in files() {
        let conversation: Value = serde_json::from_str(&text).unwrap();
        for step in conversation["steps"].as_array().unwrap() {
            let sent = step["out"].as_array().unwrap();
            for datagram in sent.iter().chain(step.get("in")) {
                let bytes = from_hex(datagram);
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let (packet, further) = parse(VERSION, rest).unwrap();
                    seen.insert(type_of(&packet).to_string());
                    rest = further;
                }
            }
        }
    }
    for packet in [
        PacketType::Data,
        PacketType::Handshake,
        PacketType::Reset,
        PacketType::Confirm,
        PacketType::Grant,
        PacketType::Resend,
        PacketType::Ack,
        PacketType::NeedAck,
        PacketType::Cancel,
        PacketType::Voided,
        PacketType::EpochDone,
        PacketType::EpochAck,
        PacketType::Close,
        PacketType::PartWindow,
        PacketType::PartWindowRequest,
    ] {
        assert!(seen.contains(&packet.to_string()), "{packet} in {seen:?}");
    }
}

fn type_of(packet: &Packet<'_>) -> PacketType {
    match packet {
        Packet::Data(_) => PacketType::Data,
        Packet::Handshake(_) => PacketType::Handshake,
        Packet::Reset(_) => PacketType::Reset,
        Packet::Control(control) => control.body.packet_type(),
        other => panic!("{other:?} belongs to no conversation"),
    }
}

/// The setup that a file describes. The key is the one that all conversations have.
fn setup_of(value: &Value) -> Setup {
    let mut setup = Setup::new(value["side"] == "server");
    let number = |name: &str| value[name].as_u64().expect(name);
    let small = |name: &str| u32::try_from(number(name)).expect(name);
    let flag = |name: &str| value[name].as_bool().expect(name);
    setup.exchange = match value["tls"]["seed"].as_u64() {
        Some(seed) => Exchange::Tls { seed },
        None => Exchange::Registered { random: array(&value["random"]) },
    };
    setup.reset_token = array(&value["reset_token"]);
    let config = &mut setup.config;
    config.boot = small("boot");
    config.durable_boot = flag("durable_boot");
    config.index_bits = number("index_bits") as u8;
    config.record_size = number("record_size") as u16;
    config.first_record_size = number("first_record_size") as u16;
    config.window = small("window");
    config.stripes_log2 = number("stripes") as u8;
    config.message_limit = small("message_limit");
    config.unscheduled = small("unscheduled");
    config.datagram_limit = number("datagram_limit") as u16;
    config.bundles = flag("takes_bundles");
    config.part_window = small("part_window");
    let failed_opens = KeyLimits::default().failed_opens();
    let (records, update_at) = (number("records_per_key"), number("update_at"));
    config.key_limits = KeyLimits::new(records, update_at, failed_opens).unwrap();
    config.incoming_max = small("incoming_max");
    setup
}

fn array<const LEN: usize>(value: &Value) -> [u8; LEN] {
    from_hex(value).try_into().expect("as long as it should be")
}
