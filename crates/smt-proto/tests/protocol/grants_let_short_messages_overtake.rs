// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The receiver schedules: shortest remaining first, a few at once, a share for the oldest.

use std::collections::BTreeMap;

use smt_proto::{Config, Event, RpcId};
use smt_wire::{Body, MessageId, Packet, PacketType};

use super::support::configs::ethernet;
use super::support::forge::PAYLOAD;
use super::support::rule::trouble;
use super::support::{Datagram, Random, Verdict, World, body, ms, us};

const MB: usize = 1_000_000;

/// The nodes whose calls have ended, in order of their end.
fn order(world: &mut World, calls: &[(usize, RpcId)]) -> Vec<usize> {
    let mut order = Vec::new();
    let end = world.now + ms(60_000);
    while order.len() < calls.len() && world.step(end) {
        for (node, of) in calls {
            let found = world.nodes[*node].event(|event| match event {
                Event::Reply { rpc, .. } if rpc == of => Some(()),
                Event::CallFailed { error, .. } => panic!("{error}"),
                _ => None,
            });
            order.extend(found.map(|()| *node));
        }
    }
    order
}

#[test]
fn a_short_message_overtakes_a_long_one() {
    let (mut world, sessions) = World::star(2);
    let long = world.call(1, sessions[0], body(1, 50 * MB));
    world.run_for(ms(2));
    let short = world.call(2, sessions[1], body(2, MB));
    let began = world.now;
    assert_eq!(order(&mut world, &[(2, short)]), [2]);
    let took = world.now.since(began);
    // 0.8 ms alone on the link; what was granted before is on its way.
    assert!(took < ms(3), "{took:?}");
    assert_eq!(order(&mut world, &[(1, long)]), [1]);
}

#[test]
fn messages_of_nine_senders_end_shortest_first() {
    let (mut world, sessions) = World::star(9);
    let calls: Vec<_> = (0..9)
        .map(|at| (at + 1, world.call(at + 1, sessions[at], body(at as u64, (9 - at) * MB / 2))))
        .collect();
    assert_eq!(order(&mut world, &calls), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn granted_bytes_that_have_not_arrived_are_bounded() {
    let (mut world, sessions) = World::star(12);
    world.is_recording = true;
    for (at, session) in sessions.iter().enumerate() {
        world.call(at + 1, *session, body(at as u64, 3 * MB));
    }
    world.run_for(ms(200));
    assert_eq!(world.nodes[0].delivered.len(), 12);
    let mut open: BTreeMap<usize, u32> = BTreeMap::new();
    let mut most = 0;
    for sent in &world.sent {
        for packet in sent.packets() {
            if let Packet::Control(control) = packet
                && let Body::Grant(list) = control.body
            {
                list.iter().for_each(|grant| {
                    open.insert(sent.to, grant.granted - grant.received);
                });
            }
        }
        most = most.max(open.values().sum());
    }
    // The budget; each of eight rounded up to a record; the oldest, which is not among them; and
    // what messages that were overtaken still have.
    assert!((200 * 1024..640 * 1024).contains(&most), "{most}");
}

/// Twelve senders, always eight shorter than the oldest: it gets on all the same.
#[test]
fn the_oldest_message_is_not_starved() {
    let (mut world, sessions) = World::star(12);
    let oldest = world.call(1, sessions[0], body(1, 5 * MB));
    world.run_for(ms(1));
    let mut others: Vec<(usize, RpcId)> = Vec::new();
    let mut number = 0;
    let end = world.now + ms(600);
    while world.now < end {
        while others.len() < 22 {
            number += 1;
            let client = 2 + number % 11;
            others
                .push((client, world.call(client, sessions[client - 1], body(number as u64, MB))));
        }
        world.step(end);
        others.retain(|(node, of)| {
            let done = world.nodes[*node].event(|event| {
                matches!(event, Event::Reply { rpc, .. } if rpc == of).then_some(())
            });
            done.is_none()
        });
        let is_done = world.nodes[1].event(|event| {
            matches!(event, Event::Reply { rpc, .. } if *rpc == oldest).then_some(())
        });
        if is_done.is_some() {
            return;
        }
        world.nodes[0].delivered.clear();
    }
    panic!("0.6 s are enough for 5 % of 10 Gb/s to carry 5 MB");
}

#[test]
fn senders_that_die_do_not_hold_up_the_others() {
    let (mut world, sessions) = World::star(12);
    for (at, session) in sessions.iter().take(10).enumerate() {
        world.call(at + 1, *session, body(at as u64, MB));
    }
    world.run_for(us(200));
    world.rule =
        Box::new(
            |datagram, _| {
                if (1..=10).contains(&datagram.from) { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    let began = world.now;
    let calls = [
        (11, world.call(11, sessions[10], body(11, 5 * MB))),
        (12, world.call(12, sessions[11], body(12, 5 * MB))),
    ];
    assert_eq!(order(&mut world, &calls).len(), 2);
    let took = world.now.since(began);
    assert!(took < ms(500), "{took:?}");
}

#[test]
fn lost_grants_are_repeated() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    let mut count = 0;
    world.rule = Box::new(move |datagram, _| {
        count += usize::from(datagram.has(PacketType::Grant));
        if datagram.has(PacketType::Grant) && count % 3 != 0 {
            Verdict::Drop
        } else {
            Verdict::Deliver
        }
    });
    let rpc = world.call(0, session, body(1, 5 * MB));
    assert!(world.outcome(0, rpc) == Ok(body(1, 5 * MB)));
}

// SMT [9.2-1]
#[test]
fn no_grant_names_a_message_before_its_record_0_has_opened() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.is_recording = true;
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.offset == 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    world.call(0, session, body(1, 5 * MB));
    world.run_for(ms(1_000));
    assert!(!world.sent.iter().any(|sent| sent.has(PacketType::Grant)));
}

/// However packets are lost, repeated and reordered.
// SMT [8-4], [9.2-3]
#[test]
fn a_grant_never_goes_back_and_has_room_for_a_record() {
    let (mut world, sessions) = World::star(4);
    world.is_recording = true;
    world.rule = Box::new(trouble(Random::from_env(), 3));
    let calls: Vec<_> = (0..8)
        .map(|at| (1 + at % 4, world.call(1 + at % 4, sessions[at % 4], body(at as u64, 2 * MB))))
        .collect();
    assert_eq!(order(&mut world, &calls).len(), 8);
    // 2,000,040 bytes are record 0 and 122 more.
    let length = 2_000_040 + 123 * 22;
    let mut last: BTreeMap<(usize, MessageId), (u32, u32)> = BTreeMap::new();
    for sent in &world.sent {
        for packet in sent.packets() {
            let Packet::Control(control) = packet else { continue };
            let Body::Grant(list) = control.body else { continue };
            for grant in list.iter() {
                let name = (sent.to, grant.id);
                let before = last.insert(name, (grant.granted, grant.received));
                let (granted, received) = before.unwrap_or_default();
                assert!(grant.granted >= granted && grant.received >= received, "{grant:?}");
                let room = grant.granted - grant.received;
                let is_enough = room >= 16_384 + 22 || grant.granted == length;
                assert!(grant.granted == granted || is_enough, "{grant:?} behind {granted}");
            }
        }
    }
    assert_eq!(last.len(), 8);
}

/// A peer may write anything into a GRANT; a priority of 200 is none of ours.
#[test]
fn priorities_are_in_their_range() {
    let (mut world, session, _) = World::connected_with(Config::default(), Config::default());
    world.nodes[1].endpoint.set_grant_policy(Box::new(Loud));
    let rpc = world.call(0, session, body(1, MB));
    // `Transmit::assert_valid` watches in the harness.
    assert!(world.outcome(0, rpc).is_ok());
}

struct Loud;

impl smt_proto::GrantPolicy for Loud {
    fn grant(
        &mut self,
        _now: smt_proto::Time,
        messages: &[smt_proto::Grantable],
        _budget: smt_proto::GrantBudget,
        decisions: &mut Vec<smt_proto::Granted>,
    ) {
        decisions.extend(messages.iter().map(|message| smt_proto::Granted {
            rpc: message.rpc,
            end: message.length,
            priority: 200,
        }));
    }
}

/// A dead sender's packets, cut short and forged: bytes that have not opened earn no place.
#[test]
fn forged_packets_get_a_dead_sender_no_grants() {
    let mut server = ethernet();
    server.accept = true;
    let mut world = World::new(vec![ethernet(), server, ethernet()]);
    let (dead, _) = world.connect(0, 1).unwrap();
    let (honest, _) = world.connect(2, 1).unwrap();
    world.is_recording = true;
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if datagram.from == 0 && data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    for number in 0..8 {
        world.call(0, dead, body(number, 2 * MB));
    }
    world.run_for(us(100));
    let first = |sent: &&Datagram| sent.data().is_some_and(|data| data.header.offset == 0);
    let firsts: Vec<Datagram> = world.sent.iter().filter(first).cloned().collect();
    world.is_recording = false;
    world.rule =
        Box::new(|datagram, _| if datagram.from == 0 { Verdict::Drop } else { Verdict::Deliver });
    // 125 B/us: 5 MB take 40 ms.
    world.rate = 125;
    let rpc = world.call(2, honest, body(9, 5 * MB));
    for _ in 0..500 {
        for first in &firsts {
            world
                .hand_in(&Datagram { bytes: first.bytes[..PAYLOAD + 1].to_vec(), ..first.clone() });
        }
        world.run_for(ms(1));
    }
    assert_eq!(firsts.len(), 8);
    let is_done = world.nodes[2]
        .event(|event| matches!(event, Event::Reply { rpc: of, .. } if *of == rpc).then_some(()));
    assert!(is_done.is_some(), "it has waited for half a second");
}

/// Each message has the budget to itself when it begins.
#[test]
fn granted_bytes_are_bounded_although_messages_begin_one_after_the_other() {
    let config = ethernet();
    let budget = config.incoming_max;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.is_recording = true;
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    for number in 0..50 {
        world.call(0, session, body(number, 400_000));
        world.run_for(us(30));
    }
    let mut open = BTreeMap::new();
    for sent in &world.sent {
        for packet in sent.packets() {
            if let Packet::Control(control) = packet
                && let Body::Grant(list) = control.body
            {
                // 66,788 bytes, to the end of a record, needed no grant.
                list.iter().for_each(|grant| {
                    open.insert(grant.id, grant.granted - grant.received.max(66_788));
                });
            }
        }
    }
    let sum: u32 = open.values().sum();
    // Each grant is rounded up to a record.
    assert!((budget / 2..=budget + 8 * 16_406).contains(&sum), "{sum} of {budget}");
}
