// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When a client must show a cookie, and that it then gets in (SPEC §6.2, §6.4).

use std::collections::BTreeSet;
use std::net::SocketAddr;

use smt_carrier::{Arrival, Path};
use smt_proto::Config;
use smt_wire::{Cookie, FlightBody, Handshake, Packet, PacketType, SessionIndex};

use super::support::forge::flipped;
use super::support::node::address_of;
use super::support::{Datagram, Node, Verdict, World, body, exchanges, ms};

fn server() -> Config {
    let mut config = Config::default();
    config.accept = true;
    config
}

/// A world whose server has flights 2 and 4 of this length.
fn world_with_a_long_answer(length: usize) -> World {
    let mut world = World::pair(Config::default(), server());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.filler[1] = length;
    world.nodes[1] = Node::with_exchanges(1, server(), exchanges);
    world
}

/// A packet of flight 1.
fn first_flight(source: u64, fragment: &[u8], length: usize) -> Vec<u8> {
    let packet = Handshake {
        destination: SessionIndex(0),
        source: SessionIndex(source),
        flight: 1,
        cookie: &[],
        flight_length: length as u32,
        offset: 0,
        fragment,
    };
    let mut bytes = vec![0; 1_200];
    let length = packet.emit(1, 1_200, &mut bytes);
    bytes.truncate(length);
    bytes
}

/// The handshake packets that the client has sent.
fn flights(world: &World) -> impl Iterator<Item = Handshake<'_>> {
    let sent = world.sent.iter().filter(|sent| sent.from == 0);
    sent.filter_map(|sent| match sent.packets().first() {
        Some(Packet::Handshake(packet)) => Some(*packet),
        _ => None,
    })
}

fn hand_to_server(world: &mut World, remote: SocketAddr, bytes: &[u8]) {
    let (now, node) = (world.now, &mut world.nodes[1]);
    let path = Path::between(remote, address_of(1).ip());
    node.endpoint.handle_arrival(now, Arrival::datagram(path, bytes));
    while node.endpoint.poll_transmit(now, &mut node.buffer).is_some() {}
}

/// A certificate chain may be longer than three times what the client has sent: nothing is waited
/// for.
// SMT [6.2-17], [6.2-19]
#[test]
fn an_answer_that_an_address_may_not_get_yet_costs_a_cookie_and_no_waiting() {
    for length in [8_000, 55_000] {
        let mut world = world_with_a_long_answer(length);
        world.is_recording = true;
        world.connect(0, 1).unwrap();
        let numbers = flights(&world).map(|packet| packet.flight);
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 1, 3], "{length}");
        let cookies = world.sent.iter().filter(|sent| sent.has(PacketType::Cookie));
        assert_eq!(cookies.count(), 1, "{length}");
    }
}

#[test]
fn an_answer_that_an_address_may_get_costs_no_cookie() {
    let mut world = world_with_a_long_answer(3_000);
    world.connect(0, 1).unwrap();
    assert_eq!(world.nodes[1].endpoint.statistics().cookies_sent, 0);
}

// SMT [6.1-11]
#[test]
fn a_flight_that_no_peer_would_take_is_the_callers_fault() {
    let mut world = World::pair(Config::default(), server());
    let mut exchanges = exchanges(0);
    exchanges.settings.filler[2] = 70_000;
    world.nodes[0] = Node::with_exchanges(0, Config::default(), exchanges);
    let error = world.connect(0, 1).unwrap_err().to_string();
    assert!(error.contains("flight 3") && error.contains("55944"), "{error}");
    // At the server it ends the attempt, not the program.
    let mut world = world_with_a_long_answer(70_000);
    world.connect(0, 1).unwrap_err();
    assert!(world.nodes[1].endpoint.statistics().handshakes_failed > 0);
}

/// Flight 1 was repeated before its cookie came, and is answered by another one a second later.
// SMT [6.4-3]
#[test]
fn a_newer_cookie_is_as_good_as_the_one_that_the_handshake_began_with() {
    let mut config = server();
    config.accepts_without_cookie = 0;
    let mut world = World::pair(Config::default(), config);
    world.latency = ms(40);
    // The first repetition is to be in the next second of the server's clock.
    world.run_for(ms(1_000 - world.now.as_nanos() / 1_000_000 % 1_000 - 60));
    world.is_recording = true;
    world.connect(0, 1).unwrap();
    let cookies: Vec<Vec<u8>> = world
        .sent
        .iter()
        .filter(|sent| sent.has(PacketType::Cookie))
        .map(|sent| sent.bytes.clone())
        .collect();
    assert!(cookies.len() == 2 && cookies[0] != cookies[1]);
    let sources = flights(&world).map(|packet| packet.source);
    assert_eq!(sources.collect::<BTreeSet<_>>().len(), 1, "one attempt");
}

/// An attacker that does not see the cookie cannot spoil the attempt: packets before the genuine
/// flight 3 are dropped.
// SMT [6.4-4], [6.4-2]
#[test]
fn a_missing_or_forged_cookie_spoils_no_attempt() {
    for cookie in [&b""[..], b"a forged cookie of 24 byt"] {
        let mut config = server();
        config.accepts_without_cookie = 0;
        let mut world = World::pair(Config::default(), config);
        world.rule = Box::new(move |datagram, injected| {
            let packets = datagram.packets();
            if let Some(Packet::Handshake(packet)) = packets.first()
                && packet.flight == 3
            {
                let forged = Handshake { cookie, fragment: b"forged", flight_length: 6, ..*packet };
                let mut bytes = vec![0; 1_200];
                forged.emit(1, 1_200, &mut bytes);
                injected.push(Datagram { bytes, ..datagram.clone() });
            }
            Verdict::Deliver
        });
        world.connect(0, 1).unwrap();
        let server = world.nodes[1].endpoint.statistics();
        assert_eq!((server.cookies_sent, server.handshakes_failed), (1, 0));
    }
}

/// After flight 1 the server asks for no second cookie: one that comes then takes nothing from the
/// first.
// SMT [6.4-4]
#[test]
fn a_forged_cookie_does_not_replace_the_one_that_the_handshake_began_with() {
    let mut config = server();
    config.accepts_without_cookie = 0;
    let mut world = World::pair(Config::default(), config);
    let mut is_lost = false;
    world.rule = Box::new(move |datagram, injected| {
        let packets = datagram.packets();
        let Some(Packet::Handshake(packet)) = packets.first() else {
            return Verdict::Deliver;
        };
        if packet.flight != 3 || is_lost {
            return Verdict::Deliver;
        }
        is_lost = true;
        let cookie = Cookie { destination: packet.source, cookie: b"a forged cookie of 24 byt" };
        let mut bytes = vec![0; 100];
        let length = cookie.emit(1, &mut bytes);
        bytes.truncate(length);
        injected.push(Datagram { from: 1, to: 0, bytes, ..datagram.clone() });
        Verdict::Drop
    });
    world.is_recording = true;
    world.connect(0, 1).unwrap();
    let sources = flights(&world).map(|packet| packet.source);
    assert_eq!(sources.collect::<BTreeSet<_>>().len(), 1, "one attempt");
}

// SMT [6.4-8]
#[test]
fn a_forged_cookie_is_replaced_by_the_genuine_one() {
    let mut config = server();
    config.accepts_without_cookie = 0;
    let mut world = World::pair(Config::default(), config);
    let mut is_forged = false;
    world.rule = Box::new(move |datagram, injected| {
        if datagram.has(PacketType::Cookie) && !is_forged {
            is_forged = true;
            injected.push(Datagram {
                bytes: flipped(&datagram.bytes, datagram.bytes.len() - 1),
                ..datagram.clone()
            });
        }
        Verdict::Deliver
    });
    world.is_recording = true;
    world.connect(0, 1).unwrap();
    let sources = flights(&world).map(|packet| packet.source);
    assert_eq!(sources.collect::<BTreeSet<_>>().len(), 1, "one attempt");
}

/// Anybody may invent addresses: the places that they take are not those of clients with a cookie.
// SMT [10-15]
#[test]
fn few_places_for_sessions_are_not_taken_by_invented_addresses() {
    let mut config = server();
    config.sessions_max = 64;
    let mut world = World::pair(Config::default(), config);
    for number in 0..640_u64 {
        let remote = SocketAddr::from(([198, 51, (number / 8) as u8, 9], 7));
        hand_to_server(&mut world, remote, &first_flight(5 + number, &[1], 9_000));
    }
    let (session, _) = world.connect(0, 1).unwrap();
    let rpc = world.call(0, session, body(1, 10));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 10)));
}

/// TLS may have signed before it met what was wrong: the same datagram again does not make it sign
/// again and again.
// SMT [6.2-16]
#[test]
fn a_flight_that_spoils_its_attempt_is_tried_a_few_times_and_no_more() {
    let mut world = World::pair(Config::default(), server());
    world.is_recording = true;
    world.start_connect(0, 1);
    let sent = world.sent[0].clone();
    let packets = sent.packets();
    let Some(Packet::Handshake(packet)) = packets.first() else {
        panic!("{sent:?}");
    };
    let genuine = FlightBody::parse(packet.fragment).unwrap();
    let alert = FlightBody { params: genuine.params, key_exchange: b"alert" };
    let mut bytes = vec![0; alert.flight_len()];
    alert.emit(&mut bytes);
    let flight = first_flight(packet.source.0, &bytes, bytes.len());
    for _ in 0..1_000 {
        hand_to_server(&mut world, "192.0.2.9:9".parse().unwrap(), &flight);
    }
    assert_eq!(world.nodes[1].endpoint.statistics().handshakes_failed, 3);
}

#[test]
fn a_flight_that_was_answered_with_an_alert_is_not_tried_again() {
    let mut world = World::pair(Config::default(), server());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.refuses = true;
    world.nodes[1] = Node::with_exchanges(1, server(), exchanges);
    world.is_recording = true;
    world.start_connect(0, 1);
    let flight = world.sent[0].bytes.clone();
    for _ in 0..100 {
        hand_to_server(&mut world, "192.0.2.9:9".parse().unwrap(), &flight);
    }
    assert_eq!(world.nodes[1].endpoint.statistics().handshakes_failed, 1);
}

/// Some lengths leave nothing of what an address may get: there the COOKIE answers between the
/// flights are too much.
// SMT [6.2-17]
#[test]
fn cookies_count_as_what_an_address_gets_before_it_is_validated() {
    for length in (3_000..12_000).step_by(100) {
        let mut world = world_with_a_long_answer(length);
        world.is_recording = true;
        world.start_connect(0, 1);
        let flight = world.sent[0].bytes.clone();
        let remote = "192.0.2.9:9".parse().unwrap();
        let sent = (0..100).map(|_| answer_to(&mut world, remote, &flight));
        let (sent, most) = (sent.sum::<usize>(), 3 * 100 * flight.len());
        assert!((most / 2..=most).contains(&sent), "{length}: {sent} of {most}");
    }
}

/// Else one host could keep its neighbours out, who need a cookie as it does.
#[test]
fn an_address_that_asks_for_all_cookies_leaves_others_theirs() {
    let mut config = server();
    config.accepts_without_cookie = 0;
    let mut world = World::new(vec![Config::default(), config]);
    let mut is_answered = |remote: [u8; 4], source: u64| {
        let bytes = first_flight(source, &[1], 9_000);
        answer_to(&mut world, SocketAddr::from((remote, 7)), &bytes) > 0
    };
    // All that leave in an instant are 10,000.
    let asked = 1..=12_000;
    let greedy = asked.filter(|source| is_answered([198, 51, 100, 1], *source));
    assert_eq!(greedy.count(), 1_250);
    let others = (2..=101).filter(|last| is_answered([198, 51, 100, *last], 5));
    let others = others.count();
    assert!(others >= 95, "{others} of 100 others");
}

/// Bytes that the server answers to a datagram.
fn answer_to(world: &mut World, remote: SocketAddr, bytes: &[u8]) -> usize {
    let (now, node) = (world.now, &mut world.nodes[1]);
    let path = Path::between(remote, address_of(1).ip());
    node.endpoint.handle_arrival(now, Arrival::datagram(path, bytes));
    let mut answer = 0;
    while node.endpoint.poll_transmit(now, &mut node.buffer).is_some() {
        answer += node.buffer.len();
    }
    answer
}
