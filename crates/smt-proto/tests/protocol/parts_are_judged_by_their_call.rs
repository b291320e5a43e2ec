// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A reader of parts and a peer with the keys that sends them as it likes (SPEC §5.9).

use smt_proto::{
    CallFailure, CallOptions, Config, Event, PartMarks, PartViolation, Refused, RpcId,
};
use smt_wire::{Abort, AbortCode, Body, Kind, List, MessageId, PartWindow};

use super::calls_come_in_parts::{REPLY, REQUEST, begin, left, send};
use super::support::rogue::{Rogue, layout};
use super::support::{Answer, World, ms};

/// A part of a call with this number.
fn part(rogue: &mut Rogue, world: &mut World, rpc: RpcId, number: u32, body: &[u8]) {
    rogue.parts = PartMarks { more: true, number, ..PartMarks::default() };
    let bytes = [&rpc.id.0.to_be_bytes(), body].concat();
    rogue.message(world, Kind::Part, &bytes);
}

fn violation(rule: PartViolation) -> Option<CallFailure> {
    Some(CallFailure::MalformedParts(rule))
}

fn failure_of(world: &mut World, call: RpcId) -> Option<CallFailure> {
    world.nodes[0].event(|event| match event {
        Event::CallFailed { rpc, error } if *rpc == call => Some(error.reason.clone()),
        _ => None,
    })
}

// SMT [5.9-10]
#[test]
fn a_number_that_comes_twice_ends_the_call() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    let mut rogue = Rogue::server(session);
    part(&mut rogue, &mut world, call, 0, b"one");
    part(&mut rogue, &mut world, call, 0, b"two");
    assert_eq!(failure_of(&mut world, call), violation(PartViolation::Repeated));
    assert_eq!(left(&mut world, call).unwrap(), ["one"]);
    assert_eq!(world.nodes[0].endpoint.statistics().violations, 1);
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
    world.run_for(ms(5));
    assert!(!world.nodes[1].endpoint.is_wanted(request), "the peer is told");
}

// SMT [5.9-12]
#[test]
fn a_part_beyond_the_window_ends_the_call() {
    let (mut world, session, _) = World::connected();
    let (call, _) = begin(&mut world, session, REPLY);
    let mut rogue = Rogue::server(session);
    for number in 0..512 {
        part(&mut rogue, &mut world, call, number, b"");
    }
    assert_eq!(failure_of(&mut world, call), None);
    part(&mut rogue, &mut world, call, 512, b"");
    assert_eq!(failure_of(&mut world, call), violation(PartViolation::BeyondWindow));
}

// SMT [5.9-6]
#[test]
fn a_part_of_a_reply_that_says_none_follows_ends_the_call() {
    let (mut world, session, _) = World::connected();
    let (call, _) = begin(&mut world, session, REPLY);
    let mut rogue = Rogue::server(session);
    part(&mut rogue, &mut world, call, 0, b"one");
    rogue.parts = PartMarks { number: 1, ..PartMarks::default() };
    rogue.message(&mut world, Kind::Part, &[&call.id.0.to_be_bytes(), &b"last"[..]].concat());
    assert_eq!(failure_of(&mut world, call), violation(PartViolation::EndsReply));
    assert_eq!(left(&mut world, call).unwrap(), ["one"]);
}

// SMT [5.9-20]
#[test]
fn parts_behind_one_that_is_missing_are_not_left() {
    let (mut world, session, _) = World::connected();
    let (call, _) = begin(&mut world, session, REPLY);
    let mut rogue = Rogue::server(session);
    for (number, body) in [(0, "zero"), (1, "one"), (3, "three")] {
        part(&mut rogue, &mut world, call, number, body.as_bytes());
    }
    let abort = Abort { id: call.id, code: AbortCode::Dropped.code() };
    rogue.say(&mut world, &[Body::Abort(abort)]);
    assert_eq!(failure_of(&mut world, call), Some(CallFailure::Dropped));
    assert_eq!(left(&mut world, call).unwrap(), ["zero", "one"]);
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
}

/// Without room one part of several packets is let in, not as many as claim to be the one that is
/// needed next.
// SMT [5.9-19]
#[test]
fn parts_that_claim_the_same_number_hold_no_more_than_one_does_without_room() {
    let (mut world, session, _) = World::connected();
    let (call, _) = begin(&mut world, session, REPLY);
    let full = usize::MAX / 2;
    world.nodes[0].endpoint.set_untaken(full);
    let mut rogue = Rogue::server(session);
    rogue.parts = PartMarks { more: true, ..PartMarks::default() };
    let bytes = [&call.id.0.to_be_bytes(), &[0; 20_000][..]].concat();
    for _ in 0..50 {
        rogue.first_of(&mut world, Kind::Part, &bytes);
    }
    let held = world.nodes[0].endpoint.memory() - full;
    assert!((1_000..40_000).contains(&held), "{held} bytes");
}

// SMT [5.9-8]
#[test]
fn a_part_before_the_window_opens_ends_the_request() {
    let (mut world, session, at_server) = World::connected();
    let (call, request) = begin(&mut world, session, REQUEST);
    let mut rogue = Rogue::client(at_server);
    part(&mut rogue, &mut world, request, 0, b"part");
    let cancelled =
        |event: &Event| matches!(event, Event::Cancelled(rpc) if *rpc == request).then_some(());
    assert!(world.nodes[1].event(cancelled).is_some());
    world.run_for(ms(5));
    assert_eq!(failure_of(&mut world, call), Some(CallFailure::Dropped));
}

#[test]
fn a_request_that_waits_and_breaks_a_rule_of_parts_is_not_given_to_the_application() {
    let (mut world, session, at_server) = World::connected();
    world.nodes[1].endpoint.queue_messages();
    let now = world.now;
    let options = CallOptions { deadline: None, parts: REQUEST };
    let endpoint = &mut world.nodes[0].endpoint;
    let call = endpoint.call_in_parts(now, session, "request", options);
    let call = call.unwrap();
    world.run_for(ms(5));
    let at_server = RpcId { session: at_server, ..call };
    part(&mut Rogue::client(at_server.session), &mut world, at_server, 0, b"part");
    let cancelled = |event: &Event| matches!(event, Event::Cancelled(_)).then_some(());
    assert!(world.nodes[1].event(cancelled).is_none());
    let now = world.now;
    assert!(world.nodes[1].endpoint.accept(now).is_none());
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
    world.run_for(ms(5));
    assert_eq!(failure_of(&mut world, call), Some(CallFailure::Dropped));
}

// SMT [5.9-7]
#[test]
fn a_reply_of_fewer_parts_than_have_come_ends_the_call_as_malformed() {
    let (mut world, session, _) = World::connected();
    let (call, _) = begin(&mut world, session, REPLY);
    let mut rogue = Rogue::server(session);
    part(&mut rogue, &mut world, call, 3, b"part");
    rogue.parts = PartMarks { number: 3, ..PartMarks::default() };
    rogue.answer(&mut world, (call.id, Kind::Reply), b"end");
    assert_eq!(failure_of(&mut world, call), violation(PartViolation::Count));
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
}

// SMT [5.9-7]
#[test]
fn a_reply_of_more_parts_than_come_waits_for_them() {
    let (mut world, session, _) = World::connected();
    let (call, _) = begin(&mut world, session, REPLY);
    let mut rogue = Rogue::server(session);
    rogue.parts = PartMarks { number: 1, ..PartMarks::default() };
    rogue.answer(&mut world, (call.id, Kind::Reply), b"end");
    // A repetition of the reply changes nothing.
    rogue.answer(&mut world, (call.id, Kind::Reply), b"end");
    world.run_for(ms(5));
    let is_reply = |event: &Event| matches!(event, Event::Reply { .. }).then_some(());
    assert!(world.nodes[0].event(is_reply).is_none());
    part(&mut rogue, &mut world, call, 0, b"part");
    assert!(world.nodes[0].endpoint.take_part(call).unwrap().is_some());
    world.flush();
    assert!(world.nodes[0].event(is_reply).is_some());
}

// SMT [5.9-4]
#[test]
fn a_part_without_its_requests_id_is_a_violation_and_no_more() {
    let (mut world, session, _) = World::connected();
    let (call, _) = begin(&mut world, session, REPLY);
    let mut rogue = Rogue::server(session);
    for length in [0, 7] {
        rogue.message(&mut world, Kind::Part, &vec![0; length]);
    }
    assert_eq!(world.nodes[0].endpoint.statistics().violations, 2);
    assert_eq!(failure_of(&mut world, call), None);
}

// SMT [5.9-16]
#[test]
fn a_part_of_no_call_is_dropped() {
    let (mut world, session, _) = World::connected();
    let (call, _) = begin(&mut world, session, PartMarks::default());
    let mut rogue = Rogue::server(session);
    part(&mut rogue, &mut world, call, 0, b"part");
    let no_call = RpcId { id: MessageId(u64::MAX), ..call };
    part(&mut rogue, &mut world, no_call, 0, b"part");
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
    assert_eq!(failure_of(&mut world, call), None);
}

// SMT [5.9-1]
#[test]
fn a_request_in_parts_that_were_not_agreed_is_taken_as_one_without_them() {
    let mut none = Config::default();
    none.part_window = 0;
    let (mut world, _, at_server) = World::connected_with(Config::default(), none);
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let mut rogue = Rogue::client(at_server);
    rogue.parts = PartMarks { more: true, reply_in_parts: true, number: 0 };
    rogue.message(&mut world, Kind::Request, b"request");
    let request = world.nodes[1].delivered.last().unwrap().0;
    assert_eq!(send(&mut world, 1, request, "part".into(), true), Err(Refused::NoParts));
    assert_eq!(world.nodes[1].endpoint.take_part(request), Err(Refused::NoRpc));
    assert_eq!(world.nodes[1].endpoint.statistics().violations, 1);
    let now = world.now;
    assert_eq!(world.nodes[1].endpoint.reply(now, request, "end"), Ok(()));
}

#[test]
fn windows_of_calls_without_parts_have_no_effect() {
    let (mut world, session, at_server) = World::connected();
    let (call, request) = begin(&mut world, session, PartMarks::default());
    let never_issued = layout().id(9_000, smt_record::Side::Client, 0).unwrap();
    let windows = [call.id, never_issued].map(|id| PartWindow { id, limit: 7 });
    let ids = [call.id, never_issued];
    let bodies =
        [Body::PartWindow(List::from(&windows[..])), Body::PartWindowRequest(List::from(&ids[..]))];
    Rogue::server(session).say(&mut world, &bodies);
    Rogue::client(at_server).say(&mut world, &bodies);
    world.run_for(ms(5));
    assert!(world.nodes[1].endpoint.is_wanted(request));
    let now = world.now;
    world.nodes[1].endpoint.reply(now, request, "end").unwrap();
    assert_eq!(world.outcome(0, call).unwrap(), "end");
}
