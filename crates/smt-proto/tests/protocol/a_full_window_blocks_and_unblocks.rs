// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rule 2: a sender keeps its ids inside the receiver's window, so that no honest message is
//! refused.

use std::time::Duration;

use smt_proto::{Config, Endpoint, Event, Refused, Time};
use smt_wire::{PacketType, SessionIndex};

use super::support::{Answer, Datagram, Verdict, World, body, ms};

/// A session whose first id never arrives, filled until the window blocks. A call has met that.
fn blocked(lost: &'static [PacketType]) -> (World, SessionIndex) {
    blocked_for(lost, |endpoint, now, session| {
        let more = endpoint.call(now, session, body(99, 10), None);
        assert_eq!(more, Err(Refused::Blocked));
    })
}

/// The same, where `meet` meets that the window is full.
fn blocked_for(
    lost: &'static [PacketType],
    meet: impl FnOnce(&mut Endpoint, Time, SessionIndex),
) -> (World, SessionIndex) {
    let mut config = Config::default();
    config.window = 64;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.rule = Box::new(move |datagram, _| {
        let is_oldest = datagram.data().is_some_and(|data| data.header.id.0 == 0);
        if is_oldest || lost.iter().any(|of| datagram.has(*of)) {
            Verdict::Drop
        } else {
            Verdict::Deliver
        }
    });
    for number in 0..64 {
        let now = world.now;
        assert_eq!(world.nodes[0].endpoint.may_begin(now, session), Ok(true));
        world.call(0, session, body(number, 100));
    }
    let now = world.now;
    meet(&mut world.nodes[0].endpoint, now, session);
    world.run_for(ms(1_500));
    let is_unblocked = |event: &Event| matches!(event, Event::Unblocked(_));
    assert!(!world.nodes[0].events.iter().any(is_unblocked));
    assert_eq!(world.nodes[1].delivered.len(), 63);
    (world, session)
}

fn goes_on(mut world: World, session: SessionIndex) {
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.wait(0, |event| matches!(event, Event::Unblocked(of) if *of == session).then_some(()));
    for number in 0..200 {
        let rpc = world.call(0, session, body(number, 100));
        world.outcome(0, rpc).unwrap();
    }
    assert_eq!(world.nodes[1].delivered.len(), 264);
    assert_eq!(world.nodes[1].endpoint.statistics().packets_contradicting, 0);
}

#[test]
fn an_application_that_asks_whether_a_message_may_begin_is_told_when_it_may() {
    let (world, session) = blocked_for(&[], |endpoint, now, session| {
        assert_eq!(endpoint.may_begin(now, session), Ok(false));
        assert_eq!(endpoint.may_begin(now, session), Ok(false));
        let unknown = SessionIndex(session.0 + 1);
        assert_eq!(endpoint.may_begin(now, unknown), Err(Refused::NoSession));
    });
    goes_on(world, session);
}

// SMT [4.2-6]
#[test]
fn a_full_window_unblocks_when_the_oldest_id_arrives() {
    let (world, session) = blocked(&[]);
    goes_on(world, session);
}

// SMT [4.2-7]
#[test]
fn a_full_window_unblocks_although_window_requests_were_lost() {
    let (world, session) = blocked(&[PacketType::WindowRequest]);
    goes_on(world, session);
}

#[test]
fn a_full_window_unblocks_although_answers_were_lost() {
    let (world, session) = blocked(&[PacketType::Window]);
    goes_on(world, session);
}

/// One-way messages bring no replies that could tell of the window, and what the server says of it
/// by itself is lost for a second.
#[test]
fn a_full_window_unblocks_although_no_window_packet_arrives_for_a_second() {
    let mut config = Config::default();
    config.window = 64;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    let end = world.now + ms(1_000);
    world.rule = Box::new(move |datagram, _| {
        if datagram.has(PacketType::Window) && datagram.at < end {
            Verdict::Drop
        } else {
            Verdict::Deliver
        }
    });
    for number in 0..64 {
        world.send_one_way(0, session, body(number, 100));
    }
    let now = world.now;
    let client = &mut world.nodes[0].endpoint;
    let more = client.send_one_way(now, session, body(99, 10), None);
    assert_eq!(more, Err(Refused::Blocked));
    world.run_for(ms(900));
    assert_eq!(world.nodes[1].delivered.len(), 64);
    world.run_for(ms(700));
    let is_unblocked = |event: &Event| matches!(event, Event::Unblocked(_));
    assert!(world.nodes[0].events.iter().any(is_unblocked));
}

/// Shortest first would send the oldest id last, and the window moves with it.
// SMT [4.2-8]
#[test]
fn the_oldest_unseen_id_goes_before_all_newer_ids() {
    let mut config = Config::default();
    config.window = 64;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.is_recording = true;
    let now = world.now;
    let client = &mut world.nodes[0].endpoint;
    for number in 0..64 {
        let size = if number == 0 { 1_000_000 } else { 100 };
        let taken = client.call(now, session, body(number, size), None);
        assert!(taken.is_ok());
    }
    let more = client.call(now, session, body(99, 10), None);
    assert_eq!(more, Err(Refused::Blocked));
    world.flush();
    let mut data = world.sent.iter().filter_map(|sent| sent.data());
    let first = data.next().map(|data| data.header);
    assert!(first.is_some_and(|header| header.id.0 == 0 && header.offset == 0));
    goes_on(world, session);
}

/// Every reply tells of the window by its header, and so no other packet has to.
// SMT [4.2-4]
#[test]
fn a_reply_tells_how_far_the_window_has_moved() {
    let mut server = Config::default();
    server.window = 64;
    let (mut world, session, _) = World::connected_with(Config::default(), server);
    world.is_recording = true;
    for number in 0..10 {
        let rpc = world.call(0, session, body(number, 100));
        world.outcome(0, rpc).unwrap();
    }
    let (now, client) = (world.now, &mut world.nodes[0].endpoint);
    for number in 0..64 {
        assert_eq!(client.may_begin(now, session), Ok(true), "{number}");
        client.call(now, session, body(number, 100), None).unwrap();
    }
    assert_eq!(client.may_begin(now, session), Ok(false));
    assert!(!world.sent.iter().any(|sent| sent.has(PacketType::Window)));
}

/// A window that is never full: the peer learns of room before it has to ask.
#[test]
fn many_calls_at_once_never_block_a_large_enough_window() {
    let (mut world, session, _) = World::connected();
    for round in 0..5 {
        let calls: Vec<_> = (0..2_000)
            .map(|number| world.call(0, session, body(round * 2_000 + number, 50)))
            .collect();
        for rpc in calls {
            world.outcome(0, rpc).unwrap();
        }
    }
    assert_eq!(world.nodes[1].delivered.len(), 10_000);
}

/// A server that has not answered yet says that it has seen the requests by its window alone.
// SMT [4.2-8]
#[test]
fn a_message_below_the_floor_that_the_window_tells_does_not_leave_again() {
    let mut config = Config::default();
    config.window = 64;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    world.is_recording = true;
    for _ in 0..20 {
        let now = world.now;
        let client = &mut world.nodes[0].endpoint;
        while client.call(now, session, body(0, 100), None).is_ok() {}
        world.run_for(Duration::from_micros(100));
    }
    assert!(world.nodes[1].delivered.len() > 20 * 30);
    let of_oldest = |sent: &&Datagram| sent.data().is_some_and(|data| data.header.id.0 == 0);
    assert_eq!(world.sent.iter().filter(of_oldest).count(), 1);
}
