// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A flight that is not the next one costs nothing, and an answer is as long as an address may get
//! (SPEC §6.1, §6.2).

use std::collections::BTreeSet;
use std::time::Duration;

use smt_carrier::{Arrival, Path};
use smt_proto::{Config, ConnectError, Event};
use smt_wire::{FlightBody, Handshake, Packet, PacketType, SessionIndex, VersionAnswer};

use super::support::node::address_of;
use super::support::{Datagram, Node, Verdict, World, body, exchanges};

fn server() -> Config {
    let mut config = Config::default();
    config.accept = true;
    config
}

/// How often the client has begun.
fn attempts(world: &World) -> usize {
    let of_client = world.sent.iter().filter(|sent| sent.from == 0);
    let sources = of_client.filter_map(|sent| Some(sent.handshake()?.source.0));
    sources.collect::<BTreeSet<u64>>().len()
}

/// All of a flight of this number, which is none, in the place of the packet.
fn out_of_turn(datagram: &Datagram, flight: u8) -> Datagram {
    let forged = Handshake {
        flight,
        fragment: b"forged",
        flight_length: 6,
        offset: 0,
        ..datagram.handshake().unwrap()
    };
    let mut bytes = vec![0; 1_200];
    let length = forged.emit(1, 1_200, &mut bytes);
    bytes.truncate(length);
    Datagram { bytes, ..datagram.clone() }
}

/// Before each packet of either side comes a whole flight that is not awaited.
#[test]
fn a_flight_that_is_not_awaited_is_dropped_by_either_side() {
    for flight in 1..=7 {
        let mut world = World::pair(Config::default(), server());
        world.rule = Box::new(move |datagram, injected| {
            if let Some(genuine) = datagram.handshake()
                && genuine.flight != flight
            {
                injected.push(out_of_turn(datagram, flight));
            }
            Verdict::Deliver
        });
        world.is_recording = true;
        let (session, _) = world.connect(0, 1).unwrap();
        assert_eq!(attempts(&world), 1, "in spite of flight {flight}");
        let server = world.nodes[1].endpoint.statistics();
        assert_eq!(server.handshakes_failed, 0, "flight {flight}");
        let rpc = world.call(0, session, body(1, 10));
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 10)));
    }
}

/// An alert counts from the server alone that the client has heard before: the index of another
/// cannot be told from a forger's.
#[test]
fn an_alert_under_another_index_or_number_than_the_servers_next_is_dropped() {
    for (shift, flight) in [(7, 4), (0, 6)] {
        assert_eq!(attempts_with_an_alert(shift, flight), 1, "flight {flight}");
    }
}

/// A server that refuses the client's certificate says so when the client has finished.
// SMT [6.1-7], [6.2-14]
#[test]
fn an_alert_as_the_servers_next_flight_ends_the_attempt() {
    assert_eq!(attempts_with_an_alert(0, 4), 2);
}

/// How often a client begins that gets an alert in the place of the first CONFIRM, under an index
/// that is the server's or so much higher.
fn attempts_with_an_alert(shift: u64, flight: u8) -> usize {
    let mut world = World::pair(Config::default(), server());
    let mut of_server = None;
    let mut is_told = false;
    world.rule = Box::new(move |datagram, injected| {
        if datagram.from == 1
            && let Some(packet) = datagram.handshake()
        {
            of_server = Some((packet.destination, packet.source));
        }
        if datagram.from == 1
            && datagram.has(PacketType::Confirm)
            && let Some((destination, source)) = of_server
            && !std::mem::replace(&mut is_told, true)
        {
            let alert = FlightBody { params: &[], key_exchange: b"alert" };
            let mut fragment = vec![0; alert.flight_len()];
            alert.emit(&mut fragment);
            let forged = Handshake {
                destination,
                source: SessionIndex(source.0 + shift),
                flight,
                cookie: &[],
                flight_length: fragment.len() as u32,
                offset: 0,
                fragment: &fragment,
            };
            let mut bytes = vec![0; 1_200];
            forged.emit(1, 1_200, &mut bytes);
            injected.push(Datagram { bytes, ..datagram.clone() });
            return Verdict::Drop;
        }
        Verdict::Deliver
    });
    world.is_recording = true;
    world.connect(0, 1).unwrap();
    attempts(&world)
}

/// Else the server would wait, and its log would not say why.
// SMT [6.1-6]
#[test]
fn a_client_that_refuses_its_server_sends_it_the_alert() {
    let mut world = World::pair(Config::default(), server());
    let mut exchanges = exchanges(0);
    exchanges.settings.refuses = true;
    world.nodes[0] = Node::with_exchanges(0, Config::default(), exchanges);
    world.is_recording = true;
    world.connect(0, 1).unwrap_err();
    let flights = world.sent.iter().filter_map(Datagram::handshake);
    let alert = flights.filter(|packet| packet.flight == 3);
    assert!(alert.count() > 0);
    assert!(world.nodes[1].endpoint.statistics().handshakes_failed > 0);
}

/// A server that speaks this version too is silent for another reason.
#[test]
fn a_version_answer_that_names_our_version_is_no_reason_to_fail() {
    for (versions, is_reason) in [(&[1, 2][..], false), (&[2, 3], true)] {
        let mut world = World::pair(Config::default(), server());
        world.rule = Box::new(|_, _| Verdict::Drop);
        world.start_connect(0, 1);
        let answer = VersionAnswer { versions };
        let mut bytes = vec![0; answer.packet_len()];
        answer.emit(&mut bytes);
        world.hand_in(&Datagram { at: world.now, from: 1, to: 0, bytes, is_trimmed: false });
        let error = world.wait(0, |event| match event {
            Event::ConnectFailed { error, .. } => Some(error.clone()),
            _ => None,
        });
        let is_version = matches!(error, ConnectError::Version { .. });
        assert_eq!(is_version, is_reason, "{error}");
    }
}

/// The bytes that the server sends at once for a flight 1 of one datagram of `length` bytes.
fn answer(filler: usize, length: usize) -> Vec<u8> {
    let mut world = World::pair(Config::default(), server());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.filler[1] = filler;
    world.nodes[1] = Node::with_exchanges(1, server(), exchanges);
    world.is_recording = true;
    world.start_connect(0, 1);
    let mut bytes = vec![0; length];
    world.sent[0].handshake().unwrap().emit(1, length, &mut bytes);
    let (now, node) = (world.now, &mut world.nodes[1]);
    let path = Path::between(address_of(0), address_of(1).ip());
    node.endpoint.handle_arrival(now, Arrival::datagram(path, &bytes));
    let mut answer = Vec::new();
    while node.endpoint.poll_transmit(now, &mut node.buffer).is_some() {
        answer.extend_from_slice(&node.buffer);
    }
    answer
}

#[test]
fn an_answer_of_three_times_what_came_is_sent_at_once_and_a_longer_one_is_not() {
    for filler in 3_350..3_356 {
        let whole = answer(filler, 1_400).len();
        let enough = whole.div_ceil(3);
        assert!((1_210..1_400).contains(&enough), "{whole}");
        assert_eq!(answer(filler, enough).len(), whole);
        assert!(answer(filler, enough - 1).len() < 100, "a cookie");
    }
}

/// A pair whose server leaves its client so many bytes beside CONFIRM.
fn with_parting(length: usize) -> World {
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.parting = vec![7; length];
    let mut world = World::pair(Config::default(), server());
    world.nodes[1] = Node::with_exchanges(1, server(), exchanges);
    world.is_recording = true;
    world
}

/// The types of the packets in each datagram of the server.
fn of_server(world: &World) -> Vec<Vec<PacketType>> {
    let sent = world.sent.iter().filter(|sent| sent.from == 1);
    let kinds = [PacketType::Handshake, PacketType::Confirm];
    let types = |sent: &Datagram| {
        let found = kinds.into_iter().filter(|kind| sent.has(*kind));
        found.collect::<Vec<_>>()
    };
    sent.map(types).collect()
}

// SMT [6.10-1]
#[test]
fn a_ticket_leaves_right_before_the_first_confirm_in_its_datagram_and_once() {
    let mut world = with_parting(100);
    let mut confirms = 0;
    world.rule = Box::new(move |datagram, _| {
        let is_confirm = datagram.from == 1 && datagram.has(PacketType::Confirm);
        confirms += u32::from(is_confirm);
        match is_confirm && confirms < 3 {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    let (session, _) = world.connect(0, 1).unwrap();
    assert_eq!(attempts(&world), 1, "a lost ticket costs nothing");
    let of_server = of_server(&world);
    let tickets = [PacketType::Handshake, PacketType::Confirm];
    let with_ticket = of_server.iter().filter(|types| **types == tickets);
    assert_eq!(with_ticket.count(), 1);
    let first = of_server.iter().find(|types| types.contains(&tickets[1]));
    assert_eq!(first.unwrap(), &tickets);
    let sent = world.sent.iter().filter(|sent| sent.from == 1);
    let mut flights = sent.filter_map(|sent| Some((sent.handshake()?, sent)));
    let (ticket, datagram) = flights.find(|(packet, _)| packet.flight == 4).unwrap();
    assert_eq!(FlightBody::parse(ticket.fragment).unwrap().params, []);
    assert!(matches!(datagram.packets()[..], [Packet::Handshake(_), Packet::Control(_)]));
    assert!(flights.all(|(packet, _)| packet.flight < 4));
    let rpc = world.call(0, session, body(1, 10));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 10)));
}

// SMT [6.10-1]
#[test]
fn no_ticket_leaves_before_the_clients_confirm() {
    let mut world = with_parting(100);
    world.rule = Box::new(|datagram, _| {
        if datagram.from == 1 || !datagram.has(PacketType::Confirm) {
            return Verdict::Deliver;
        }
        // It is the last packet of its datagram, and has 60 bytes.
        let rest = datagram.bytes.len() - 60;
        Verdict::Replace(vec![datagram.bytes[..rest].to_vec()])
    });
    world.start_connect(0, 1);
    world.run_for(Duration::from_millis(400));
    let sent = world.sent.iter().filter_map(Datagram::handshake);
    let most = sent.map(|packet| packet.flight).max();
    assert_eq!(most, Some(3));
}

// SMT [6.10-1]
#[test]
fn a_ticket_that_does_not_fit_beside_confirm_is_not_sent() {
    for (length, is_sent) in [(1_098, true), (1_099, false)] {
        let mut world = with_parting(length);
        world.connect(0, 1).unwrap();
        let tickets = of_server(&world);
        let tickets = tickets.iter().filter(|types| types.len() == 2);
        assert_eq!(tickets.count(), usize::from(is_sent), "{length}");
        let longest = world.sent.iter().filter(|sent| sent.handshake().is_some());
        let longest = longest.map(|sent| sent.bytes.len()).max();
        assert_eq!(longest, Some(1_200), "{length}");
    }
}
