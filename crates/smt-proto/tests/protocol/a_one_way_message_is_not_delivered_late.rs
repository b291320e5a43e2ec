// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A one-way message carries how much time is left, and is not delivered after that (SPEC §9.5).

use std::time::Duration;

use bytes::Bytes;
use smt_proto::{CallFailure, Event, OneWayOutcome, RpcId};
use smt_wire::{PacketType, SessionIndex};

use super::support::configs::ethernet;
use super::support::{Verdict, World, body, ms};

const LATE: CallFailure = CallFailure::DeadlineExceeded;

fn send(world: &mut World, session: SessionIndex, body: Bytes, deadline: Duration) -> RpcId {
    let (now, client) = (world.now, &mut world.nodes[0].endpoint);
    let rpc = client.send_one_way(now, session, body, Some(deadline));
    world.flush();
    rpc.unwrap()
}

fn expired(world: &World) -> u64 {
    world.nodes[1].endpoint.statistics().messages_expired
}

#[test]
fn a_message_in_time_is_delivered_with_its_deadline_whatever_its_length() {
    let (mut world, session, _) = World::connected();
    let begun = world.now;
    for length in [0, 100, 5_000, 300_000] {
        let rpc = send(&mut world, session, body(1, length), ms(50));
        assert_eq!(world.one_way_outcome(0, rpc), OneWayOutcome::Delivered);
        let told = world.wait(1, |event| match event {
            Event::OneWay { deadline, .. } => Some(*deadline),
            _ => None,
        });
        let left = told.expect("it has one").since(begun);
        assert!((ms(50)..ms(60)).contains(&left), "{left:?}");
    }
    assert_eq!(expired(&world), 0);
}

// SMT [9.5-5], [9.5-6]
#[test]
fn a_message_that_waits_too_long_to_be_accepted_is_left_out_and_counted() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].endpoint.queue_messages();
    let short = send(&mut world, session, body(1, 100), ms(20));
    let long = send(&mut world, session, body(2, 100), ms(200));
    // It is accepted for delivery when it has come.
    assert_eq!(world.one_way_outcome(0, short), OneWayOutcome::Delivered);
    world.run_for(ms(50));
    let now = world.now;
    let server = &mut world.nodes[1].endpoint;
    let accepted = server.accept(now).unwrap();
    assert_eq!((accepted.rpc.id, accepted.is_one_way), (long.id, true));
    assert_eq!(server.accept(now), None);
    assert_eq!(server.memory(), 0);
    assert_eq!(expired(&world), 1);
}

// SMT [9.5-5]
#[test]
fn a_message_is_delivered_until_the_last_moment() {
    for (after, is_late) in [(Duration::ZERO, false), (Duration::from_nanos(1), true)] {
        let (mut world, session, _) = World::connected();
        world.nodes[1].endpoint.queue_messages();
        send(&mut world, session, body(1, 100), ms(20));
        let opened = world.now + world.latency;
        world.run_for(ms(1));
        let end = opened + ms(20) + after;
        let accepted = world.nodes[1].endpoint.accept(end);
        assert_eq!(accepted.is_none(), is_late);
    }
}

/// The last record comes too late: nothing needs it any more.
// SMT [9.5-5], [9.5-6], [9.5-8]
#[test]
fn a_message_that_is_whole_too_late_is_acknowledged_and_not_delivered() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.is_recording = true;
    let begun = world.now;
    world.rule = Box::new(move |datagram, _| {
        let is_cancel = datagram.has(PacketType::Cancel);
        let is_rest = datagram.data().is_some_and(|data| data.header.offset > 0);
        let is_early = datagram.at.since(begun) < ms(30);
        match is_cancel || is_rest && is_early {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    let rpc = send(&mut world, session, body(1, 50_000), ms(20));
    let rest: Vec<_> = world.sent.clone();
    let outcome = world.one_way_outcome(0, rpc);
    assert_eq!(outcome, OneWayOutcome::MayHaveBeenDelivered(LATE));
    world.run_for(ms(40));
    for datagram in &rest {
        world.hand_in(datagram);
    }
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(expired(&world), 1);
}

// SMT [9.5-7]
#[test]
fn a_message_of_which_nothing_left_in_time_is_not_delivered() {
    let (mut world, session, _) = World::connected();
    let now = world.now;
    let client = &mut world.nodes[0].endpoint;
    let rpc = client.send_one_way(now, session, body(1, 100), Some(ms(20)));
    let rpc = rpc.unwrap();
    client.handle_timeout(now + ms(21));
    let outcome = world.one_way_outcome(0, rpc);
    assert_eq!(outcome, OneWayOutcome::NotDelivered(LATE));
    world.run_for(ms(100));
    assert!(world.nodes[1].delivered.is_empty());
}

// SMT [9.5-7], [9.7-3]
#[test]
fn a_message_that_is_still_on_its_way_at_its_deadline_is_cancelled_and_not_delivered() {
    let (mut world, session, _) = World::connected();
    world.rate = 100;
    let rpc = send(&mut world, session, body(1, 5_000_000), ms(5));
    let outcome = world.one_way_outcome(0, rpc);
    assert_eq!(outcome, OneWayOutcome::NotDelivered(LATE));
    world.run_for(ms(100));
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
}

// SMT [9.5-8]
#[test]
fn an_acknowledgement_after_the_deadline_is_no_word_of_delivery() {
    let (mut world, session, _) = World::connected();
    let rpc = send(&mut world, session, body(1, 100), ms(20));
    let arrived = world.now + world.latency;
    while world.now < arrived {
        assert!(world.step(arrived));
    }
    // The acknowledgement is on its way; the sender's clock is read late.
    world.now = world.now + ms(30);
    let acks: Vec<_> = std::iter::from_fn(|| world.take_arrival()).collect();
    acks.iter().for_each(|ack| world.hand_in(ack));
    let outcome = world.one_way_outcome(0, rpc);
    assert_eq!(outcome, OneWayOutcome::MayHaveBeenDelivered(LATE));
}

#[test]
fn members_of_a_bundle_have_deadlines_of_their_own() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].endpoint.queue_messages();
    let (now, client) = (world.now, &mut world.nodes[0].endpoint);
    for (text, deadline) in [(1, Some(ms(10))), (2, None), (3, Some(ms(100)))] {
        let sent = client.send_one_way(now, session, body(text, 20), deadline);
        sent.unwrap();
    }
    world.run_for(ms(1));
    assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 1);
    world.run_for(ms(50));
    let now = world.now;
    let server = &mut world.nodes[1].endpoint;
    let accepted: Vec<Bytes> = std::iter::from_fn(|| Some(server.accept(now)?.body)).collect();
    assert_eq!(accepted, [body(2, 20), body(3, 20)]);
}
