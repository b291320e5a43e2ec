// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rule 4: every byte of a control packet is covered by its tag, and each counts once.

use std::cell::RefCell;
use std::rc::Rc;

use smt_wire::Packet;

use super::support::configs::ethernet;
use super::support::forge::flipped;
use super::support::{Datagram, Load, Random, Verdict, World, body, ms};

fn is_control(datagram: &Datagram) -> bool {
    matches!(datagram.packets().first(), Some(Packet::Control(_)))
}

fn load(messages: usize) -> Load {
    Load { messages, at_once: 20, size_max: 300_000, random: Random::from_env() }
}

// SMT [3.4-3]
#[test]
fn a_flipped_bit_anywhere_has_no_effect() {
    let (mut world, client, server) = World::connected_with(ethernet(), ethernet());
    let mut random = Random::from_env();
    let forged = Rc::new(RefCell::new(0));
    let count = Rc::clone(&forged);
    world.rule = Box::new(move |datagram, injected| {
        if is_control(datagram) {
            for _ in 0..10 {
                let at = random.below(datagram.bytes.len());
                let bytes = flipped(&datagram.bytes, at);
                injected.push(Datagram { bytes, ..datagram.clone() });
            }
            *count.borrow_mut() += 10;
        }
        Verdict::Deliver
    });
    load(200).run(&mut world, [client, server]);
    assert!(*forged.borrow() > 500);
    let statistics = world.nodes.iter().map(|node| node.endpoint.statistics());
    assert!(statistics.clone().all(|counted| counted.violations == 0));
    assert!(statistics.map(|counted| counted.controls_forged).sum::<u64>() > 200);
}

// SMT [3.4-5], [4.3-2]
#[test]
fn a_replayed_control_packet_counts_once() {
    let (mut world, client, server) = World::connected_with(ethernet(), ethernet());
    let mut seen: Vec<Datagram> = Vec::new();
    world.rule = Box::new(move |datagram, injected| {
        if is_control(datagram) {
            injected.extend(seen.iter().rev().take(20).cloned());
            injected.extend(seen.iter().take(20).cloned());
            seen.push(datagram.clone());
        }
        Verdict::Deliver
    });
    load(200).run(&mut world, [client, server]);
    let replayed: u64 =
        world.nodes.iter().map(|node| node.endpoint.statistics().controls_replayed).sum();
    assert!(replayed > 1_000, "{replayed}");
}

#[test]
fn a_reflected_control_packet_never_opens() {
    let (mut world, client, server) = World::connected_with(ethernet(), ethernet());
    let mut ends = [client, server];
    ends.reverse();
    world.rule = Box::new(move |datagram, injected| {
        // Back to its sender, with the index that the sender expects there.
        let mut bytes = datagram.bytes.clone();
        bytes[12..20].copy_from_slice(&ends[1 - datagram.from].0.to_be_bytes());
        injected.push(Datagram { from: datagram.to, to: datagram.from, bytes, ..*datagram });
        Verdict::Deliver
    });
    load(200).run(&mut world, [client, server]);
}

#[test]
fn a_control_packet_of_another_session_never_opens() {
    let (mut world, first, _) = World::connected();
    let (second, _) = world.connect(0, 1).unwrap();
    assert_ne!(first, second);
    world.is_recording = true;
    for session in [first, second] {
        let rpc = world.call(0, session, body(1, 500_000));
        world.outcome(0, rpc).unwrap();
    }
    world.run_for(ms(1_000));
    world.is_recording = false;
    let sent = std::mem::take(&mut world.sent);
    let before = world.nodes[0].endpoint.statistics().controls_forged;
    let to_client: Vec<_> =
        sent.iter().filter(|datagram| datagram.to == 0 && is_control(datagram)).collect();
    for datagram in &to_client {
        let mut bytes = datagram.bytes.clone();
        let other = if bytes[12..20] == first.0.to_be_bytes() { second } else { first };
        bytes[12..20].copy_from_slice(&other.0.to_be_bytes());
        // A number that was not used yet.
        bytes[22] ^= 0x01;
        world.hand_in(&Datagram { bytes, ..(*datagram).clone() });
    }
    let forged = world.nodes[0].endpoint.statistics().controls_forged - before;
    assert_eq!(forged as usize, to_client.len());
    assert_eq!(world.nodes[0].endpoint.sessions_len(), 2);
}
