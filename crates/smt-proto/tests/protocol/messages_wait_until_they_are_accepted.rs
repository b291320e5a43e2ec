// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An owner that accepts messages on demand leaves them in the endpoint, which then keeps the rules
//! for what waits (SPEC §10): its memory, back-pressure, and a shutdown.

use smt_proto::{CallFailure, Config, Execution, PeerMessage, RpcId};
use smt_wire::SessionIndex;

use crate::support::*;

/// A connected client and a server whose messages wait; the client's session.
fn queueing(server: Config) -> (World, SessionIndex) {
    let (mut world, client, _) = World::connected_with(Config::default(), server);
    world.nodes[1].endpoint.queue_messages();
    (world, client)
}

fn accept_all(world: &mut World) -> Vec<PeerMessage> {
    std::iter::from_fn(|| world.nodes[1].endpoint.accept(world.now)).collect()
}

fn ids(messages: &[PeerMessage]) -> Vec<RpcId> {
    messages.iter().map(|message| message.rpc).collect()
}

fn assert_did_not_run(world: &mut World, call: RpcId) {
    let error = world.outcome(0, call).map(drop).unwrap_err();
    assert_eq!((error.reason, error.execution), (CallFailure::ShuttingDown, Execution::DidNotRun));
}

#[test]
fn messages_are_accepted_in_the_order_in_which_they_came() {
    let (mut world, client) = queueing(Config::default());
    let call = world.call(0, client, body(1, 10));
    let one_way = world.send_one_way(0, client, body(2, 10));
    world.run_for(ms(1));
    let endpoint = &world.nodes[1].endpoint;
    assert_eq!((endpoint.arrived(), endpoint.accept_queue_len()), (2, 2));
    assert!(world.nodes[1].delivered.is_empty(), "no event tells of them");
    let accepted = accept_all(&mut world);
    let told: Vec<_> = accepted
        .iter()
        .map(|message| (message.rpc.id, message.is_one_way, message.body.clone()))
        .collect();
    assert_eq!(told, [(call.id, false, body(1, 10)), (one_way.id, true, body(2, 10))]);
    assert_eq!(world.nodes[1].endpoint.accept_queue_len(), 0);
}

#[test]
fn messages_that_wait_count_as_memory_until_they_are_accepted() {
    let (mut world, client) = queueing(Config::default());
    let before = world.nodes[1].endpoint.memory();
    world.start_calls(0, client, (0..3).map(|_| body(1, 1_000)));
    world.run_for(ms(1));
    assert!(world.nodes[1].endpoint.memory() >= before + 3_000);
    assert_eq!(accept_all(&mut world).len(), 3);
    assert_eq!(world.nodes[1].endpoint.memory(), before);
}

#[test]
fn no_more_messages_are_taken_than_may_wait() {
    let (mut world, client) = queueing(Config::default());
    world.nodes[1].endpoint.set_untaken_max(2_500);
    for _ in 0..3 {
        world.call(0, client, body(1, 1_000));
        world.run_for(ms(1));
    }
    assert_eq!(accept_all(&mut world).len(), 2);
    world.run_for(ms(100));
    assert_eq!(accept_all(&mut world).len(), 1, "it came again");
}

#[test]
fn a_request_whose_caller_gave_up_is_never_accepted() {
    let (mut world, client) = queueing(Config::default());
    let calls = world.start_calls(0, client, (0..2).map(|_| body(1, 10)));
    world.run_for(ms(1));
    let now = world.now;
    world.nodes[0].endpoint.cancel(now, calls[0]);
    world.run_for(ms(1));
    let accepted = accept_all(&mut world);
    assert_eq!(accepted.len(), 1);
    assert_eq!(accepted[0].rpc.id, calls[1].id);
}

#[test]
fn requests_wait_while_their_peer_acknowledges_no_replies() {
    let mut config = Config::default();
    config.memory_max = 1 << 20;
    let (mut world, client) = queueing(config);
    world.rule = Box::new(|datagram, _| match datagram.from {
        1 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    world.start_calls(0, client, (0..3).map(|_| body(2, 10)));
    world.run_for(ms(1));
    let now = world.now;
    let server = &mut world.nodes[1].endpoint;
    let first = server.accept(now).unwrap();
    let second = server.accept(now).unwrap();
    server.reply(now, first.rpc, body(1, 300_000)).unwrap();
    assert_eq!(server.accept(now), None, "the third would be answered too");
    let held = second.rpc;
    server.unaccept(second);
    assert_eq!(server.accept(now), None, "the second waits again");
    assert!(!server.has_released_requests());

    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.run_for(ms(100));
    assert!(world.nodes[1].endpoint.has_released_requests());
    let accepted = accept_all(&mut world);
    assert_eq!(accepted.len(), 2);
    assert!(ids(&accepted).contains(&held));
}

#[test]
fn a_request_that_is_given_back_is_accepted_again_while_its_peer_acknowledges_replies() {
    let (mut world, client) = queueing(Config::default());
    world.call(0, client, body(1, 10));
    world.run_for(ms(1));
    let (now, server) = (world.now, &mut world.nodes[1].endpoint);
    let request = server.accept(now).unwrap();
    server.unaccept(request.clone());
    assert!(server.has_released_requests());
    assert_eq!(server.accept(now), Some(request));
}

#[test]
fn a_shutdown_refuses_requests_that_were_not_accepted_and_keeps_one_way_messages() {
    let (mut world, client) = queueing(Config::default());
    let before = world.nodes[1].endpoint.memory();
    let calls = world.start_calls(0, client, (0..3).map(|_| body(1, 10)));
    world.send_one_way(0, client, body(2, 10));
    world.run_for(ms(1));
    let accepted = world.nodes[1].endpoint.accept(world.now).unwrap();
    assert_eq!(accepted.rpc.id, calls[0].id);

    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    for call in &calls[1..] {
        assert_did_not_run(&mut world, *call);
    }
    let left = accept_all(&mut world);
    assert_eq!(left.len(), 1);
    assert!(left[0].is_one_way);
    assert_eq!(world.nodes[1].endpoint.memory(), before);
    let now = world.now;
    let server = &mut world.nodes[1].endpoint;
    server.reply(now, accepted.rpc, body(3, 10)).unwrap();
    assert_eq!(world.outcome(0, calls[0]), Ok(body(3, 10)));
}
