// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets without keys that cause work: how much of it is bounded (SPEC §6.4, §12.1, §12.2).

use std::net::SocketAddr;

use smt_carrier::{Arrival, Path};
use smt_proto::{Config, Event};
use smt_wire::{Handshake, PacketType, Reset, SessionIndex, VERSION, VersionAnswer};

use super::support::{Datagram, Node, Verdict, World, body, ms};

fn server() -> Config {
    let mut config = Config::default();
    config.accept = true;
    config
}

/// From the client's address to the server.
fn from_client(world: &World, bytes: Vec<u8>) -> Datagram {
    Datagram { is_trimmed: false, at: world.now, from: 0, to: 1, bytes }
}

/// The first fragment of a client's flight that is longer.
const FIRST: Handshake<'_> = Handshake {
    destination: SessionIndex(0),
    source: SessionIndex(7),
    flight: 1,
    cookie: &[],
    flight_length: 5_000,
    offset: 0,
    fragment: &[1],
};

/// A peer that numbers all of its sessions alike makes a server compare tokens with few of them.
// SMT [12.1-6]
#[test]
fn a_reset_is_compared_with_few_sessions() {
    let mut world = World::pair(Config::default(), server());
    let mut session = SessionIndex(0);
    for _ in 0..20 {
        world.nodes[0] = Node::new(0, Config::default());
        world.start_connect(0, 1);
        session = world.wait(0, |event| match event {
            Event::Connected { session, .. } => Some(*session),
            _ => None,
        });
        world.run_for(ms(1));
    }
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 20);
    let reset = Reset { index: session, token: [0; 16] };
    let mut bytes = [0; Reset::LEN];
    reset.emit(VERSION, &mut bytes);
    let reset = from_client(&world, bytes.to_vec());
    world.hand_in(&reset);
    assert_eq!(world.nodes[1].endpoint.statistics().controls_forged, 8);
}

// SMT [12.2-5]
#[test]
fn bytes_behind_a_version_answer_are_not_looked_at() {
    let (mut world, session, _) = World::connected();
    let answer = VersionAnswer { versions: &[7] };
    let mut version = vec![0; answer.packet_len()];
    answer.emit(&mut version);
    let mut is_first = true;
    world.rule = Box::new(move |datagram, _| {
        if datagram.data().is_none() || !std::mem::take(&mut is_first) {
            return Verdict::Deliver;
        }
        Verdict::Replace(vec![[&version[..], &datagram.bytes].concat()])
    });
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 100)));
}

/// Else packets that are as short as the answer would use up what may be answered.
// SMT [6.4-1]
#[test]
fn cookies_are_given_for_whole_first_packets_alone() {
    let mut config = server();
    config.accepts_without_cookie = 0;
    let mut world = World::pair(Config::default(), config);
    world.is_recording = true;
    for (offset, length) in [(0, 1_199), (1, 1_200), (0, 86), (0, 1_200)] {
        let packet = Handshake { offset, ..FIRST };
        let mut bytes = vec![0; 1_200];
        assert_eq!(packet.emit(VERSION, length, &mut bytes), length);
        bytes.truncate(length);
        let flight = from_client(&world, bytes);
        world.hand_in(&flight);
        let cookies = world.sent.drain(..);
        let cookies = cookies.filter(|sent| sent.has(PacketType::Cookie)).count();
        let is_whole = (offset, length) == (0, 1_200);
        assert_eq!(cookies, usize::from(is_whole), "{length} B from {offset}");
    }
}

/// One network is a /24 or /64; other networks are still served without a cookie.
#[test]
fn sixteen_handshakes_of_one_network_begin_without_a_cookie() {
    for (network, other) in [("10.0.0.", "10.0.1.1"), ("2001:db8::", "2001:db8:0:1::1")] {
        let mut world = World::pair(Config::default(), server());
        let mut flight = vec![0; 1_200];
        FIRST.emit(VERSION, 1_200, &mut flight);
        let (now, server) = (world.now, &mut world.nodes[1]);
        let mut cookies_after = |address: &str| {
            let remote = SocketAddr::new(address.parse().unwrap(), 99);
            let path = Path::between(remote, server.address.ip());
            server.endpoint.handle_arrival(now, Arrival::datagram(path, &flight));
            server.endpoint.statistics().cookies_sent
        };
        for host in 1..=16 {
            assert_eq!(cookies_after(&format!("{network}{host}")), 0);
        }
        assert_eq!(cookies_after(&format!("{network}17")), 1);
        assert_eq!(cookies_after(other), 1);
    }
}
