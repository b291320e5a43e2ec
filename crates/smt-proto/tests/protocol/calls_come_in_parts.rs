// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and replies of any number of parts (SPEC §5.9).

use std::time::Duration;

use bytes::Bytes;
use smt_proto::{
    CallError, CallFailure, CallOptions, CloseCode, Config, Event, Execution, Failure, PartMarks,
    Refused, RpcId, TakenPart,
};
use smt_wire::{Abort, AbortCode, Body, List, PacketType, SessionIndex};

use super::support::rogue::Rogue;
use super::support::{Answer, Verdict, World, body, ms, us};

pub(crate) const REPLY: PartMarks = PartMarks { reply_in_parts: true, more: false, number: 0 };
pub(crate) const REQUEST: PartMarks = PartMarks { reply_in_parts: false, more: true, number: 0 };
const BOTH: PartMarks = PartMarks { more: true, ..REPLY };

/// Begins a call in parts; its name at the client and at the server, which holds the request.
pub(crate) fn begin(world: &mut World, session: SessionIndex, parts: PartMarks) -> (RpcId, RpcId) {
    begin_with(world, session, parts, None)
}

fn begin_with(
    world: &mut World,
    session: SessionIndex,
    parts: PartMarks,
    deadline: Option<Duration>,
) -> (RpcId, RpcId) {
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let (now, endpoint) = (world.now, &mut world.nodes[0].endpoint);
    let call = endpoint.call_in_parts(now, session, "request", CallOptions { deadline, parts });
    let call = call.unwrap();
    world.run_for(ms(1));
    (call, world.nodes[1].delivered.last().unwrap().0)
}

fn of_parts(parts: PartMarks) -> CallOptions {
    CallOptions { parts, ..CallOptions::default() }
}

/// Sends a part of a request (node 0) or of a reply (node 1).
pub(crate) fn send(
    world: &mut World,
    node: usize,
    rpc: RpcId,
    bytes: Bytes,
    more: bool,
) -> Result<(), Refused> {
    let now = world.now;
    let endpoint = &mut world.nodes[node].endpoint;
    endpoint.send_part(now, rpc, bytes, more)
}

/// Takes the parts that have come; and whether the end has.
pub(crate) fn take(world: &mut World, node: usize, rpc: RpcId) -> (Vec<Bytes>, bool) {
    let mut parts = Vec::new();
    loop {
        match world.nodes[node].endpoint.take_part(rpc) {
            Ok(Some(TakenPart::Part(part))) => parts.push(part),
            Ok(Some(TakenPart::End)) => return (parts, true),
            Ok(None) | Err(_) => return (parts, false),
        }
    }
}

/// The parts that a call of node 0 has left to its application at its end.
pub(crate) fn left(world: &mut World, call: RpcId) -> Option<Vec<Bytes>> {
    world.nodes[0].event(|event| match event {
        Event::PartsLeft { rpc, parts } if *rpc == call => Some(parts.clone()),
        _ => None,
    })
}

/// Sends all of these parts while the other side takes them, and returns what it took.
fn stream(world: &mut World, from: usize, rpcs: [RpcId; 2], parts: &[Bytes]) -> Vec<Bytes> {
    let (mut taken, mut sent) = (Vec::new(), 0);
    let end = world.now + Duration::from_secs(60);
    while taken.len() < parts.len() {
        while let Some(part) = parts.get(sent) {
            match send(world, from, rpcs[from], part.clone(), sent + 1 < parts.len()) {
                Ok(()) => sent += 1,
                Err(Refused::PartWindowFull | Refused::Blocked) => break,
                Err(other) => panic!("{other}"),
            }
        }
        taken.extend(take(world, 1 - from, rpcs[1 - from]).0);
        assert!(world.step(end), "the parts do not come: {} of {}", taken.len(), parts.len());
    }
    taken
}

pub(crate) fn parts_of(lengths: impl IntoIterator<Item = usize>) -> Vec<Bytes> {
    let lengths = lengths.into_iter().enumerate();
    lengths.map(|(at, length)| body(at as u64, length)).collect()
}

// SMT [5.9-9], [5.9-7]
#[test]
fn a_reply_comes_in_parts_and_ends_with_the_reply() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    let parts = parts_of([0, 1, 100, 1_142, 20_000, 60_000]);
    for part in &parts {
        send(&mut world, 1, request, part.clone(), true).unwrap();
    }
    let now = world.now;
    world.nodes[1].endpoint.reply(now, request, "end").unwrap();
    world.run_for(ms(20));
    let ready =
        |event: &Event| matches!(event, Event::PartReady(rpc) if *rpc == call).then_some(());
    assert!(world.nodes[0].event(ready).is_some());
    assert_eq!(take(&mut world, 0, call), (parts, false));
    assert_eq!(world.outcome(0, call).unwrap(), "end");
    assert_eq!(world.nodes[0].endpoint.take_part(call), Err(Refused::NoRpc));
}

#[test]
fn the_sender_of_parts_in_a_bundle_is_told_nothing_of_their_arrival() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    for text in ["one", "two"] {
        send(&mut world, 1, request, text.into(), true).unwrap();
    }
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.nodes[1].endpoint.statistics().bundles_sent, 1);
    assert_eq!(take(&mut world, 0, call).0, ["one", "two"]);
    let done = |event: &Event| matches!(event, Event::OneWayDone { .. }).then_some(());
    assert!(world.nodes[1].event(done).is_none());
}

// SMT [5.9-7]
#[test]
fn a_reply_waits_until_its_parts_are_taken() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    send(&mut world, 1, request, "part".into(), true).unwrap();
    let now = world.now;
    world.nodes[1].endpoint.reply(now, request, "end").unwrap();
    world.run_for(Duration::from_secs(30));
    let is_over = |event: &Event| matches!(event, Event::Reply { .. }).then_some(());
    assert!(world.nodes[0].event(is_over).is_none());
    assert_eq!(world.nodes[1].endpoint.served_len(), 0, "it is acknowledged");
    take(&mut world, 0, call);
    assert_eq!(world.outcome(0, call).unwrap(), "end");
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
}

// SMT [5.9-6], [5.9-8]
#[test]
fn a_request_comes_in_parts_that_its_server_asks_for() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REQUEST);
    let part = || Bytes::from_static(b"part");
    assert_eq!(send(&mut world, 0, call, part(), true), Err(Refused::PartWindowFull));
    assert_eq!(take(&mut world, 1, request), (vec![], false));
    let raised =
        |event: &Event| matches!(event, Event::PartWindowRaised(rpc) if *rpc == call).then_some(());
    world.wait(0, raised);
    send(&mut world, 0, call, part(), true).unwrap();
    send(&mut world, 0, call, "last".into(), false).unwrap();
    assert_eq!(send(&mut world, 0, call, part(), false), Err(Refused::NoRpc));
    world.run_for(ms(5));
    assert_eq!(take(&mut world, 1, request), (vec![part(), "last".into()], true));
    let now = world.now;
    world.nodes[1].endpoint.reply(now, request, "end").unwrap();
    assert_eq!(world.outcome(0, call).unwrap(), "end");
}

#[test]
fn parts_go_both_ways_at_once() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, BOTH);
    take(&mut world, 1, request);
    world.run_for(ms(5));
    for round in 0..20 {
        let text = Bytes::from(format!("{round}"));
        send(&mut world, 0, call, text.clone(), true).unwrap();
        world.run_for(ms(1));
        let (asked, _) = take(&mut world, 1, request);
        assert_eq!(asked, [text]);
        send(&mut world, 1, request, asked[0].clone(), true).unwrap();
        world.run_for(ms(1));
        assert_eq!(take(&mut world, 0, call).0, asked);
    }
}

// SMT [5.9-5], [5.9-12], [5.9-13], [5.9-14], [5.9-15]
#[test]
fn streams_of_any_length_arrive_in_order_through_loss() {
    for from in [0, 1] {
        let (mut world, session, _) = World::connected();
        let (call, request) = begin(&mut world, session, BOTH);
        let mut count = 0_u32;
        world.rule = Box::new(move |_, _| {
            count += 1;
            // 10 % are lost, and as many are late.
            match count.wrapping_mul(2_654_435_761) >> 24 {
                0..=25 => Verdict::Drop,
                26..=51 => Verdict::Delay(ms(3)),
                _ => Verdict::Deliver,
            }
        });
        let parts = parts_of((0..300).map(|at| [0, 700, 9_000, 60_000][at % 4]));
        let taken = stream(&mut world, from, [call, request], &parts);
        assert!(taken == parts, "from node {from}");
        assert_eq!(world.nodes[0].endpoint.statistics().violations, 0);
        assert_eq!(world.nodes[1].endpoint.statistics().violations, 0);
    }
}

// SMT [5.9-12]
#[test]
fn parts_that_nobody_takes_stop_at_the_window() {
    let mut client = Config::default();
    client.part_window = 8_192;
    let (mut world, session, _) = World::connected_with(client, Config::default());
    let (call, request) = begin(&mut world, session, REPLY);
    let sent = (0..100).take_while(|_| send(&mut world, 1, request, body(1, 512), true).is_ok());
    assert_eq!(sent.count(), 8, "each counts 1,024");
    world.run_for(Duration::from_secs(10));
    assert!(send(&mut world, 1, request, Bytes::new(), true).is_err());
    assert_eq!(world.nodes[0].endpoint.memory(), 8_192);
    assert_eq!(take(&mut world, 0, call).0.len(), 8);
    world.run_for(ms(1));
    assert!(send(&mut world, 1, request, Bytes::new(), true).is_ok());
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
}

// SMT [5.9-14]
#[test]
fn a_lost_window_is_asked_for() {
    let mut client = Config::default();
    client.part_window = 4_096;
    let (mut world, session, _) = World::connected_with(client, Config::default());
    let (call, request) = begin(&mut world, session, REPLY);
    while send(&mut world, 1, request, body(1, 512), true).is_ok() {}
    world.run_for(ms(20));
    let mut lost = 0;
    world.rule = Box::new(move |datagram, _| {
        let is_window = datagram.has(PacketType::PartWindow);
        lost += u32::from(is_window);
        match is_window && lost <= 3 {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    take(&mut world, 0, call);
    let raised = |event: &Event| {
        matches!(event, Event::PartWindowRaised(rpc) if *rpc == request).then_some(())
    };
    world.wait(1, raised);
    assert!(send(&mut world, 1, request, body(1, 512), true).is_ok());
}

/// A reader tells its window when half of it was read, and a part may take more than half.
// SMT [5.9-14]
#[test]
fn a_part_that_takes_more_than_half_of_the_window_follows_a_shorter_one() {
    let mut client = Config::default();
    client.part_window = 4_096;
    let (mut world, session, _) = World::connected_with(client, Config::default());
    let (call, request) = begin(&mut world, session, REPLY);
    let parts = parts_of([1_000, 3_584, 1_000, 3_584]);
    assert_eq!(stream(&mut world, 1, [call, request], &parts), parts);
}

// SMT [5.9-15]
#[test]
fn parts_that_came_in_a_bundle_are_acknowledged_though_nothing_is_said_to_their_sender() {
    let (mut world, client, server) = World::connected();
    let (_, request) = begin(&mut world, client, REPLY);
    for part in parts_of([64; 40]) {
        send(&mut world, 1, request, part, true).unwrap();
    }
    let of_server = |world: &World| world.nodes[1].endpoint.session(server).unwrap().calls;
    assert_eq!(of_server(&world), 40);
    world.run_for(us(500));
    assert_eq!(world.nodes[0].endpoint.statistics().parts_delivered, 40);
    assert_eq!(of_server(&world), 0, "kept parts are looked at by each pass of timers");
}

#[test]
fn parts_that_leave_in_a_bundle_are_no_messages_of_the_application() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    let parts = parts_of([10, 20, 30]);
    for part in &parts {
        send(&mut world, 1, request, part.clone(), true).unwrap();
    }
    world.run_for(ms(100));
    assert_eq!(world.nodes[1].endpoint.statistics().bundles_sent, 1);
    assert_eq!(take(&mut world, 0, call).0, parts);
    let done = |event: &Event| matches!(event, Event::OneWayDone { .. }).then_some(());
    assert!(world.nodes[1].event(done).is_none());
}

// SMT [5.9-11]
#[test]
fn a_part_that_no_window_takes_is_refused_and_the_call_goes_on() {
    let mut client = Config::default();
    client.part_window = 4_096;
    let (mut world, session, _) = World::connected_with(client, Config::default());
    let (call, request) = begin(&mut world, session, REPLY);
    let (length, limit) = (3_585, 3_584);
    let refused = send(&mut world, 1, request, body(1, length), true);
    assert_eq!(refused, Err(Refused::TooLarge { length, limit }));
    send(&mut world, 1, request, body(1, 3_584), true).unwrap();
    world.run_for(ms(5));
    assert_eq!(take(&mut world, 0, call).0.len(), 1);
}

/// Nothing else of the server arrives, and the request need not be kept any longer.
// SMT [5.9-17]
#[test]
fn a_part_of_a_reply_says_that_its_request_has_arrived() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|datagram, _| match datagram.from == 1 && datagram.data().is_none() {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    let (call, request) = begin(&mut world, session, REPLY);
    world.is_recording = true;
    let mut rogue = Rogue::server(session);
    for (has_come, again) in [(false, 1), (true, 0)] {
        if has_come {
            send(&mut world, 1, request, body(1, 100), true).unwrap();
            world.run_for(us(100));
        }
        world.sent.clear();
        let ids = [call.id];
        let never_seen = Body::NeverSeen(List::from(&ids[..]));
        rogue.say(&mut world, &[never_seen]);
        let of_client = world.sent.iter().filter(|sent| sent.from == 0);
        assert_eq!(of_client.filter(|sent| sent.data().is_some()).count(), again);
    }
}

// SMT [5.9-1]
#[test]
fn a_peer_that_takes_no_parts_gets_none() {
    let mut none = Config::default();
    none.part_window = 0;
    for (client, server) in [(none.clone(), Config::default()), (Config::default(), none)] {
        let (mut world, session, _) = World::connected_with(client, server);
        let now = world.now;
        for parts in [REPLY, REQUEST] {
            let endpoint = &mut world.nodes[0].endpoint;
            let refused = endpoint.call_in_parts(now, session, "request", of_parts(parts));
            assert_eq!(refused, Err(Refused::NoParts));
        }
    }
}

// SMT [5.9-3]
#[test]
fn a_call_without_parts_has_none() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, PartMarks::default());
    assert_eq!(send(&mut world, 1, request, "part".into(), true), Err(Refused::NoParts));
    assert_eq!(send(&mut world, 0, call, "part".into(), true), Err(Refused::NoRpc));
    assert_eq!(world.nodes[1].endpoint.take_part(request), Err(Refused::NoRpc));
    let (call, request) = begin(&mut world, session, REPLY);
    assert_eq!(send(&mut world, 0, call, "part".into(), true), Err(Refused::NoRpc));
    assert_eq!(world.nodes[1].endpoint.take_part(request), Err(Refused::NoRpc));
}

// SMT [5.9-20]
#[test]
fn a_call_that_is_given_up_ends_its_parts_on_both_sides() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, BOTH);
    send(&mut world, 1, request, "part".into(), true).unwrap();
    world.run_for(ms(5));
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, call));
    assert_eq!(world.nodes[0].endpoint.memory(), 0, "parts that wait are dropped");
    assert_eq!(left(&mut world, call), None, "whoever gives up wants none");
    world.run_for(ms(5));
    let cancelled =
        |event: &Event| matches!(event, Event::Cancelled(rpc) if *rpc == request).then_some(());
    assert!(world.nodes[1].event(cancelled).is_some());
    assert_eq!(send(&mut world, 1, request, "part".into(), true), Err(Refused::NoRpc));
    assert_eq!(world.nodes[1].endpoint.take_part(request), Err(Refused::NoRpc));
}

// SMT [5.9-16]
#[test]
fn parts_of_a_call_that_is_over_are_acknowledged_and_dropped() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    let mut is_late = false;
    world.rule = Box::new(move |datagram, _| {
        // The part comes after the call is over.
        let is_part = datagram.from == 1 && datagram.data().is_some();
        if is_part && !is_late {
            is_late = true;
            return Verdict::Delay(ms(4));
        }
        Verdict::Deliver
    });
    send(&mut world, 1, request, "part".into(), true).unwrap();
    world.run_for(ms(1));
    let now = world.now;
    world.nodes[0].endpoint.cancel(now, call);
    world.run_for(ms(100));
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
    let facts = world.nodes[1].endpoint.session(request.session).unwrap();
    assert_eq!(facts.calls, 0, "the part is acknowledged");
    assert_eq!(world.nodes[0].endpoint.statistics().violations, 0);
}

// SMT [5.9-20]
#[test]
fn an_answer_without_a_reply_leaves_the_parts_that_have_come() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    send(&mut world, 1, request, "part".into(), true).unwrap();
    world.run_for(ms(5));
    let now = world.now;
    let endpoint = &mut world.nodes[1].endpoint;
    endpoint.abort(now, request, AbortCode::Dropped).unwrap();
    let error = world.outcome(0, call).unwrap_err();
    assert_eq!(error.reason, CallFailure::Dropped);
    assert_eq!(left(&mut world, call).unwrap(), ["part"]);
    assert_eq!(world.nodes[0].endpoint.take_part(call), Err(Refused::NoRpc));
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
}

// SMT [5.9-20]
#[test]
fn a_session_that_ends_leaves_the_parts_that_have_come_and_were_not_taken() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    let (other, _) = begin(&mut world, session, REPLY);
    for part in ["zero", "one", "two"] {
        send(&mut world, 1, request, part.into(), true).unwrap();
    }
    world.run_for(ms(5));
    assert!(world.nodes[0].endpoint.take_part(call).unwrap().is_some());
    world.nodes[1].endpoint.close_all(CloseCode::ShuttingDown);
    world.run_for(ms(5));
    let place = |fits: &dyn Fn(&Event) -> bool| world.nodes[0].events.iter().position(fits);
    let parts = place(&|event| matches!(event, Event::PartsLeft { rpc, .. } if *rpc == call));
    let end = place(&|event| matches!(event, Event::CallFailed { rpc, .. } if *rpc == call));
    assert!(parts.unwrap() < end.unwrap(), "the parts come before the end");
    let error = world.outcome(0, call).unwrap_err();
    assert!(matches!(error.reason, CallFailure::SessionEnded(_)), "{error:?}");
    assert_eq!(left(&mut world, call).unwrap(), ["one", "two"]);
    assert_eq!(left(&mut world, other), None);
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
}

#[test]
fn the_parts_of_requests_of_a_session_that_ends_take_no_memory_of_their_server() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REQUEST);
    assert_eq!(take(&mut world, 1, request), (Vec::new(), false), "the window opens");
    world.run_for(ms(1));
    for part in parts_of([1_000; 3]) {
        send(&mut world, 0, call, part, true).unwrap();
    }
    world.run_for(ms(5));
    assert!(world.nodes[1].endpoint.memory() >= 3_000);
    world.nodes[0].endpoint.close_all(CloseCode::Done);
    world.run_for(ms(5));
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
}

// SMT [5.9-7]
#[test]
fn a_failure_comes_behind_the_parts_before_it() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    send(&mut world, 1, request, "part".into(), true).unwrap();
    let now = world.now;
    let failure = Failure::failed(7, "disk full");
    let endpoint = &mut world.nodes[1].endpoint;
    endpoint.fail(now, request, failure.clone()).unwrap();
    world.run_for(ms(20));
    assert_eq!(take(&mut world, 0, call).0, ["part"]);
    let error = world.outcome(0, call).unwrap_err();
    assert_eq!(error.reason, CallFailure::Failed(Box::new(failure)));
}

// SMT [5.9-20]
#[test]
fn a_deadline_leaves_the_parts_that_have_come() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin_with(&mut world, session, REPLY, Some(ms(50)));
    send(&mut world, 1, request, "part".into(), true).unwrap();
    let CallError { reason, execution } = world.outcome(0, call).unwrap_err();
    assert_eq!(reason, CallFailure::DeadlineExceeded);
    assert_eq!(execution, Execution::MayHaveRun);
    assert_eq!(left(&mut world, call).unwrap(), ["part"]);
    assert_eq!(world.nodes[0].endpoint.memory(), 0);
}

// SMT [5.9-20]
#[test]
fn a_reply_that_has_come_whole_ends_its_call_whatever_comes_before_its_parts_are_taken() {
    let deadline = |world: &mut World, _: RpcId| world.run_for(ms(100));
    let close = |world: &mut World, _: RpcId| {
        world.nodes[1].endpoint.close_all(CloseCode::ShuttingDown);
        world.run_for(ms(5));
    };
    let abort = |world: &mut World, call: RpcId| {
        let code = AbortCode::Dropped.code();
        let abort = Body::Abort(Abort { id: call.id, code });
        Rogue::server(call.session).say(world, &[abort]);
    };
    type End = dyn Fn(&mut World, RpcId);
    let ends: [&End; 3] = [&deadline, &close, &abort];
    for end in ends {
        let (mut world, session, _) = World::connected();
        let (call, request) = begin_with(&mut world, session, REPLY, Some(ms(50)));
        send(&mut world, 1, request, "part".into(), true).unwrap();
        let now = world.now;
        world.nodes[1].endpoint.reply(now, request, "end").unwrap();
        world.run_for(ms(5));
        end(&mut world, call);
        assert_eq!(left(&mut world, call).unwrap(), ["part"]);
        assert_eq!(world.outcome(0, call).unwrap(), "end");
        assert_eq!(world.nodes[0].endpoint.memory(), 0);
    }
}

// SMT [5.9-18]
#[test]
fn a_server_that_dies_behind_its_reply_is_noticed() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    let mut is_dead = false;
    world.rule = Box::new(move |datagram, _| {
        // The part is lost, and after the reply everything.
        let Some(data) = datagram.data().filter(|_| datagram.from == 1) else {
            return if is_dead { Verdict::Drop } else { Verdict::Deliver };
        };
        is_dead |= data.header.id == call.id;
        match data.header.id == call.id {
            true => Verdict::Deliver,
            false => Verdict::Drop,
        }
    });
    send(&mut world, 1, request, body(1, 2_000), true).unwrap();
    world.flush();
    let now = world.now;
    world.nodes[1].endpoint.reply(now, request, body(2, 2_000)).unwrap();
    let error = world.outcome(0, call).unwrap_err();
    assert!(matches!(error.reason, CallFailure::SessionEnded(_)), "{error:?}");
}

#[test]
fn a_request_that_is_cut_short_is_given_up_unless_it_was_answered() {
    for is_answered in [false, true] {
        let (mut world, session, _) = World::connected();
        let (call, request) = begin(&mut world, session, BOTH);
        send(&mut world, 1, request, "part".into(), true).unwrap();
        if is_answered {
            let now = world.now;
            world.nodes[1].endpoint.reply(now, request, "end").unwrap();
        }
        world.run_for(ms(20));
        let refused = send(&mut world, 0, call, "part".into(), true);
        assert_eq!(refused == Err(Refused::NoRpc), is_answered, "{refused:?}");
        let now = world.now;
        world.nodes[0].endpoint.cut_short(now, call);
        assert_eq!(take(&mut world, 0, call).0.len(), usize::from(is_answered));
        let outcome = world.outcome(0, call);
        let cancelled = outcome.map_err(|error| error.reason);
        match is_answered {
            true => assert_eq!(cancelled, Ok("end".into())),
            false => assert_eq!(cancelled, Err(CallFailure::Cancelled)),
        }
    }
}

/// Small replies that wait together leave in a bundle.
// SMT [5.9-20]
#[test]
fn a_reply_in_a_bundle_ends_the_parts_of_its_request() {
    let (mut world, session, _) = World::connected();
    let calls = [(); 3].map(|()| begin(&mut world, session, REQUEST));
    for (call, _) in calls {
        let refused = send(&mut world, 0, call, "part".into(), true);
        assert_eq!(refused, Err(Refused::PartWindowFull));
    }
    let now = world.now;
    for (_, request) in calls {
        world.nodes[1].endpoint.reply(now, request, "end").unwrap();
    }
    assert_eq!(world.nodes[1].endpoint.statistics().bundles_sent, 0);
    for (call, _) in calls {
        assert_eq!(world.outcome(0, call).unwrap(), "end");
        let refused = send(&mut world, 0, call, "part".into(), true);
        assert_eq!(refused, Err(Refused::NoRpc));
    }
    assert_eq!(world.nodes[1].endpoint.statistics().bundles_sent, 1);
}

/// A client that accepts no messages lets none wait, but its calls have readers.
#[test]
fn parts_need_no_acceptor() {
    let (mut world, session, _) = World::connected();
    let (call, request) = begin(&mut world, session, REPLY);
    world.nodes[0].endpoint.set_untaken_max(0);
    let parts = parts_of([10, 5_000, 60_000, 10]);
    for part in &parts {
        send(&mut world, 1, request, part.clone(), true).unwrap();
    }
    world.run_for(ms(5));
    assert_eq!(take(&mut world, 0, call).0, parts);
    assert_eq!(world.nodes[0].endpoint.statistics().memory_refusals, 0);
}

#[test]
fn a_request_that_waits_for_its_application_has_no_window_and_is_voided_whole() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].endpoint.queue_messages();
    let (now, endpoint) = (world.now, &mut world.nodes[0].endpoint);
    let call = endpoint.call_in_parts(now, session, "request", of_parts(BOTH));
    let call = call.unwrap();
    world.run_for(ms(5));
    let now = world.now;
    world.nodes[0].endpoint.cancel(now, call);
    world.run_for(ms(5));
    assert!(world.nodes[1].endpoint.accept(now).is_none());
    let facts = world.nodes[0].endpoint.session(session).unwrap();
    assert_eq!((facts.calls, world.nodes[1].endpoint.memory()), (0, 0));
}
