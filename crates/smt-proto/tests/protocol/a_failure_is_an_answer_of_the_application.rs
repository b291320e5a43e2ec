// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An application that refuses or fails a request answers with a code and a text. The answer
//! travels as a reply does (SPEC §5.2).

use smt_proto::{CallError, CallFailure, Config, Execution, Failure, Refused};

use super::support::{Answer, Verdict, World, body, ms};

fn failing(failure: &Failure) -> Box<dyn FnMut(&bytes::Bytes) -> Answer> {
    let failure = failure.clone();
    Box::new(move |_| Answer::Fail(failure.clone()))
}

fn refused(failure: Failure) -> CallError {
    CallError { reason: CallFailure::Refused(Box::new(failure)), execution: Execution::DidNotRun }
}

// SMT [5.2-7], [11-3]
#[test]
fn a_failure_arrives_as_it_was_given_and_says_whether_the_request_ran() {
    let (mut world, session, _) = World::connected();
    let failure = Failure::failed(u32::MAX, "the disk is full");
    world.nodes[1].application = failing(&failure);
    let rpc = world.call(0, session, body(1, 100));
    let expected = CallError {
        reason: CallFailure::Failed(Box::new(failure)),
        execution: Execution::MayHaveRun,
    };
    assert_eq!(world.outcome(0, rpc), Err(expected));
    for failure in [Failure::refusal(0, ""), Failure::refusal(404, "no such é")] {
        world.nodes[1].application = failing(&failure);
        // A long request has come in several records, and its reply is no member of a bundle.
        for length in [100, 100_000] {
            let rpc = world.call(0, session, body(1, length));
            assert_eq!(world.outcome(0, rpc), Err(refused(failure.clone())));
        }
    }
}

// SMT [9.4-1]
#[test]
fn a_failure_that_is_lost_is_asked_for_and_then_acknowledged() {
    let (mut world, session, _) = World::connected();
    let failure = Failure::refusal(7, "not today");
    world.nodes[1].application = failing(&failure);
    let mut lost = 0;
    world.rule = Box::new(move |datagram, _| {
        if datagram.from == 1 && datagram.data().is_some() && lost < 3 {
            lost += 1;
            return Verdict::Drop;
        }
        Verdict::Deliver
    });
    let rpc = world.call(0, session, body(1, 100));
    assert_eq!(world.outcome(0, rpc), Err(refused(failure)));
    assert_eq!(world.nodes[1].delivered.len(), 1);
    world.run_for(ms(2_000));
    assert_eq!(world.nodes[1].endpoint.served_len(), 0);
}

#[test]
fn failures_and_replies_share_a_bundle() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|request| match request[0] % 2 {
        0 => Answer::Reply(request.clone()),
        _ => Answer::Fail(Failure::refusal(u32::from(request[0]), "odd")),
    });
    let requests: Vec<_> = (0..20_u8).map(|n| bytes::Bytes::from(vec![n; 30])).collect();
    let calls = world.start_calls(0, session, requests.clone());
    for (n, (rpc, request)) in calls.into_iter().zip(requests).enumerate() {
        let expected = match n % 2 {
            0 => Ok(request),
            _ => Err(refused(Failure::refusal(n as u32, "odd"))),
        };
        assert_eq!(world.outcome(0, rpc), expected);
    }
    assert!(world.nodes[1].endpoint.statistics().bundles_sent > 0);
}

// SMT [5.2-8]
#[test]
fn a_failure_is_never_too_long_for_its_caller() {
    let mut client = Config::default();
    client.message_limit = 8;
    let (mut world, session, _) = World::connected_with(client, Config::default());
    world.nodes[1].application = failing(&Failure::refusal(3, "0123456789"));
    let rpc = world.call(0, session, body(1, 8));
    let expected = refused(Failure::refusal(3, "01234567"));
    assert_eq!(world.outcome(0, rpc), Err(expected));
}

#[test]
fn a_request_is_answered_once_by_a_failure_or_otherwise() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    let (held, _) = world.nodes[1].delivered[0].clone();
    let now = world.now;
    let server = &mut world.nodes[1].endpoint;
    let failure = Failure::refusal(1, "no");
    server.fail(now, held, failure.clone()).unwrap();
    let again = server.fail(now, held, failure.clone());
    assert_eq!(again, Err(Refused::NoRpc));
    assert_eq!(server.reply(now, held, body(1, 1)), Err(Refused::NoRpc));
    assert_eq!(world.outcome(0, rpc), Err(refused(failure)));
}
