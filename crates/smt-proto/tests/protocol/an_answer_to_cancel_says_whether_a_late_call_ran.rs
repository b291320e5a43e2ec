// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A call whose deadline has passed waits a moment for the answer to CANCEL: VOIDED shows that the
//! call did not run (SPEC §9.7). A server that takes no more requests answers all of them so.

use std::time::Duration;

use smt_proto::{CallError, CallFailure, Config, Execution, RpcId};
use smt_wire::{PacketType, SessionIndex};

use super::support::{Answer, Verdict, World, body, ms};

const LATE: CallFailure = CallFailure::DeadlineExceeded;

fn late(execution: Execution) -> CallError {
    CallError { reason: LATE, execution }
}

/// A client, and a server whose messages wait until they are accepted.
fn queueing() -> (World, SessionIndex) {
    let (mut world, session, _) = World::connected();
    world.nodes[1].endpoint.queue_messages();
    (world, session)
}

fn call(world: &mut World, session: SessionIndex, length: usize, deadline: Duration) -> RpcId {
    let (now, client) = (world.now, &mut world.nodes[0].endpoint);
    let rpc = client.call(now, session, body(1, length), Some(deadline));
    world.flush();
    rpc.unwrap()
}

// SMT [9.7-3], [11-3], [9.6-3]
#[test]
fn calls_that_an_overloaded_server_never_accepts_did_not_run() {
    let (mut world, session) = queueing();
    let calls: Vec<RpcId> =
        (0..300).map(|_| call(&mut world, session, 100_000, ms(2_000))).collect();
    world.run_for(ms(1_000));
    let (now, server) = (world.now, &mut world.nodes[1].endpoint);
    let accepted: Vec<RpcId> = (0..5).map(|_| server.accept(now).unwrap().rpc).collect();
    assert!(server.memory() > 200 * 100_000);
    world.run_for(ms(1_500));
    let mut not_run = 0;
    for rpc in calls {
        let error = world.outcome(0, rpc).unwrap_err();
        assert_eq!(error.reason, LATE);
        let was_accepted = accepted.iter().any(|held| held.id == rpc.id);
        let is_sure = error.execution == Execution::DidNotRun;
        assert!(!(is_sure && was_accepted), "{rpc:?} was accepted");
        not_run += usize::from(is_sure);
    }
    assert_eq!(not_run, 295);
    // No more is delivered, and its bodies are freed though nothing is accepted.
    assert!(world.nodes[1].endpoint.memory() < 100 * 1_000);
    assert_eq!(world.nodes[1].endpoint.accept(world.now), None);
    let cancelled = world.nodes[1].events.len();
    assert_eq!(cancelled, 5, "those that were accepted");
}

// SMT [9.6-2], [9.7-3]
#[test]
fn a_call_that_never_arrived_before_its_deadline_did_not_run() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(_) => Verdict::Drop,
        None => Verdict::Deliver,
    });
    let rpc = call(&mut world, session, 100, ms(20));
    assert_eq!(world.outcome(0, rpc), Err(late(Execution::DidNotRun)));
    assert!(world.nodes[1].delivered.is_empty());
}

// SMT [9.7-3]
#[test]
fn a_deadline_is_told_soon_although_no_answer_to_cancel_comes() {
    let (mut world, session) = queueing();
    world.rule = Box::new(|datagram, _| match datagram.has(PacketType::Voided) {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    let begun = world.now;
    let rpc = call(&mut world, session, 100, ms(20));
    assert_eq!(world.outcome(0, rpc), Err(late(Execution::MayHaveRun)));
    let after = world.now.since(begun);
    assert!((ms(24)..=ms(31)).contains(&after), "{after:?}");
    world.run_for(ms(100));
    assert!(world.nodes[0].events.is_empty(), "it is told once");
    assert_eq!(world.nodes[0].endpoint.session(session).unwrap().calls, 0);
}

#[test]
fn a_call_that_is_cancelled_while_its_deadline_is_not_told_ends_at_once() {
    let (mut world, session) = queueing();
    world.rule = Box::new(|datagram, _| match datagram.has(PacketType::Voided) {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    let rpc = call(&mut world, session, 100, ms(20));
    world.run_for(ms(21));
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, rpc));
    assert!(!world.nodes[0].endpoint.cancel(now, rpc), "only once");
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.reason, CallFailure::Cancelled);
    world.run_for(ms(100));
    assert!(world.nodes[0].events.is_empty(), "it is told once");
}

#[test]
fn a_session_that_ends_tells_first_of_calls_whose_deadline_has_passed() {
    let (mut world, session) = queueing();
    world.rule = Box::new(|datagram, _| match datagram.has(PacketType::Voided) {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    let rpc = call(&mut world, session, 100, ms(20));
    world.run_for(ms(21));
    let client = &mut world.nodes[0].endpoint;
    client.close(session, smt_proto::CloseCode::Done);
    assert_eq!(world.outcome(0, rpc), Err(late(Execution::MayHaveRun)));
}

/// CANCEL leaves before all DATA, however much of it waits.
// SMT [9.6-4]
#[test]
fn the_application_learns_of_a_cancelled_call_at_once_though_much_else_is_on_its_way() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    world.rate = 1_250;
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    for _ in 0..20 {
        world.call(0, session, body(2, 2_000_000));
    }
    world.run_for(ms(1));
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, rpc));
    let is_it = |event: &smt_proto::Event| {
        matches!(event, smt_proto::Event::Cancelled(of) if of.id == rpc.id).then_some(())
    };
    world.wait(1, is_it);
    let after = world.now.since(now);
    // The link has taken DATA before, at most as much as is granted.
    assert!(after < ms(1), "{after:?}");
}

// SMT [9.6-3]
#[test]
fn a_cancelled_request_that_waits_behind_others_is_voided_at_once_and_never_accepted() {
    let (mut world, session) = queueing();
    let calls = world.start_calls(0, session, (0..100).map(|_| body(1, 50)));
    world.run_for(ms(1));
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, calls[70]));
    world.is_recording = true;
    world.run_for(3 * world.latency);
    assert!(world.sent.iter().any(|sent| sent.has(PacketType::Voided)));
    let server = &mut world.nodes[1].endpoint;
    let accepted: Vec<RpcId> = std::iter::from_fn(|| Some(server.accept(now)?.rpc)).collect();
    assert_eq!(accepted.len(), 99);
    assert!(accepted.iter().all(|rpc| rpc.id != calls[70].id));
}

// SMT [8-18], [9.3-28]
#[test]
fn a_request_that_the_server_drops_before_it_is_whole_did_not_run() {
    let mut config = Config::default();
    config.silence_max = ms(100_000);
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    let begun = world.now;
    world.rule = Box::new(move |datagram, _| {
        let is_early = datagram.at.since(begun) < Duration::from_micros(1);
        match is_early || datagram.at.since(begun) > ms(12_000) {
            true => Verdict::Deliver,
            false => Verdict::Drop,
        }
    });
    let rpc = world.call(0, session, body(1, 500_000));
    let error = world.outcome(0, rpc).unwrap_err();
    let expected = (CallFailure::Overloaded, Execution::DidNotRun);
    assert_eq!((error.reason, error.execution), expected);
}
