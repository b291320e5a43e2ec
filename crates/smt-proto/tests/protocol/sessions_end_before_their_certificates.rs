// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A session ends in good order before a certificate of its handshake does: what has begun goes on,
//! and nothing more begins.

use std::time::Duration;

use smt_proto::{
    CallFailure, CloseCode, Config, Event, Execution, OneWayOutcome, Refused, SessionEnd, WallTime,
};
use smt_wire::SessionIndex;

use super::support::{Answer, Node, World, body, exchanges};

/// The calendar of both sides when a world begins.
const WALL: u64 = 1_700_000_000;

/// A client and a server that have judged certificates which end after so many seconds: for each
/// side that of its peer, and its own.
fn connected(ends: [[Option<u64>; 2]; 2]) -> (World, SessionIndex, SessionIndex) {
    let mut server = Config::default();
    server.accept = true;
    let nodes = [Config::default(), server].into_iter().zip(ends).enumerate();
    let nodes = nodes.map(|(number, (config, ends))| {
        let mut exchanges = exchanges((number as u64) << 32);
        let end = |seconds| WallTime::from_secs(WALL + seconds);
        exchanges.settings.expires = ends.map(|seconds| seconds.map(end));
        Node::with_exchanges(number, config, exchanges)
    });
    let mut world = World::of(nodes.collect());
    let now = world.now;
    for node in &mut world.nodes {
        node.endpoint.set_wall_time(now, WallTime::from_secs(WALL));
    }
    let (client, server) = world.connect(0, 1).unwrap();
    (world, client, server)
}

/// Lets time pass until so many seconds after the beginning.
fn run_until(world: &mut World, seconds: u64) {
    let until = World::new(Vec::new()).now + Duration::from_secs(seconds);
    let left = until.since(world.now);
    world.run_for(left);
}

fn end_of(world: &mut World, node: usize) -> SessionEnd {
    world.wait(node, |event| match event {
        Event::SessionEnded { end, .. } => Some(end.clone()),
        _ => None,
    })
}

/// The server replies to the request that it has held.
fn reply_held(world: &mut World) {
    let (rpc, _) = world.nodes[1].delivered[0].clone();
    let now = world.now;
    let endpoint = &mut world.nodes[1].endpoint;
    endpoint.reply(now, rpc, body(2, 5)).unwrap();
    world.flush();
}

fn client_retires(ends: [[Option<u64>; 2]; 2]) {
    let (mut world, client, _) = connected(ends);
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    run_until(&mut world, 88);
    let held = world.call(0, client, body(1, 10));
    run_until(&mut world, 92);
    let now = world.now;
    let endpoint = &mut world.nodes[0].endpoint;
    let refused = endpoint.call(now, client, body(1, 10), None);
    assert_eq!(refused.unwrap_err(), Refused::Expired);
    assert_eq!(endpoint.may_begin(now, client), Err(Refused::Expired));
    assert!(endpoint.session(client).is_some(), "a call is in progress");
    reply_held(&mut world);
    assert_eq!(world.outcome(0, held), Ok(body(2, 5)));
    assert_eq!(end_of(&mut world, 0), SessionEnd::ClosedHere);
    let closed = SessionEnd::ClosedByPeer(CloseCode::Expired);
    assert_eq!(end_of(&mut world, 1), closed);
    let ago = world.now.since(now);
    assert!(ago < Duration::from_secs(3), "it was closed {ago:?} later");
}

// SMT [10-18], [10-21]
#[test]
fn a_client_begins_nothing_more_before_the_servers_certificate_ends_and_its_calls_go_on() {
    client_retires([[Some(100), None], [None, None]]);
}

// SMT [10-19]
#[test]
fn a_client_does_the_same_before_its_own_certificate_ends() {
    client_retires([[Some(1_000), Some(100)], [None, None]]);
}

// SMT [10-22], [10-20]
#[test]
fn a_peer_that_is_accepted_no_more_is_served_nothing_more_and_what_runs_is_finished() {
    let (mut world, client, server) = connected([[None; 2]; 2]);
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let held = world.call(0, client, body(1, 10));
    world.run_for(Duration::from_millis(5));
    let now = world.now;
    world.nodes[1].endpoint.expire(now, server);
    let late = world.call(0, client, body(1, 20));
    let error = world.outcome(0, late).unwrap_err();
    assert_eq!(error.execution, Execution::DidNotRun);
    assert_eq!(world.nodes[1].delivered.len(), 1);
    reply_held(&mut world);
    assert_eq!(world.outcome(0, held), Ok(body(2, 5)));
    assert_eq!(end_of(&mut world, 0), SessionEnd::ClosedByPeer(CloseCode::Expired));
    // One that is not in use closes at once.
    let (_, server) = world.connect(0, 1).unwrap();
    let now = world.now;
    world.nodes[1].endpoint.expire(now, server);
    world.run_for(Duration::from_millis(5));
    assert!(world.nodes[1].endpoint.session(server).is_none());
}

// SMT [10-18], [10-21]
#[test]
fn a_session_that_is_not_in_use_closes_when_its_certificate_is_about_to_end() {
    let (mut world, client, _) = connected([[Some(100), None], [None, None]]);
    run_until(&mut world, 89);
    assert!(world.nodes[0].endpoint.session(client).is_some());
    run_until(&mut world, 92);
    assert_eq!(end_of(&mut world, 0), SessionEnd::ClosedHere);
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 0);
    // Its certificate is renewed meanwhile, or not: the client connects as ever.
    world.connect(0, 1).unwrap();
}

// SMT [10-20], [10-21]
#[test]
fn a_server_takes_nothing_of_a_client_whose_certificate_has_ended_and_finishes_what_runs() {
    let (mut world, client, server) = connected([[None, None], [Some(100), Some(50)]]);
    world.nodes[1].application = Box::new(|request| match request.len() {
        10 => Answer::Hold,
        _ => Answer::Reply(request.clone()),
    });
    run_until(&mut world, 98);
    let held = world.call(0, client, body(1, 10));
    let served = world.call(0, client, body(1, 20));
    assert_eq!(world.outcome(0, served), Ok(body(1, 20)));
    run_until(&mut world, 102);
    let delivered = world.nodes[1].delivered.len();
    let late = world.call(0, client, body(1, 20));
    let error = world.outcome(0, late).unwrap_err();
    assert_eq!(error.reason, CallFailure::ShuttingDown);
    assert_eq!(error.execution, Execution::DidNotRun);
    let late = world.send_one_way(0, client, body(1, 30));
    assert_eq!(world.one_way_outcome(0, late), OneWayOutcome::Delivered);
    assert_eq!(world.nodes[1].delivered.len(), delivered);
    assert_eq!(world.nodes[1].endpoint.statistics().messages_expired, 1);
    let now = world.now;
    let refused = world.nodes[1].endpoint.call(now, server, body(1, 10), None);
    assert_eq!(refused.unwrap_err(), Refused::Expired);
    reply_held(&mut world);
    assert_eq!(world.outcome(0, held), Ok(body(2, 5)));
    let closed = SessionEnd::ClosedByPeer(CloseCode::Expired);
    assert_eq!(end_of(&mut world, 0), closed);
}
