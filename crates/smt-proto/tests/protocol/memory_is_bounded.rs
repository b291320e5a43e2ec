// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rule 5: memory follows bytes received, never a claim; what has not opened has a small pool of
//! its own.

use bytes::Bytes;
use smt_proto::{Config, OneWayOutcome};
use smt_wire::SessionIndex;

use super::support::configs::ethernet;
use super::support::forge::{EPOCH, ID, MESSAGE_LENGTH, OFFSET, PAYLOAD, set_u32, set_u64};
use super::support::node::replies_of_asked_length;
use super::support::{Answer, Datagram, Load, Random, Verdict, World, body, ms};

const KIB: usize = 1024;

/// The first DATA packet of a call that is lost.
fn template(world: &mut World, session: SessionIndex) -> Datagram {
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.is_recording = true;
    world.call(0, session, body(1, 30_000));
    world.is_recording = false;
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.sent.iter().find(|sent| sent.data().is_some()).cloned().unwrap()
}

#[test]
fn packets_before_record_0_share_a_small_pool() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    let template = template(&mut world, session);
    let mut random = Random::from_env();
    for number in 0..5_000_u64 {
        let mut bytes = template.bytes.clone();
        set_u64(&mut bytes, ID, 2 * (number % 4_000));
        set_u32(&mut bytes, OFFSET, 1 + random.below(50_000) as u32);
        set_u32(&mut bytes, MESSAGE_LENGTH, 64 << 20);
        world.hand_in(&Datagram { bytes, ..template.clone() });
        assert!(world.nodes[1].endpoint.memory() <= 256 * KIB);
    }
    let rpc = world.call(0, session, body(2, 100_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(2, 100_000)));
}

// SMT [5.4-4]
#[test]
fn garbage_for_unseen_ids_holds_nothing() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    let template = template(&mut world, session);
    for number in 0..4_000_u64 {
        let mut bytes = template.bytes.clone();
        set_u64(&mut bytes, ID, 2 * number);
        set_u32(&mut bytes, MESSAGE_LENGTH, 64 << 20);
        bytes[PAYLOAD + 100] ^= 1;
        world.hand_in(&Datagram { bytes, ..template.clone() });
    }
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
    let facts = world.nodes[1].endpoint.statistics();
    assert_eq!(facts.records_failed, 4_000);
    let rpc = world.call(0, session, body(2, 100_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(2, 100_000)));
}

#[test]
fn a_long_message_costs_what_has_arrived_of_it() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    for number in 0..100 {
        world.call(0, session, body(number, 1_000_000));
    }
    world.run_for(ms(1_000));
    // Each message has the smallest buffer with record 0, and the place of the record that its
    // first datagram begins.
    assert!(
        world.nodes[1].endpoint.memory() <= 100 * 21 * KIB,
        "{}",
        world.nodes[1].endpoint.memory()
    );
}

/// Parts of every record that may be sent, under every epoch, a byte each.
// SMT [7.3-11]
#[test]
fn forged_parts_of_an_opened_message_cost_no_more_than_was_granted() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    let template = template(&mut world, session);
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    world.hand_in(&template);
    let length = template.data().unwrap().header.message_length;
    for epoch in 0..=255 {
        for offset in (1_164..length).step_by(1_000) {
            let mut bytes = template.bytes[..PAYLOAD + 1].to_vec();
            set_u32(&mut bytes, OFFSET, offset);
            bytes[EPOCH] = epoch;
            world.hand_in(&Datagram { bytes, ..template.clone() });
        }
    }
    assert!(
        world.nodes[1].endpoint.memory() <= 3 * 32 * KIB + 2 * KIB,
        "{}",
        world.nodes[1].endpoint.memory()
    );
}

// SMT [9.2-17]
#[test]
fn messages_wait_while_memory_is_full_and_arrive_in_the_end() {
    let mut server = ethernet();
    server.memory_max = 1024 * KIB;
    let (mut world, session, _) = World::connected_with(ethernet(), server);
    world.nodes[1].application = Box::new(|_| Answer::Reply(Bytes::new()));
    let calls: Vec<_> =
        (0..40).map(|number| world.call(0, session, body(number, 2_000_000))).collect();
    let mut most = 0;
    let end = world.now + ms(20_000);
    while world.step(end) {
        most = most.max(world.nodes[1].endpoint.memory());
    }
    for rpc in calls {
        assert_eq!(world.outcome(0, rpc), Ok(Bytes::new()));
    }
    // One message beyond the bound, in a buffer that has grown by doubling; and what was granted
    // before.
    assert!(most <= 6_000_000, "{most}");
    assert!(world.nodes[1].endpoint.statistics().memory_refusals > 0);
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
}

#[test]
fn an_endless_exchange_leaves_nothing() {
    let (mut world, client, server) = World::connected();
    for round in 0..20 {
        let load =
            Load { messages: 1_000, at_once: 100, size_max: 2_000, random: Random::new(round) };
        load.run(&mut world, [client, server]);
        super::support::load::assert_nothing_is_left(&world, [client, server]);
        world.nodes.iter_mut().for_each(|node| node.delivered.clear());
    }
}

#[test]
fn many_calls_at_once_ask_for_short_first_parts_of_their_replies() {
    let mut client = Config::default();
    client.incast_calls = 10;
    let (mut world, session, _) = World::connected_with(client, Config::default());
    world.nodes[1].application = replies_of_asked_length();
    world.is_recording = true;
    let calls: Vec<_> = (0..100)
        .map(|_| world.call(0, session, 50_000_u32.to_be_bytes().to_vec().into()))
        .collect();
    for rpc in calls {
        assert_eq!(world.outcome(0, rpc), Ok(body(50_000, 50_000)));
    }
    let replies = world.sent.iter().filter_map(|sent| sent.data().filter(|_| sent.from == 1));
    let short = replies.filter(|data| data.header.offset == 0 && data.payload.len() == 1_164);
    assert_eq!(short.count(), 90);
}

/// Record 0 of each message arrives, and the last record that needs no grant: it makes room for all
/// between.
#[test]
fn messages_that_come_from_their_end_are_bounded_too() {
    let mut server = ethernet();
    server.memory_max = 1024 * KIB;
    let (mut world, session, _) = World::connected_with(ethernet(), server);
    let all_have_begun = world.now + ms(2);
    world.rule = Box::new(move |datagram, _| match datagram.data() {
        Some(data) if data.header.offset == 0 => Verdict::Deliver,
        Some(data) if data.header.offset < 50_382 || datagram.at < all_have_begun => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    for number in 0..700 {
        world.call(0, session, body(number, 100_000));
    }
    world.run_for(ms(60));
    let memory = world.nodes[1].endpoint.memory();
    // One message beyond the bound, and a buffer grows by doubling.
    assert!((512 * KIB..=2 * (1024 * KIB + 66_788)).contains(&memory), "{memory}");
}

/// The second node's application takes nothing: so many bytes of whole messages wait for it.
fn fill_with_untaken(world: &mut World, bytes: usize) {
    world.nodes[1].endpoint.set_untaken(bytes);
}

#[test]
fn whole_messages_that_are_not_taken_keep_others_out() {
    let mut server = ethernet();
    server.memory_max = 1024 * KIB;
    let (mut world, session, _) = World::connected_with(ethernet(), server);
    // The part of a long message that needs no grant has come.
    world.rule = Box::new(|datagram, _| match datagram.from {
        1 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    let long = world.send_one_way(0, session, body(1, 2_000_000));
    world.run_for(ms(1));
    world.rule = Box::new(|_, _| Verdict::Deliver);
    fill_with_untaken(&mut world, 1024 * KIB);
    let short = world.send_one_way(0, session, body(2, 100));
    world.run_for(ms(1_000));
    let endpoint = &world.nodes[1].endpoint;
    assert_eq!(endpoint.statistics().messages_delivered, 0);
    assert!(endpoint.memory() < 2 * 1024 * KIB, "{}", endpoint.memory());
    fill_with_untaken(&mut world, 0);
    for rpc in [short, long] {
        assert_eq!(world.one_way_outcome(0, rpc), OneWayOutcome::Delivered);
    }
}

/// A server with little memory of which node 0 has begun so many long calls, and finishes none; and
/// the session of node 2 with it.
fn beside_an_idler(calls: u64) -> (World, SessionIndex) {
    let mut server = ethernet();
    server.accept = true;
    server.memory_max = 1024 * KIB;
    let mut world = World::new(vec![ethernet(), server, ethernet()]);
    let (idler, _) = world.connect(0, 1).unwrap();
    let (other, _) = world.connect(2, 1).unwrap();
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if datagram.from == 0 && data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    for number in 0..calls {
        world.call(0, idler, body(number, 100_000));
    }
    world.run_for(ms(10));
    (world, other)
}

/// Memory that was promised to messages that never come takes up nothing.
#[test]
fn a_peer_that_finishes_nothing_does_not_keep_short_messages_of_others_out() {
    let (mut world, other) = beside_an_idler(20);
    let began = world.now;
    let alone = world.call(2, other, body(1, 100));
    assert_eq!(world.outcome(2, alone), Ok(body(1, 100)));
    let together = world.start_calls(2, other, (0..9).map(|number| body(number, 100)));
    for (number, rpc) in (0..).zip(together) {
        assert_eq!(world.outcome(2, rpc), Ok(body(number, 100)));
    }
    assert!(world.now.since(began) < ms(1), "none had to come again");
}

/// No peer gets more promises than are left for others.
#[test]
fn a_peer_that_finishes_nothing_does_not_keep_long_messages_of_others_out() {
    let (mut world, other) = beside_an_idler(40);
    let refused = world.nodes[1].endpoint.statistics().memory_refusals;
    assert!(refused > 0, "one peer did not take all it could get");
    let began = world.now;
    let together = world.start_calls(2, other, (0..4).map(|number| body(number, 60_000)));
    for (number, rpc) in (0..).zip(together) {
        assert_eq!(world.outcome(2, rpc), Ok(body(number, 60_000)));
    }
    assert!(world.now.since(began) < ms(1), "none had to come again");
}

/// Each could be granted to its end in turn, since of those that need grants it has the fewest
/// bytes left.
#[test]
fn a_peer_that_withholds_the_end_of_each_message_has_one_beyond_the_bound() {
    let mut server = ethernet();
    server.memory_max = 1024 * KIB;
    server.unscheduled = 2_000;
    let (mut world, session, _) = World::connected_with(ethernet(), server);
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.offset > 990_000 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    for number in 0..20 {
        world.send_one_way(0, session, body(number, 1_000_000));
    }
    for _ in 0..100 {
        world.run_for(ms(1));
        let memory = world.nodes[1].endpoint.memory();
        // One message, and what was granted while there was room; buffers grow ahead of their
        // bytes.
        let most = (1024 + 512) * KIB + 1_000_000;
        assert!(memory <= most + most / 4, "{memory} of {most}");
    }
}

/// Memory that a message was promised is given back however it ends, and the peer may begin others.
#[test]
fn promised_memory_is_given_back() {
    let mut server = ethernet();
    server.memory_max = 1024 * KIB;
    let (mut world, session, _) = World::connected_with(ethernet(), server);
    for round in 0..20 {
        world.rule = Box::new(|datagram, _| match datagram.data() {
            Some(data) if data.header.offset > 0 => Verdict::Drop,
            _ => Verdict::Deliver,
        });
        let cancelled = world.start_calls(0, session, (0..4).map(|number| body(number, 100_000)));
        world.run_for(ms(1));
        let now = world.now;
        for rpc in cancelled {
            assert!(world.nodes[0].endpoint.cancel(now, rpc));
        }
        world.rule = Box::new(|_, _| Verdict::Deliver);
        world.run_for(ms(20));
        let rpc = world.call(0, session, body(round, 200_000));
        assert_eq!(world.outcome(0, rpc), Ok(body(round, 200_000)));
    }
    let refused = world.nodes[1].endpoint.statistics().memory_refusals;
    assert_eq!(refused, 0);
}

/// In a bundle as alone.
#[test]
fn one_way_messages_that_come_together_are_bounded() {
    let mut server = ethernet();
    server.memory_max = 1024 * KIB;
    let (mut world, session, _) = World::connected_with(ethernet(), server);
    fill_with_untaken(&mut world, 1024 * KIB);
    let now = world.now;
    let mut send = |number| {
        let endpoint = &mut world.nodes[0].endpoint;
        endpoint.send_one_way(now, session, body(number, 100), None).unwrap()
    };
    let together: Vec<_> = (0..8).map(&mut send).collect();
    world.run_for(ms(1_000));
    assert_eq!(world.nodes[1].endpoint.statistics().messages_delivered, 0);
    fill_with_untaken(&mut world, 0);
    for rpc in together {
        assert_eq!(world.one_way_outcome(0, rpc), OneWayOutcome::Delivered);
    }
}

/// No application of this node may ever take a message: messages beyond a bound of their own are
/// not marked, and come again.
#[test]
fn messages_that_no_application_takes_are_bounded_by_less_than_all_memory() {
    for (length, waiting) in [(100, 64_950), (30_000, 40_000), (200_000, 0)] {
        let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
        let server = &mut world.nodes[1].endpoint;
        server.set_untaken_max(65_000);
        server.set_untaken(waiting);
        let fits = world.send_one_way(0, session, body(1, 50));
        world.one_way_outcome(0, fits);
        let beyond = world.send_one_way(0, session, body(2, length));
        world.run_for(ms(100));
        let node = &mut world.nodes[1];
        assert_eq!(node.delivered.len(), 1, "{length}");
        let held = node.endpoint.memory() - node.endpoint.reordered_memory();
        assert_eq!(held, waiting, "{length}");
        node.endpoint.set_untaken_max(usize::MAX);
        assert_eq!(world.one_way_outcome(0, beyond), OneWayOutcome::Delivered);
    }
}

#[test]
fn replies_arrive_although_no_application_may_ever_take_a_message() {
    let (mut world, _, session) = World::connected_with(ethernet(), ethernet());
    world.nodes[0].application = replies_of_asked_length();
    world.nodes[1].endpoint.set_untaken_max(0);
    let asked = 2_000_000_u32.to_be_bytes().to_vec();
    let rpc = world.call(1, session, asked.into());
    assert_eq!(world.outcome(1, rpc), Ok(body(2_000_000, 2_000_000)));
}

#[test]
fn replies_arrive_although_the_application_takes_no_messages() {
    let mut server = ethernet();
    server.memory_max = 1024 * KIB;
    let (mut world, _, session) = World::connected_with(ethernet(), server);
    world.nodes[0].application = replies_of_asked_length();
    fill_with_untaken(&mut world, 1024 * KIB);
    let asked = 2_000_000_u32.to_be_bytes().to_vec();
    let rpc = world.call(1, session, asked.into());
    assert_eq!(world.outcome(1, rpc), Ok(body(2_000_000, 2_000_000)));
}

/// A client that acknowledges nothing gets no more replies.
#[test]
fn replies_that_are_not_acknowledged_are_bounded() {
    let mut server = ethernet();
    server.memory_max = 4 * 1024 * KIB;
    let (mut world, session, _) = World::connected_with(ethernet(), server);
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(1, 100 * KIB)));
    world.rule = Box::new(|datagram, _| match (datagram.from, datagram.data()) {
        (1, Some(_)) => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    let calls: Vec<_> =
        (0..100).map(|number| world.call(0, session, body(number, 2_000))).collect();
    world.run_for(ms(1_000));
    let taken = world.nodes[1].delivered.len();
    assert!((10..=11).contains(&taken), "{taken} requests were taken");
    world.rule = Box::new(|_, _| Verdict::Deliver);
    for rpc in calls {
        assert_eq!(world.outcome(0, rpc).unwrap().len(), 100 * KIB);
    }
}

/// Nor do many together get more than there is: each that keeps something waits, and one that keeps
/// nothing is served.
#[test]
fn replies_that_many_do_not_acknowledge_are_bounded_together() {
    let mut server = ethernet();
    server.accept = true;
    server.memory_max = 4 * 1024 * KIB;
    let configs = std::iter::once(server).chain((0..10).map(|_| ethernet()));
    let mut world = World::new(configs.collect());
    world.nodes[0].application = Box::new(|_| Answer::Reply(body(1, 100 * KIB)));
    let sessions: Vec<_> = (1..=10).map(|client| world.connect(client, 0).unwrap().0).collect();
    world.rule = Box::new(|datagram, _| match (datagram.from, datagram.data()) {
        (0, Some(_)) => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    let mut calls = Vec::new();
    for (at, session) in sessions.iter().enumerate().take(9) {
        calls.extend(
            (0..20).map(|number| (at + 1, world.call(at + 1, *session, body(number, 2_000)))),
        );
    }
    world.run_for(ms(1_000));
    // Four have a quarter each, or all somewhat less; of the others each has one beyond what is
    // left for it.
    let taken = world.nodes[0].delivered.len();
    assert!((35..=50).contains(&taken), "{taken} requests were taken");
    calls.push((10, world.call(10, sessions[9], body(0, 2_000))));
    world.run_for(ms(100));
    assert_eq!(world.nodes[0].delivered.len(), taken + 1);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    for (client, rpc) in calls {
        assert_eq!(world.outcome(client, rpc).unwrap().len(), 100 * KIB);
    }
}
