// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where as many sessions are live as may be, clients of a network that has few get in (SPEC §10).

use std::net::SocketAddr;

use smt_carrier::{Arrival, Path};
use smt_proto::{CloseCode, Config, ConnectError, Event, SessionEnd, Unavailability};
use smt_wire::{Body, Handshake, PacketType, SessionIndex};

use super::support::node::address_of;
use super::support::rogue::Rogue;
use super::support::{World, body, ms};

/// A server, node 1, with room for so many sessions, of which node 0 has all; node 2; and node 3,
/// which is in the network of node 0.
fn taken_by_one(sessions_max: usize) -> (World, Vec<SessionIndex>) {
    let mut server = Config::default();
    server.accept = true;
    server.sessions_max = sessions_max;
    let mut world =
        World::new(vec![Config::default(), server, Config::default(), Config::default()]);
    world.nodes[3].address.set_ip([192, 0, 2, 77].into());
    let taken = (0..sessions_max).map(|_| world.connect(0, 1).unwrap().0);
    let taken = taken.collect();
    (world, taken)
}

/// The sessions of node 0 that have ended, each as an unused one.
fn evicted(world: &mut World) -> Vec<SessionIndex> {
    let mut evicted = Vec::new();
    while let Some((session, end)) = world.nodes[0].event(|event| match event {
        Event::SessionEnded { session, end } => Some((*session, end.clone())),
        _ => None,
    }) {
        assert_eq!(end, SessionEnd::ClosedByPeer(CloseCode::Idle));
        evicted.push(session);
    }
    evicted
}

#[test]
fn a_client_gets_in_although_another_network_has_taken_all_sessions() {
    let (mut world, _) = taken_by_one(6);
    for _ in 0..3 {
        let (session, _) = world.connect(2, 1).unwrap();
        let rpc = world.call(2, session, body(1, 10));
        assert_eq!(world.outcome(2, rpc), Ok(body(1, 10)));
    }
    assert_eq!(evicted(&mut world).len(), 3);
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 6);
}

#[test]
fn a_client_evicts_none_of_a_network_that_has_no_more_than_its_own() {
    let (mut world, _) = taken_by_one(6);
    for _ in 0..3 {
        world.connect(2, 1).unwrap();
    }
    for node in [0, 2] {
        let refused = ConnectError::Unavailable(Unavailability::Full);
        assert_eq!(world.connect(node, 1).unwrap_err(), refused);
    }
    assert_eq!(evicted(&mut world).len(), 3);
}

#[test]
fn the_session_that_has_been_unused_for_longest_is_closed() {
    let (mut world, taken) = taken_by_one(6);
    for used in [0, 1, 2, 4, 5] {
        let rpc = world.call(0, taken[used], body(1, 10));
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 10)));
    }
    world.connect(2, 1).unwrap();
    assert_eq!(evicted(&mut world), [taken[3]]);
}

/// Although the host that has most has used all of its own more lately.
#[test]
fn a_host_with_few_sessions_in_the_largest_network_keeps_them() {
    let (mut world, taken) = taken_by_one(6);
    let (session, _) = world.connect(3, 1).unwrap();
    let first = evicted(&mut world);
    for used in taken.iter().filter(|session| !first.contains(session)) {
        let rpc = world.call(0, *used, body(1, 10));
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 10)));
    }
    world.connect(2, 1).unwrap();
    assert_eq!((first.len(), evicted(&mut world).len()), (1, 1));
    let rpc = world.call(3, session, body(1, 10));
    assert_eq!(world.outcome(3, rpc), Ok(body(1, 10)));
}

/// Anybody can send in any name.
// SMT [10-7]
#[test]
fn a_client_without_a_cookie_evicts_none() {
    let (mut world, _) = taken_by_one(6);
    for number in 0..50_u8 {
        let remote = SocketAddr::from(([198, 51, number, 9], 7));
        let path = Path::between(remote, address_of(1).ip());
        let mut bytes = vec![0; 1_200];
        Handshake {
            destination: SessionIndex(0),
            source: SessionIndex(5),
            flight: 1,
            cookie: &[],
            flight_length: 9_000,
            offset: 0,
            fragment: &[1],
        }
        .emit(1, 1_200, &mut bytes);
        let (now, node) = (world.now, &mut world.nodes[1]);
        node.endpoint.handle_arrival(now, Arrival::datagram(path, &bytes));
        let answer = node.endpoint.poll_transmit(now, &mut node.buffer);
        assert!(answer.is_some() && node.buffer[1] == PacketType::Cookie as u8);
    }
    world.run_for(ms(100));
    assert_eq!(evicted(&mut world), []);
}

/// Nor does it keep it from being closed in the end.
#[test]
fn a_ping_is_no_use_of_a_session() {
    let (mut world, session, at_server) = World::connected();
    let mut rogue = Rogue::client(at_server);
    for _ in 0..11 {
        rogue.say(&mut world, &[Body::Ping(1), Body::WindowRequest]);
        world.run_for(ms(60_000));
    }
    assert_eq!(evicted(&mut world), [session]);
}
