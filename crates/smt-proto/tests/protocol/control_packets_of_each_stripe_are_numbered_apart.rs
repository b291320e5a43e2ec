// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control packets of all stripes are sealed under one key: the stripe is part of the nonce, and
//! each stripe has its own window against replays (SPEC §3.4, §4.3).

use std::collections::BTreeSet;

use smt_proto::Config;
use smt_record::Side;
use smt_wire::{Body, Control, ControlNumber, List, Packet, PacketType};

use super::support::configs::short_lived_keys;
use super::support::rogue::{Rogue, striped};
use super::support::rule::trouble;
use super::support::{Datagram, Load, Random, Verdict, World};

fn striped_pair() -> (World, Rogue, Rogue) {
    let mut config = Config::default();
    config.stripes_log2 = 1;
    let (world, client, server) = World::connected_with(config.clone(), config);
    (world, Rogue::client(server), Rogue::server(client))
}

fn number(stripe: u16, counter: u64) -> ControlNumber {
    ControlNumber { stripe, counter }
}

fn controls(datagram: &Datagram) -> Vec<Control<'_>> {
    let packets = datagram.packets().into_iter();
    let controls = packets.filter_map(|packet| match packet {
        Packet::Control(control) => Some(control),
        _ => None,
    });
    controls.collect()
}

/// From the first CONFIRM on, over loss and the ends of keys.
// SMT [3.4-4], [4.3-1]
#[test]
fn no_control_number_is_used_twice() {
    let mut random = Random::from_env();
    let mut config = short_lived_keys();
    config.stripes_log2 = 1;
    let mut world = World::pair(config.clone(), config);
    world.is_recording = true;
    let mut confirms = [0; 2];
    world.rule = Box::new(move |datagram, _| {
        let of_sender = &mut confirms[datagram.from];
        *of_sender += usize::from(datagram.has(PacketType::Confirm));
        match datagram.has(PacketType::Confirm) && *of_sender < 3 {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    let (client, server) = world.connect(0, 1).unwrap();
    world.rule = Box::new(trouble(Random::new(random.any()), 10));
    let load = Load { messages: 500, at_once: 20, size_max: 50_000, random };
    load.run(&mut world, [client, server]);
    let mut used = BTreeSet::new();
    for sent in &world.sent {
        for control in controls(sent) {
            let number = (sent.from, control.header.session, control.header.number.to_u64());
            assert!(used.insert(number), "{}", sent.line());
        }
    }
    assert!(used.len() > 500, "{}", used.len());
}

/// Two of equal counters, under equal nonces, would give the key of the tags away.
// SMT [3.4-2], [4.3-1]
#[test]
fn control_packets_of_equal_counters_are_sealed_under_different_nonces() {
    let (mut world, mut client, server) = striped_pair();
    world.is_recording = true;
    for counter in 0..20 {
        let ids = [0, 1].map(|stripe| striped(1).id(100 + counter, Side::Client, stripe));
        for id in ids {
            let id = [id.unwrap()];
            client.say(&mut world, &[Body::NeedAck(List::from(&id[..]))]);
        }
    }
    let mut sealed = BTreeSet::new();
    for control in world.sent.iter().flat_map(controls) {
        let number = control.header.number;
        let nonce = u64::from(number.stripe) << 48 | number.counter;
        let tag = server.tag_of(nonce, control.aad);
        assert_eq!(control.sealed, tag, "{number:?}");
        sealed.insert((number.counter, number.stripe));
    }
    let both = sealed.iter().filter(|(_, stripe)| *stripe == 0);
    let both = both.filter(|(counter, _)| sealed.contains(&(*counter, 1)));
    assert!(both.count() > 0, "{sealed:?}");
}

#[test]
fn control_packets_of_equal_counters_open_under_different_nonces() {
    let (mut world, client, _) = striped_pair();
    world.is_recording = true;
    for stripe in [0, 1] {
        let ping = client.control(&world, number(stripe, 700), &Body::Ping(7));
        world.sent.clear();
        world.hand_in(&ping);
        let answers = world.sent.iter().filter(|sent| sent.has(PacketType::Pong));
        assert_eq!(answers.count(), 1, "stripe {stripe}");
    }
    assert_eq!(world.nodes[1].endpoint.statistics().controls_forged, 0);
}

#[test]
fn a_replayed_control_packet_has_no_effect_in_any_stripe() {
    let (mut world, client, _) = striped_pair();
    for stripe in [0, 1] {
        let ping = client.control(&world, number(stripe, 700), &Body::Ping(7));
        world.hand_in(&ping);
        let replayed = world.nodes[1].endpoint.statistics().controls_replayed;
        world.is_recording = true;
        world.hand_in(&ping);
        assert!(world.sent.is_empty(), "stripe {stripe}: {}", world.trace());
        world.is_recording = false;
        let counted = world.nodes[1].endpoint.statistics().controls_replayed;
        assert_eq!(counted, replayed + 1, "stripe {stripe}");
    }
}
