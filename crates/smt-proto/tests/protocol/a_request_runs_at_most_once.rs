// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rule 2: an id is marked when its first record opens, for the life of the session.

use smt_proto::{CallFailure, Config, Event, Execution};
use smt_wire::{Abort, AbortCode, Body, List, PacketType, SessionIndex};

use super::support::configs::{ethernet, short_lived_keys};
use super::support::rogue::Rogue;
use super::support::{Answer, Datagram, Load, Random, Verdict, World, body, ms};

/// Replays all that was ever recorded, in order and backwards.
fn replay(world: &mut World) {
    world.is_recording = false;
    let recorded: Vec<Datagram> = std::mem::take(&mut world.sent);
    for datagram in recorded.iter().chain(recorded.iter().rev()) {
        world.hand_in(datagram);
    }
    world.run_for(ms(3_000));
}

fn loaded(config: Config) -> (World, [SessionIndex; 2]) {
    let (mut world, client, server) = World::connected_with(config.clone(), config);
    world.is_recording = true;
    let load = Load { messages: 300, at_once: 20, size_max: 20_000, random: Random::from_env() };
    load.run(&mut world, [client, server]);
    (world, [client, server])
}

fn nothing_runs_again(config: Config) {
    let (mut world, ends) = loaded(config);
    let delivered: Vec<usize> = world.nodes.iter().map(|node| node.delivered.len()).collect();
    replay(&mut world);
    let after: Vec<usize> = world.nodes.iter().map(|node| node.delivered.len()).collect();
    assert_eq!(delivered, after);
    super::support::load::assert_nothing_is_left(&world, ends);
    let rpc = world.call(0, ends[0], body(1, 10));
    world.outcome(0, rpc).unwrap();
}

// SMT [4.2-1], [4.2-2]
#[test]
fn a_request_runs_once_although_everything_is_replayed() {
    nothing_runs_again(ethernet());
}

// SMT [4.2-2], [7.3-2]
#[test]
fn a_request_runs_once_although_everything_is_replayed_after_key_updates() {
    nothing_runs_again(short_lived_keys());
}

// SMT [4.2-3]
#[test]
fn a_request_runs_once_although_it_is_replayed_while_it_is_worked_on() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    world.is_recording = true;
    world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    replay(&mut world);
    assert_eq!(world.nodes[1].delivered.len(), 1);
}

// SMT [4.2-1]
#[test]
fn a_replayed_request_brings_no_second_reply() {
    let (mut world, _) = loaded(ethernet());
    let before = world.count;
    world.is_recording = false;
    let requests: Vec<Datagram> =
        world.sent.iter().filter(|sent| sent.data().is_some()).cloned().collect();
    for datagram in &requests {
        world.hand_in(datagram);
    }
    assert_eq!(world.count, before, "nothing is answered");
}

/// The first request is lost until the server has forgotten nothing: NEVER_SEEN, and it runs once.
// SMT [8-13], [9.3-20]
#[test]
fn a_lost_request_is_sent_again_under_its_id() {
    let (mut world, session, _) = World::connected();
    world.is_recording = true;
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if datagram.from == 0 && !data.header.retransmit => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    let rpc = world.call(0, session, body(1, 100));
    world.outcome(0, rpc).unwrap();
    assert!(world.sent.iter().any(|sent| sent.has(PacketType::NeverSeen)));
    assert_eq!(world.nodes[1].delivered.len(), 1);
}

#[test]
fn a_call_whose_reply_never_comes_may_have_run() {
    let (mut world, session, _) = World::connected();
    // Only the request gets through.
    let mut is_first = true;
    world.rule = Box::new(move |datagram, _| {
        if datagram.data().is_some() && std::mem::take(&mut is_first) {
            Verdict::Deliver
        } else {
            Verdict::Drop
        }
    });
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(1_500));
    assert_eq!(world.nodes[1].delivered.len(), 1);
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.execution, Execution::MayHaveRun);
    assert!(matches!(error.reason, CallFailure::SessionEnded(_)));
}

// SMT [8-14], [9.3-22]
#[test]
fn a_request_that_the_server_forgot_is_never_sent_again() {
    let mut config = Config::default();
    config.silence_max = ms(100_000);
    let (mut world, session, server) = World::connected_with(config.clone(), config);
    let mut is_first = true;
    world.rule = Box::new(move |datagram, _| {
        if datagram.data().is_some() && std::mem::take(&mut is_first) {
            Verdict::Deliver
        } else {
            Verdict::Drop
        }
    });
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(30_000));
    assert_eq!(world.nodes[1].endpoint.session(server).unwrap().served, 0);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.reason, CallFailure::Forgotten);
    assert_eq!(error.execution, Execution::MayHaveRun);
    assert_eq!(world.nodes[1].delivered.len(), 1);
}

// SMT [11-3]
#[test]
fn a_refused_request_did_not_run_and_a_dropped_one_may_have() {
    let (mut world, session, _) = World::connected();
    let expected = [
        (AbortCode::ShuttingDown, CallFailure::ShuttingDown, Execution::DidNotRun),
        (AbortCode::Overloaded, CallFailure::Overloaded, Execution::DidNotRun),
        (AbortCode::Dropped, CallFailure::Dropped, Execution::MayHaveRun),
        (AbortCode::TooLarge, CallFailure::TooLarge, Execution::DidNotRun),
        (AbortCode::ReplyTooLarge, CallFailure::ReplyTooLarge, Execution::MayHaveRun),
    ];
    for (code, reason, execution) in expected {
        world.nodes[1].application = Box::new(move |_| Answer::Abort(code));
        let rpc = world.call(0, session, body(1, 100));
        let error = world.outcome(0, rpc).unwrap_err();
        assert_eq!((error.reason, error.execution), (reason, execution));
    }
    world.run_for(ms(1_000));
    assert_eq!(world.nodes[1].endpoint.served_len(), 0, "aborts are acknowledged");
}

#[test]
fn an_abort_is_acknowledged_before_the_server_asks() {
    let (mut world, session, at_server) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Abort(AbortCode::ShuttingDown));
    world.is_recording = true;
    let rpc = world.call(0, session, body(1, 100));
    assert!(world.outcome(0, rpc).is_err());
    world.run_for(ms(1_000));
    // Request, ABORT, ACK.
    assert_eq!(world.sent.len(), 3, "{}", world.trace());
    assert!(world.sent[2].has(PacketType::Ack), "{}", world.trace());
    let facts = world.nodes[1].endpoint.session(at_server).unwrap();
    assert_eq!(facts.served, 0);
}

// SMT [9.4-7]
#[test]
fn an_abort_that_is_lost_is_asked_for() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Abort(AbortCode::ShuttingDown));
    let mut dropped = 0;
    world.rule = Box::new(move |datagram, _| {
        if datagram.has(PacketType::Abort) && dropped < 3 {
            dropped += 1;
            return Verdict::Drop;
        }
        Verdict::Deliver
    });
    let rpc = world.call(0, session, body(1, 100));
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.reason, CallFailure::ShuttingDown);
    assert!(!world.nodes[0].events.iter().any(|event| matches!(event, Event::Reply { .. })));
}

/// NEVER_SEEN promises nothing: the request is sent again at once, and may arrive when the session
/// has ended here.
// SMT [11-3]
#[test]
fn a_request_that_was_never_seen_may_have_run_when_the_session_ends() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|_, _| Verdict::Drop);
    let rpc = world.call(0, session, body(1, 10));
    let ids = [rpc.id];
    let never_seen = Body::NeverSeen(List::from(&ids[..]));
    Rogue::server(session).say(&mut world, &[never_seen, Body::Close { code: 2 }]);
    assert_eq!(world.outcome(0, rpc).unwrap_err().execution, Execution::MayHaveRun);
}

/// The peer has more reasons than this side knows.
// SMT [8-15]
#[test]
fn a_request_that_ended_for_an_unknown_reason_may_have_run() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let rpc = world.call(0, session, body(1, 10));
    let abort = Abort { id: rpc.id, code: 77 };
    Rogue::server(session).say(&mut world, &[Body::Abort(abort)]);
    assert_eq!(world.outcome(0, rpc).unwrap_err().execution, Execution::MayHaveRun);
}
