// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A session is between two addresses: what comes from a third one does nothing, however genuine
//! its bytes are.

use smt_carrier::{Arrival, Path};
use smt_proto::Config;
use smt_wire::{Body, ControlNumber, PacketType};

use super::support::node::address_of;
use super::support::rogue::Rogue;
use super::support::{Datagram, Verdict, World, body};

/// Gives a datagram to its node as if nobody had sent it that the node knows.
fn hand_in_from_elsewhere(world: &mut World, datagram: &Datagram) {
    let path = Path::between(address_of(7), address_of(datagram.to).ip());
    let endpoint = &mut world.nodes[datagram.to].endpoint;
    endpoint.handle_arrival(world.now, Arrival::datagram(path, &datagram.bytes));
    world.flush();
}

// SMT [6.3-24]
#[test]
fn data_counts_from_its_sender_alone() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.is_recording = true;
    world.send_one_way(0, session, body(1, 10));
    let sent = world.sent.remove(0);
    assert!(sent.data().is_some());
    let unknown = world.nodes[1].endpoint.statistics().packets_unknown_session;
    hand_in_from_elsewhere(&mut world, &sent);
    assert!(world.nodes[1].delivered.is_empty());
    let counted = world.nodes[1].endpoint.statistics();
    assert_eq!(counted.packets_unknown_session, unknown + 1);
    world.hand_in(&sent);
    assert_eq!(world.nodes[1].delivered.len(), 1);
}

// SMT [6.3-24]
#[test]
fn control_packets_count_from_their_sender_alone() {
    let (mut world, _, at_server) = World::connected();
    let number = ControlNumber { stripe: 0, counter: 700 };
    let ping = Rogue::client(at_server).control(&world, number, &Body::Ping(7));
    world.is_recording = true;
    hand_in_from_elsewhere(&mut world, &ping);
    assert!(world.sent.is_empty(), "{}", world.trace());
    world.hand_in(&ping);
    assert!(world.sent.iter().any(|sent| sent.has(PacketType::Pong)));
}

/// A host may have several addresses, and its client knows the one that it has called.
// SMT [15.1-4]
#[test]
fn a_server_answers_from_the_address_it_was_called_on() {
    let mut world = World::pair(Config::default(), Config::default());
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.is_recording = true;
    world.start_connect(0, 1);
    let flight = world.sent.remove(0);
    // A short flight is answered, and one of another version refused.
    let mut unknown = flight.bytes.clone();
    unknown[0] = 9;
    for bytes in [flight.bytes, unknown] {
        let path = Path::between(address_of(0), [198, 51, 100, 1].into());
        let (now, server) = (world.now, &mut world.nodes[1]);
        server.endpoint.handle_arrival(now, Arrival::datagram(path, &bytes));
        let answer = server.endpoint.poll_transmit(now, &mut server.buffer);
        assert_eq!(answer.unwrap().path, path);
    }
}
