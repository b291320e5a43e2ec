// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client repeats its flights until they are answered, and then begins anew; a server answers,
//! and never repeats by itself (SPEC §6.1, §6.2, §6.5).

use smt_carrier::{Arrival, Path};
use smt_proto::{Config, Time};
use smt_wire::{Body, FlightBody, Handshake, Packet, PacketType, SessionIndex};

use super::support::node::address_of;
use super::support::{Datagram, Node, Verdict, World, body, exchanges, ms};

/// A client and a server whose flights 1, 2 and 3 have about so many bytes, and that takes so many
/// rounds more.
fn world(filler: [usize; 3], retries: u8) -> World {
    let mut world = World::pair(Config::default(), Config::default());
    for number in 0..2 {
        let mut exchanges = exchanges((number as u64) << 32);
        exchanges.settings.filler = filler;
        exchanges.settings.retries = if number == 1 { retries } else { 0 };
        let mut config = Config::default();
        config.accept = number == 1;
        world.nodes[number] = Node::with_exchanges(number, config, exchanges);
    }
    world.is_recording = true;
    world
}

/// Flights of one packet each.
const SHORT: [usize; 3] = [200, 900, 0];

/// The packets of flights that a node has sent, with their times.
fn flights(world: &World, from: usize) -> impl Iterator<Item = (Time, Handshake<'_>)> {
    let sent = world.sent.iter().filter(move |sent| sent.from == from);
    sent.filter_map(|sent| Some((sent.at, sent.handshake()?)))
}

/// When the client's first attempt has sent this flight.
fn times(world: &World, number: u8) -> Vec<Time> {
    let first = flights(world, 0).next().unwrap().1.source;
    let of_flight = flights(world, 0).filter(|(_, packet)| {
        packet.source == first && packet.flight == number && packet.offset == 0
    });
    of_flight.map(|(at, _)| at).collect()
}

/// The attempts that the client has begun.
fn attempts(world: &World) -> usize {
    let mut sources: Vec<u64> = flights(world, 0).map(|(_, packet)| packet.source.0).collect();
    sources.sort_unstable();
    sources.dedup();
    sources.len()
}

/// A flight leaves five times, at intervals that double from 50 to 62.5 ms on.
#[track_caller]
fn assert_repeated_four_times(times: &[Time]) {
    let waits: Vec<u128> = times.windows(2).map(|two| two[1].since(two[0]).as_micros()).collect();
    assert!((50_000..=62_500).contains(&waits[0]), "{waits:?}");
    let doubled = [1, 2, 4, 8].map(|times| times * waits[0]);
    assert_eq!(waits, doubled);
}

// SMT [6.2-6], [6.2-12]
#[test]
fn a_flight_without_an_answer_is_repeated_four_times_before_another_attempt_begins() {
    let mut world = world(SHORT, 0);
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.start_connect(0, 1);
    world.run_for(ms(2_000));
    assert_repeated_four_times(&times(&world, 1));
    assert_eq!(attempts(&world), 2);
}

/// The server has answered flight 1 at its third time, so two intervals have passed by then.
// SMT [6.2-8], [6.5-8]
#[test]
fn the_last_flight_is_repeated_by_a_schedule_of_its_own_and_given_up_like_the_first() {
    let mut world = world(SHORT, 0);
    let mut answers = 0;
    world.rule = Box::new(move |datagram, _| {
        answers += usize::from(datagram.from == 1);
        match datagram.from == 1 && (answers < 3 || datagram.has(PacketType::Confirm)) {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    world.start_connect(0, 1);
    world.run_for(ms(2_200));
    assert_eq!(times(&world, 1).len(), 3);
    assert_repeated_four_times(&times(&world, 3));
    assert_eq!(attempts(&world), 2);
}

// SMT [6.2-9]
#[test]
fn a_server_repeats_its_answer_when_flight_1_comes_again_and_never_by_itself() {
    let mut world = world(SHORT, 0);
    world.rule = Box::new(|datagram, _| match datagram.from {
        1 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    world.start_connect(0, 1);
    world.run_for(ms(1_500));
    assert_eq!(times(&world, 1).len(), 5);
    assert_eq!(flights(&world, 1).count(), 5);
    // Nothing of the client reaches the server any more.
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.sent.clear();
    world.run_for(ms(9_000));
    assert_eq!(flights(&world, 1).count(), 0);
}

/// The first time only the end of flight 1 arrives, the second time only its beginning.
// SMT [6.2-10]
#[test]
fn fragments_of_a_repetition_are_put_together_with_those_before() {
    let mut world = world([2_500, 900, 0], 0);
    let mut rounds = 0;
    world.rule = Box::new(move |datagram, _| {
        let packet = datagram.handshake().filter(|packet| packet.flight == 1);
        let Some(packet) = packet else { return Verdict::Deliver };
        rounds += usize::from(packet.offset == 0);
        match (rounds, packet.offset) {
            (1, 1..) | (2, 0) => Verdict::Deliver,
            _ => Verdict::Drop,
        }
    });
    world.connect(0, 1).unwrap();
    assert_eq!(attempts(&world), 1);
}

/// Somebody else sends the end of a client's flight 1 under its index.
// SMT [6.2-1]
#[test]
fn fragments_from_two_addresses_are_not_put_together() {
    let mut world = world([2_500, 900, 0], 0);
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.start_connect(0, 1);
    let fragments: Vec<Datagram> = std::mem::take(&mut world.sent);
    assert_eq!(fragments.len(), 3);
    let (now, server) = (world.now, &mut world.nodes[1]);
    let mut answers = |from: usize, fragment: &Datagram| {
        let path = Path::between(address_of(from), address_of(1).ip());
        server.endpoint.handle_arrival(now, Arrival::datagram(path, &fragment.bytes));
        server.endpoint.poll_transmit(now, &mut server.buffer).is_some()
    };
    assert!(!answers(0, &fragments[0]));
    assert!(!answers(7, &fragments[1]));
    assert!(!answers(7, &fragments[2]));
    assert!(!answers(0, &fragments[1]));
    assert!(answers(0, &fragments[2]));
}

/// The packets of a flight as small datagrams, without the zeros behind them.
fn in_small_datagrams(packet: &Handshake<'_>) -> Vec<Vec<u8>> {
    let pieces = (packet.offset..).step_by(150).zip(packet.fragment.chunks(150));
    let small = pieces.map(|(offset, fragment)| {
        let piece = Handshake { offset, fragment, ..*packet };
        let mut bytes = vec![0; piece.packet_len()];
        piece.emit(smt_wire::VERSION, 0, &mut bytes);
        bytes
    });
    small.collect()
}

/// The server waits until three times of what has come suffices for its answer, and asks for no
/// cookie meanwhile.
// SMT [6.2-5]
#[test]
fn a_flight_that_comes_in_small_datagrams_is_taken() {
    for of_server in [600, 3_000] {
        let mut world = world([200, of_server, 0], 0);
        world.rule = Box::new(|datagram, _| match datagram.handshake() {
            Some(packet) if packet.flight == 1 => Verdict::Replace(in_small_datagrams(&packet)),
            _ => Verdict::Deliver,
        });
        world.connect(0, 1).unwrap();
        assert_eq!(attempts(&world), 1);
        assert!(!world.sent.iter().any(|sent| sent.has(PacketType::Cookie)));
        let server = world.nodes[1].endpoint.statistics();
        assert_eq!(server.handshakes_failed, 0);
    }
}

// SMT [6.5-1]
#[test]
fn a_client_confirms_right_behind_its_last_flight_in_the_same_datagram() {
    for filler in [0, 1_000, 3_000] {
        let mut world = world([200, 900, filler], 0);
        world.connect(0, 1).unwrap();
        assert_eq!(times(&world, 3).len(), 1, "filler {filler}");
        let of_client = world.sent.iter().filter(|sent| sent.from == 0);
        let last = of_client.filter(|sent| sent.handshake().is_some_and(|it| it.flight == 3));
        let last: Vec<&Datagram> = last.collect();
        let (end, before) = last.split_last().unwrap();
        assert!(before.iter().all(|sent| sent.packets().len() == 1), "filler {filler}");
        let packets = end.packets();
        let [Packet::Handshake(_), Packet::Control(control)] = packets[..] else {
            panic!("{}", end.line());
        };
        assert_eq!((control.body, control.header.number.counter), (Body::Confirm, 0));
    }
}

/// As with TLS's HelloRetryRequest.
// SMT [6.1-1], [6.1-4], [6.1-5]
#[test]
fn a_server_may_have_its_client_begin_anew_and_parameters_stand_in_two_flights_alone() {
    let mut world = world(SHORT, 1);
    let (session, _) = world.connect(0, 1).unwrap();
    let sent = world.sent.iter().filter_map(Datagram::handshake);
    let has_params = |packet: Handshake<'_>| {
        let flight = FlightBody::parse(packet.fragment).unwrap();
        (packet.flight, !flight.params.is_empty())
    };
    let sent: Vec<(u8, bool)> = sent.map(has_params).collect();
    assert_eq!(sent, [(1, true), (2, true), (3, false), (4, false), (5, false)]);
    let rpc = world.call(0, session, body(1, 10));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 10)));
}

/// The client's next flight would be the seventh, which nobody could answer.
// SMT [6.1-10]
#[test]
fn a_handshake_of_more_flights_than_six_fails() {
    let mut world = world(SHORT, 2);
    world.connect(0, 1).unwrap_err();
    let most = [0, 1].map(|node| flights(&world, node).map(|(_, packet)| packet.flight).max());
    assert_eq!(most, [Some(5), Some(6)]);
}

/// The first answer is short, and the second a certificate chain.
// SMT [6.4-5], [6.4-9]
#[test]
fn a_long_answer_that_comes_later_than_flight_2_costs_a_cookie_too() {
    let mut world = world([200, 12_000, 0], 1);
    world.connect(0, 1).unwrap();
    let of_client = flights(&world, 0).map(|(_, packet)| (packet.flight, packet.cookie.len()));
    let of_client: Vec<(u8, usize)> = of_client.collect();
    assert_eq!(of_client, [(1, 0), (3, 0), (3, 24), (5, 24)]);
    let cookies = world.sent.iter().filter(|sent| sent.has(PacketType::Cookie));
    assert_eq!(cookies.count(), 1);
    assert!(world.sent.iter().all(|sent| sent.handshake().is_none_or(is_of_one_client)));
}

fn is_of_one_client(packet: Handshake<'_>) -> bool {
    [packet.source, packet.destination].contains(&SessionIndex::new(1, 1))
}
