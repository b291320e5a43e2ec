// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first question about a call follows what replies take (SPEC §9.3).

use std::time::Duration;

use smt_wire::{PacketType, SessionIndex};

use super::support::node::replies_of_asked_length;
use super::support::{Answer, Verdict, World, body, ms, us};

fn asked_for(length: u32) -> bytes::Bytes {
    length.to_be_bytes().to_vec().into()
}

/// A session in which replies are known to come fast.
fn with_fast_replies() -> (World, SessionIndex) {
    let (mut world, session, _) = World::connected();
    for number in 0..10 {
        let rpc = world.call(0, session, body(number, 64));
        world.outcome(0, rpc).unwrap();
    }
    (world, session)
}

fn lose_the_first_data_of(world: &mut World, node: usize) {
    let mut is_lost = false;
    world.rule = Box::new(move |datagram, _| {
        if datagram.from == node && datagram.data().is_some() && !is_lost {
            is_lost = true;
            return Verdict::Drop;
        }
        Verdict::Deliver
    });
}

/// How long a call takes of which the next packet of `node` with DATA is lost.
fn time_of_a_lost_call(world: &mut World, session: SessionIndex, node: usize) -> Duration {
    lose_the_first_data_of(world, node);
    let began = world.now;
    let rpc = world.call(0, session, body(99, 64));
    assert_eq!(world.outcome(0, rpc), Ok(body(99, 64)));
    world.now.since(began)
}

#[test]
fn a_lost_call_is_asked_about_soon_when_replies_come_fast() {
    for node in [0, 1] {
        let (mut world, session) = with_fast_replies();
        let taken = time_of_a_lost_call(&mut world, session, node);
        assert!(taken < us(200), "{node}: {taken:?}");
    }
}

/// One reply that a scheduler has held up says little of the path.
#[test]
fn one_reply_held_up_does_not_delay_later_questions() {
    let (mut world, session) = with_fast_replies();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let rpc = world.call(0, session, body(1, 64));
    world.run_for(ms(3));
    answer_last(&mut world);
    world.outcome(0, rpc).unwrap();
    world.nodes[1].application = Box::new(|request| Answer::Reply(request.clone()));
    for number in 0..30 {
        let rpc = world.call(0, session, body(number, 64));
        world.outcome(0, rpc).unwrap();
    }
    let taken = time_of_a_lost_call(&mut world, session, 1);
    assert!(taken < us(200), "{taken:?}");
}

// SMT [9.3-8]
#[test]
fn a_first_call_is_asked_about_after_the_whole_interval() {
    let (mut world, session, _) = World::connected();
    let taken = time_of_a_lost_call(&mut world, session, 1);
    assert!(taken >= ms(5), "{taken:?}");
}

/// The second question comes when the first would have come otherwise.
// SMT [9.3-13]
#[test]
fn only_the_first_question_is_early() {
    let (mut world, session) = with_fast_replies();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let asked = |world: &World| world.nodes[0].endpoint.statistics().resends_asked;
    let before = asked(&world);
    world.call(0, session, body(9, 64));
    world.run_for(ms(5));
    assert_eq!(asked(&world) - before, 1);
    world.run_for(ms(2));
    assert_eq!(asked(&world) - before, 2);
}

#[test]
fn a_call_is_asked_about_late_when_replies_take_long() {
    let (mut world, session) = with_fast_replies();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    for number in 0..5 {
        let rpc = world.call(0, session, body(number, 64));
        world.run_for(ms(20));
        answer_last(&mut world);
        world.outcome(0, rpc).unwrap();
    }
    let asked = |world: &World| world.nodes[0].endpoint.statistics().resends_asked;
    let before = asked(&world);
    let rpc = world.call(0, session, body(9, 64));
    world.run_for(ms(4));
    assert_eq!(asked(&world), before, "5 ms have not passed");
    answer_last(&mut world);
    world.outcome(0, rpc).unwrap();
}

/// A peer that takes ten round trips is asked about the first call, and then no more.
#[test]
fn replies_that_take_longer_than_before_cause_one_question() {
    let (mut world, session) = with_fast_replies();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    for number in 0..40 {
        let rpc = world.call(0, session, body(number, 64));
        world.run_for(us(200));
        answer_last(&mut world);
        world.outcome(0, rpc).unwrap();
    }
    assert_eq!(world.nodes[0].endpoint.statistics().resends_asked, 1);
}

/// Nor do replies in bundles that come soon after an early question: the second question about a
/// call comes as ever.
#[test]
fn early_questions_do_not_delay_the_others() {
    let (mut world, session) = with_fast_replies();
    for round in 0..10 {
        world.latency = us(10);
        for number in 0..40 {
            let rpc = world.call(0, session, body(number, 64));
            world.outcome(0, rpc).unwrap();
        }
        world.latency = us(70);
        let requests = (0..3).map(|number| body(round * 3 + number, 64));
        for rpc in world.start_calls(0, session, requests) {
            world.outcome(0, rpc).unwrap();
        }
        world.run_for(ms(600));
    }
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let asked = |world: &World| world.nodes[0].endpoint.statistics().resends_asked;
    let before = asked(&world);
    world.call(0, session, body(9, 64));
    world.run_for(ms(7));
    assert_eq!(asked(&world) - before, 2);
}

/// A reply that waits for grants has not left as a whole, and is as little lost.
#[test]
fn waiting_for_grants_does_not_look_like_a_loss() {
    let (mut world, session) = with_fast_replies();
    world.rate = 1_250;
    world.nodes[1].application = replies_of_asked_length();
    for _ in 0..5 {
        let short = (0..30).map(|_| asked_for(64));
        for rpc in world.start_calls(0, session, short) {
            world.outcome(0, rpc).unwrap();
        }
        let long = (0..10).map(|_| asked_for(200_000));
        for rpc in world.start_calls(0, session, long) {
            assert_eq!(world.outcome(0, rpc).unwrap().len(), 200_000);
        }
    }
    assert_eq!(world.nodes[1].endpoint.statistics().packets_resent, 0);
}

fn answer_last(world: &mut World) {
    let (rpc, request) = world.nodes[1].delivered.last().unwrap().clone();
    let now = world.now;
    world.nodes[1].endpoint.reply(now, rpc, request).unwrap();
}

/// A late packet was not lost: long replies are not sent twice, and the path is not taken for a
/// narrow one.
#[test]
fn a_queue_does_not_look_like_a_loss() {
    let (mut world, session) = with_fast_replies();
    // 1.6 ms of a link of 10 Gb/s.
    world.rate = 1_250;
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(1, 20_000)));
    let requests = (0..100).map(|number| body(number, 64));
    for rpc in world.start_calls(0, session, requests) {
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 20_000)));
    }
    assert_eq!(world.nodes[1].endpoint.statistics().packets_resent, 0);
    let at_server = world.nodes[1].delivered[0].0.session;
    let facts = world.nodes[1].endpoint.session(at_server).unwrap();
    assert_eq!(facts.datagram_size, 65_507);
}

/// What the client has sent since `from`: R for a request, again or not, ? for a question.
fn said_by_client(world: &World, from: usize) -> String {
    let of_client = world.sent[from..].iter().filter(|sent| sent.from == 0);
    let said = of_client.filter_map(|sent| match sent.data() {
        Some(_) => Some('R'),
        None => sent.has(PacketType::Resend).then_some('?'),
    });
    said.collect()
}

/// Then the answer is the reply, not that the request was never seen: one round trip less.
// SMT [9.3-11]
#[test]
fn a_short_request_is_repeated_ahead_of_the_question() {
    for calls in [1, 3] {
        let (mut world, session) = with_fast_replies();
        world.is_recording = true;
        let from = world.sent.len();
        lose_the_first_data_of(&mut world, 0);
        let requests = (0..calls).map(|number| body(number, 64));
        for rpc in world.start_calls(0, session, requests) {
            world.outcome(0, rpc).unwrap();
        }
        assert_eq!(said_by_client(&world, from), "RR?", "{calls} calls");
        let said = &world.sent[from..];
        assert!(!said.iter().any(|sent| sent.has(PacketType::NeverSeen)));
        assert_eq!(world.nodes[1].delivered.len() as u64, 10 + calls);
    }
}

#[test]
fn a_long_request_is_not_repeated_ahead_of_the_question() {
    let (mut world, session) = with_fast_replies();
    world.is_recording = true;
    let from = world.sent.len();
    lose_the_first_data_of(&mut world, 0);
    let rpc = world.call(0, session, body(99, 1_200));
    world.outcome(0, rpc).unwrap();
    assert!(said_by_client(&world, from).starts_with("R?R"));
}

#[test]
fn a_bundle_that_was_answered_in_part_is_not_repeated() {
    let (mut world, session) = with_fast_replies();
    world.nodes[1].application = Box::new(|request| match request[..] == body(0, 64)[..] {
        true => Answer::Reply(request.clone()),
        false => Answer::Hold,
    });
    world.is_recording = true;
    let from = world.sent.len();
    let rpcs = world.start_calls(0, session, (0..3).map(|number| body(number, 64)));
    world.outcome(0, rpcs[0]).unwrap();
    world.run_for(ms(2));
    assert_eq!(said_by_client(&world, from), "R?");
}

/// Many that fall silent wait for a peer that is held up; what they asked for would come twice.
// SMT [9.3-12]
#[test]
fn few_of_many_silent_requests_are_repeated() {
    let (mut world, session) = with_fast_replies();
    let before = resent_by_client(&world);
    world.rule = Box::new(|datagram, _| match datagram.from {
        1 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    for number in 0..50 {
        world.call(0, session, body(number, 64));
        world.run_for(us(60));
    }
    world.run_for(us(500));
    assert_eq!(resent_by_client(&world) - before, 4);
    assert_eq!(world.nodes[1].delivered.len(), 10 + 50);
}

/// Also if its members, which wait for different times, ask at different times.
#[test]
fn a_bundle_is_repeated_once_although_its_members_ask_at_different_times() {
    let (mut world, session) = with_fast_replies();
    world.is_recording = true;
    let from = world.sent.len();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    for number in 0..4 {
        world.start_calls(0, session, [body(number, 64)]);
        world.now = world.now + us(60);
    }
    world.run_for(ms(2));
    let said = said_by_client(&world, from);
    assert!(said.matches('?').count() > 1, "{said}");
    assert_eq!(said.matches('R').count(), 2, "{said}");
}

/// A request that is late and asked about after the whole interval is not sent twice.
#[test]
fn a_late_request_is_not_repeated() {
    let (mut world, session, _) = World::connected();
    world.latency = ms(4);
    for number in 0..40 {
        world.call(0, session, body(number, 64));
        world.run_for(us(500));
    }
    world.run_for(ms(20));
    assert!(world.nodes[0].endpoint.statistics().resends_asked > 0);
    assert_eq!(resent_by_client(&world), 0);
}

/// A reply that was asked about says little of how long replies take.
#[test]
fn one_loss_does_not_delay_the_question_after_the_next() {
    let (mut world, session) = with_fast_replies();
    for _ in 0..20 {
        let taken = time_of_a_lost_call(&mut world, session, 0);
        assert!(taken < us(200), "{taken:?}");
        let rpc = world.call(0, session, body(1, 64));
        world.outcome(0, rpc).unwrap();
    }
}

/// But if replies take longer from now on, that is found out.
#[test]
fn a_path_that_has_become_longer_causes_no_questions() {
    let (mut world, session) = with_fast_replies();
    world.latency = us(150);
    for number in 0..20 {
        let rpc = world.call(0, session, body(number, 64));
        world.outcome(0, rpc).unwrap();
    }
    let before = world.nodes[0].endpoint.statistics().resends_asked;
    for number in 0..200 {
        let rpc = world.call(0, session, body(number, 64));
        world.outcome(0, rpc).unwrap();
    }
    assert_eq!(world.nodes[0].endpoint.statistics().resends_asked, before);
}

fn resent_by_client(world: &World) -> u64 {
    world.nodes[0].endpoint.statistics().packets_resent
}
