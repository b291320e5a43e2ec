// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SPEC §9.10: what is pulled fills the receiver's link and no more, in turn or shortest first.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{Event, Pull, PullOrder, RpcId, TimerReason};
use smt_wire::{Body, Packet, SessionIndex};

use super::support::configs::ethernet;
use super::support::{Answer, Verdict, World, body, ms, us};

const MB: usize = 1_000_000;
/// The rate of record streams on a link of 10 Gb/s whose packets have headers of 36 bytes.
const RATE: u64 = 9_700_000_000;

/// The server pulls by this policy.
fn star(clients: usize, policy: Pull) -> (World, Vec<SessionIndex>) {
    let (mut world, sessions) = World::star(clients);
    world.nodes[0].endpoint.set_pull_policy(Box::new(policy));
    (world, sessions)
}

/// When each call has ended, by node.
fn ends(world: &mut World, calls: &[(usize, RpcId)]) -> BTreeMap<usize, u64> {
    let mut ends = BTreeMap::new();
    let (began, last) = (world.now, world.now + ms(60_000));
    while ends.len() < calls.len() && world.step(last) {
        for (node, of) in calls {
            let is_end = |event: &Event| {
                matches!(event, Event::Reply { rpc, .. } if rpc == of).then_some(())
            };
            if world.nodes[*node].event(is_end).is_some() {
                ends.insert(*node, world.now.since(began).as_micros() as u64);
            }
        }
    }
    ends
}

fn call_all(world: &mut World, sessions: &[SessionIndex], sizes: &[usize]) -> Vec<(usize, RpcId)> {
    let all = sessions.iter().zip(sizes).enumerate();
    all.map(|(at, (session, size))| (at + 1, world.call(at + 1, *session, body(at as u64, *size))))
        .collect()
}

#[test]
fn the_link_is_full_and_its_queue_is_short() {
    for order in [PullOrder::RoundRobin, PullOrder::ShortestFirst] {
        let (mut world, sessions) = star(8, Pull::new(RATE, 40_000).in_order(order));
        let calls = call_all(&mut world, &sessions, &[MB; 8]);
        world.run_for(ms(1));
        // The first windows have passed: 8 x 66,788 bytes at once.
        world.queue_max = 0;
        let ends = ends(&mut world, &calls);
        let last = *ends.values().max().unwrap();
        // 8 MB at 9.7 Gb/s take 6.6 ms, one of which is over.
        assert!(last < 5_900, "{last} us");
        // Records of 16 KB come as bursts of their own.
        assert!(world.queue_max < 3 * 16_406, "{}", world.queue_max);
    }
}

/// Whatever is granted is spread over time: in none of these intervals more than the rate permits.
#[test]
fn grants_keep_to_the_pace() {
    let (mut world, sessions) = star(4, Pull::new(RATE, 40_000));
    world.is_recording = true;
    let calls = call_all(&mut world, &sessions, &[2 * MB; 4]);
    assert_eq!(ends(&mut world, &calls).len(), 4);
    let mut granted: BTreeMap<usize, u32> = BTreeMap::new();
    let mut steps = Vec::new();
    for sent in &world.sent {
        for packet in sent.packets() {
            if let Packet::Control(control) = packet
                && let Body::Grant(list) = control.body
            {
                for grant in list.iter() {
                    // 66,788 bytes, to the end of a record, needed no grant.
                    let before = granted.insert(sent.to, grant.granted).unwrap_or(66_788);
                    steps.push((sent.at.as_nanos(), u64::from(grant.granted - before)));
                }
            }
        }
    }
    assert!(steps.len() > 400);
    let most = |nanos: u64| nanos * RATE / 8_000_000_000 + 16_406 + 40_000;
    for (at, (began, _)) in steps.iter().enumerate() {
        let mut sum = 0;
        for (when, bytes) in &steps[at..] {
            sum += bytes;
            assert!(sum <= most(when - began), "{sum} in {} ns", when - began);
        }
    }
}

#[test]
fn equal_messages_pulled_in_turn_end_together() {
    let (mut world, sessions) = star(8, Pull::new(RATE, 40_000));
    let calls = call_all(&mut world, &sessions, &[MB; 8]);
    let ends = ends(&mut world, &calls);
    let (first, last) = (*ends.values().min().unwrap(), *ends.values().max().unwrap());
    assert!(first * 10 > last * 9, "{ends:?}");
}

#[test]
fn messages_pulled_shortest_first_end_by_length() {
    let policy = Pull::new(RATE, 40_000).in_order(PullOrder::ShortestFirst);
    let (mut world, sessions) = star(5, policy);
    let sizes = [5, 4, 3, 2, 1].map(|size| size * MB);
    let calls = call_all(&mut world, &sessions, &sizes);
    let ends = ends(&mut world, &calls);
    let order: Vec<u64> = ends.values().copied().collect();
    assert!(order.windows(2).all(|pair| pair[0] > pair[1]), "{ends:?}");
}

/// Always seven shorter ones: the oldest has its share.
#[test]
fn pulls_shortest_first_do_not_starve_the_oldest_message() {
    let policy = Pull::new(RATE, 40_000).in_order(PullOrder::ShortestFirst);
    let (mut world, sessions) = star(8, policy);
    let oldest = world.call(1, sessions[0], body(1, 3 * MB));
    let (mut number, mut others) = (0, Vec::new());
    let end = world.now + ms(100);
    while world.now < end {
        while others.len() < 14 {
            number += 1;
            let client = 2 + number % 7;
            let rpc = world.call(client, sessions[client - 1], body(number as u64, MB));
            others.push((client, rpc));
        }
        world.step(end);
        let is_done = |world: &mut World, node: usize, of: RpcId| {
            let ended = |event: &Event| {
                matches!(event, Event::Reply { rpc, .. } if *rpc == of).then_some(())
            };
            world.nodes[node].event(ended).is_some()
        };
        others.retain(|(node, of)| !is_done(&mut world, *node, *of));
        if is_done(&mut world, 1, oldest) {
            return;
        }
        world.nodes[0].delivered.clear();
    }
    panic!("3 MB at 5 % of 10 Gb/s take 48 ms");
}

/// However small the window, a whole record goes (SPEC §9.2).
#[test]
fn a_record_larger_than_the_window_is_pulled_whole() {
    let (mut world, sessions) = star(1, Pull::new(RATE, 1));
    let calls = call_all(&mut world, &sessions, &[MB]);
    assert_eq!(ends(&mut world, &calls).len(), 1);
    assert_eq!(world.nodes[0].endpoint.statistics().resends_asked, 0);
}

/// Its timer is there while something waits for the pace, and not after.
#[test]
fn the_pace_has_a_timer_only_while_something_waits() {
    let (mut world, sessions) = star(3, Pull::new(1_000_000_000, 40_000));
    let is_paced = |world: &World| {
        let due = world.nodes[0].endpoint.poll_timeout();
        due.is_some_and(|(_, reason)| reason == TimerReason::Pull)
    };
    assert!(!is_paced(&world));
    let calls = call_all(&mut world, &sessions, &[200_000; 3]);
    world.run_for(ms(1));
    assert!(is_paced(&world), "600 KB take 4.8 ms");
    assert_eq!(ends(&mut world, &calls).len(), 3);
    world.run_for(ms(10));
    assert!(!is_paced(&world));
    // Until the last replies are acknowledged.
    world.run_for(ms(1_000));
    let before = world.count;
    world.run_for(ms(60_000));
    assert_eq!(world.count, before, "it is quiet");
    // Nor for messages that end while they wait.
    let calls = call_all(&mut world, &sessions, &[200_000; 3]);
    world.run_for(ms(1));
    assert!(is_paced(&world));
    let now = world.now;
    for (node, rpc) in calls {
        world.nodes[node].endpoint.cancel(now, rpc);
    }
    world.run_for(ms(30));
    assert!(!is_paced(&world));
}

/// The pulls of one message leave room for what others send unasked.
#[test]
fn unscheduled_bytes_have_their_part_of_the_link() {
    let (mut world, sessions) = star(6, Pull::new(RATE, 400_000));
    let long = world.call(1, sessions[0], body(0, 20 * MB));
    world.run_for(ms(2));
    world.queue_max = 0;
    // 1,000 messages of 5 KB in 8 ms, a half of the link.
    for number in 0..1_000 {
        let client = 2 + number % 5;
        let small = body(number as u64, 5_000);
        world.send_one_way(client, sessions[client - 1], small);
        world.run_for(us(8));
    }
    assert!(world.queue_max < 150_000, "{}", world.queue_max);
    assert_eq!(ends(&mut world, &[(1, long)]).len(), 1);
}

/// Headers of trimmed packets take their part of the link, too: of 1 Gb/s a half.
// SMT [9.10-15]
#[test]
fn trimmed_headers_have_their_part_of_the_link() {
    let pulled = |with_headers: bool| {
        let (mut world, sessions) = star(1, Pull::new(1_000_000_000, 40_000));
        world.is_recording = true;
        world.call(1, sessions[0], body(0, 20 * MB));
        world.run_for(ms(5));
        let first = world.sent.iter().find(|sent| sent.data().is_some());
        let header = first.cloned().unwrap().trimmed();
        let arrived = |world: &World| {
            let data = world.sent.iter().filter_map(|sent| sent.data());
            data.map(|data| data.payload.len()).sum::<usize>()
        };
        let before = arrived(&world);
        for _ in 0..6_600 {
            if with_headers {
                world.hand_in(&header);
            }
            world.run_for(Duration::from_nanos(1_515));
        }
        arrived(&world) - before
    };
    let (alone, beside) = (pulled(false), pulled(true));
    assert!(alone > 1_150_000, "{alone} bytes in 10 ms");
    assert!((alone * 2 / 5..alone * 3 / 5).contains(&beside), "{beside} of {alone}");
}

/// Memory is full: the messages that have begun end one after the other.
// SMT [9.10-3]
#[test]
fn the_shortest_message_gets_on_while_memory_is_full() {
    let mut server = ethernet();
    server.memory_max = 1024 * 1024;
    let (mut world, session, _) = World::connected_with(ethernet(), server);
    world.nodes[1].application = Box::new(|_| Answer::Reply(Bytes::new()));
    let policy = Pull::new(RATE, 40_000);
    world.nodes[1].endpoint.set_pull_policy(Box::new(policy));
    let calls: Vec<_> =
        (0..40).map(|number| world.call(0, session, body(number, 2 * MB))).collect();
    let mut most = 0;
    let end = world.now + ms(20_000);
    while world.step(end) {
        most = most.max(world.nodes[1].endpoint.memory());
    }
    for rpc in calls {
        assert_eq!(world.outcome(0, rpc), Ok(Bytes::new()));
    }
    assert!(most <= 6 * MB, "{most}");
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
}

/// Senders that die while they are pulled do not hold up the others.
#[test]
fn dead_senders_lose_their_turn() {
    let (mut world, sessions) = star(12, Pull::new(RATE, 100_000));
    for (at, session) in sessions.iter().take(10).enumerate() {
        world.call(at + 1, *session, body(at as u64, MB));
    }
    world.run_for(us(700));
    world.rule = Box::new(|datagram, _| match datagram.from {
        1..=10 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    let calls = [
        (11, world.call(11, sessions[10], body(11, 5 * MB))),
        (12, world.call(12, sessions[11], body(12, 5 * MB))),
    ];
    let ends = ends(&mut world, &calls);
    assert!(ends.values().all(|end| *end < 500_000), "{ends:?}");
}
