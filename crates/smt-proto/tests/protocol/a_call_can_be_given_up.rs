// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CANCEL: VOIDED before the id was seen, SEEN afterwards; the application at the server is told.

use smt_proto::{CallFailure, Event, Execution, OneWayOutcome, RpcId};
use smt_wire::{Packet, PacketType, SessionIndex};

use super::support::{Answer, Datagram, Verdict, World, body, ms};

fn holding() -> (World, SessionIndex) {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    world.is_recording = true;
    (world, session)
}

fn cancel(world: &mut World, rpc: RpcId) -> Execution {
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, rpc));
    assert!(!world.nodes[0].endpoint.cancel(now, rpc), "only once");
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.reason, CallFailure::Cancelled);
    error.execution
}

fn answers(world: &World, of: PacketType) -> usize {
    world.sent.iter().filter(|sent| sent.from == 1 && sent.has(of)).count()
}

fn is_data(datagram: &Datagram) -> bool {
    matches!(datagram.packets().first(), Some(Packet::Data(_)))
}

// SMT [9.6-2], [8-11]
#[test]
fn a_call_that_the_server_has_not_seen_is_voided_and_never_runs() {
    let (mut world, session) = holding();
    world.rule =
        Box::new(|datagram, _| if is_data(datagram) { Verdict::Drop } else { Verdict::Deliver });
    let rpc = world.call(0, session, body(1, 100));
    let request = world.sent.last().unwrap().clone();
    assert_eq!(cancel(&mut world, rpc), Execution::MayHaveRun, "its records have left");
    world.run_for(ms(100));
    assert_eq!(answers(&world, PacketType::Voided), 1);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.hand_in(&request);
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(world.nodes[0].endpoint.session(session).unwrap().calls, 0);
}

// SMT [9.6-3]
#[test]
fn a_call_that_is_still_arriving_is_voided() {
    let (mut world, session) = holding();
    let rpc = world.call(0, session, body(1, 5_000_000));
    world.run_for(ms(0));
    let end = world.now + super::support::us(50);
    while world.step(end) {}
    assert!(world.nodes[1].endpoint.memory() > 0);
    cancel(&mut world, rpc);
    world.run_for(ms(100));
    assert_eq!(answers(&world, PacketType::Voided), 1);
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
}

// SMT [9.6-4]
#[test]
fn the_application_is_told_of_a_cancelled_call_it_works_on() {
    let (mut world, session) = holding();
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    assert_eq!(cancel(&mut world, rpc), Execution::MayHaveRun);
    let (held, _) = world.nodes[1].delivered[0].clone();
    world.wait(1, |event| matches!(event, Event::Cancelled(of) if *of == held).then_some(()));
    world.run_for(ms(100));
    assert_eq!(answers(&world, PacketType::Seen), 1);
    let now = world.now;
    let late = world.nodes[1].endpoint.reply(now, held, body(1, 1));
    assert_eq!(late, Err(smt_proto::Refused::NoRpc));
}

// SMT [9.6-1]
#[test]
fn a_call_can_be_given_up_although_questions_and_answers_are_lost() {
    for lost in [PacketType::Cancel, PacketType::Seen] {
        let (mut world, session) = holding();
        let mut count = 0;
        world.rule = Box::new(move |datagram, _| {
            count += usize::from(datagram.has(lost));
            if datagram.has(lost) && count < 5 { Verdict::Drop } else { Verdict::Deliver }
        });
        let rpc = world.call(0, session, body(1, 100));
        world.run_for(ms(1));
        cancel(&mut world, rpc);
        world.run_for(ms(1_000));
        let events =
            world.nodes[1].events.iter().filter(|event| matches!(event, Event::Cancelled(_)));
        assert_eq!(events.count(), 1);
        assert_eq!(world.nodes[0].endpoint.session(session).unwrap().calls, 0);
    }
}

// SMT [9.6-5]
#[test]
fn a_call_of_which_nothing_has_left_did_not_run() {
    let (mut world, session) = holding();
    let now = world.now;
    // No flush in between: nothing was sealed.
    let rpc = world.nodes[0].endpoint.call(now, session, body(1, 100), None).unwrap();
    assert_eq!(cancel(&mut world, rpc), Execution::DidNotRun);
    world.run_for(ms(100));
    assert!(!world.sent.iter().any(is_data));
    assert_eq!(answers(&world, PacketType::Voided), 1, "the window moves");
}

// SMT [9.7-2]
#[test]
fn a_call_is_given_up_when_its_deadline_passes() {
    let (mut world, session) = holding();
    let now = world.now;
    let rpc = world.nodes[0].endpoint.call(now, session, body(1, 100), Some(ms(50))).unwrap();
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.reason, CallFailure::DeadlineExceeded);
    assert_eq!(error.execution, Execution::MayHaveRun);
    // CANCEL and SEEN.
    assert_eq!(world.now.since(now), ms(50) + 2 * world.latency);
    world.wait(1, |event| matches!(event, Event::Cancelled(_)).then_some(()));
}

// SMT [9.7-1]
#[test]
fn the_server_knows_the_deadline_of_a_call() {
    let (mut world, session, _) = World::connected();
    let now = world.now;
    world.nodes[0].endpoint.call(now, session, body(1, 100), Some(ms(50))).unwrap();
    while world.nodes[1].deadlines.is_empty() {
        world.step(now + ms(10));
    }
    let left = world.nodes[1].deadlines[0].unwrap().since(now);
    assert!((ms(50)..ms(51)).contains(&left), "{left:?}");
}

#[test]
fn a_one_way_message_can_be_given_up() {
    let (mut world, session) = holding();
    world.rule =
        Box::new(|datagram, _| if is_data(datagram) { Verdict::Drop } else { Verdict::Deliver });
    let rpc = world.send_one_way(0, session, body(1, 100));
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, rpc));
    let expected = OneWayOutcome::MayHaveBeenDelivered(CallFailure::Cancelled);
    assert_eq!(world.one_way_outcome(0, rpc), expected);
    world.run_for(ms(100));
    assert_eq!(answers(&world, PacketType::Voided), 1);
}

#[test]
fn a_reply_to_a_call_that_was_given_up_is_dropped() {
    let (mut world, session) = holding();
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    world.rule =
        Box::new(
            |datagram, _| {
                if datagram.has(PacketType::Cancel) { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    cancel(&mut world, rpc);
    let (held, _) = world.nodes[1].delivered[0].clone();
    let now = world.now;
    world.nodes[1].endpoint.reply(now, held, body(1, 1)).unwrap();
    world.run_for(ms(500));
    assert!(!world.nodes[0].events.iter().any(|event| matches!(event, Event::Reply { .. })));
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.run_for(ms(1_000));
    assert_eq!(world.nodes[0].endpoint.session(session).unwrap().calls, 0);
    assert_eq!(world.nodes[1].endpoint.served_len(), 0);
}
