// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UNAVAILABLE (SPEC §12.4): a client learns at once why it has no session, and a forged answer
//! costs nothing.

use smt_proto::{Config, ConnectError, Event, Unavailability};
use smt_wire::{FlightBody, Handshake, Packet, PacketType, SessionIndex, Unavailable};

use super::support::{Datagram, Node, Verdict, World, body, exchanges, ms};

fn full_with_one() -> Config {
    let mut config = Config::default();
    config.sessions_max = 1;
    config
}

/// Connects in vain: why, and in how many milliseconds.
fn refused(world: &mut World) -> (ConnectError, u128) {
    let began = world.now;
    let error = world.connect(0, 1).unwrap_err();
    (error, world.now.since(began).as_millis())
}

fn until_connected(world: &mut World) {
    world.wait(0, |event| match event {
        Event::Connected { .. } => Some(()),
        _ => None,
    });
}

/// The packets of flight 1 that have been sent.
fn first_flights(world: &World) -> Vec<(&Datagram, Handshake<'_>)> {
    let of = |sent| match Datagram::packets(sent).first() {
        Some(Packet::Handshake(handshake)) if handshake.flight == 1 => Some((sent, *handshake)),
        _ => None,
    };
    world.sent.iter().filter_map(of).collect()
}

fn answers(world: &World) -> Vec<&Datagram> {
    let is_answer = |sent: &&Datagram| sent.has(PacketType::Unavailable);
    world.sent.iter().filter(is_answer).collect()
}

/// An answer that the server has not sent, to the client's attempt of this index.
fn hand_in_forged(world: &mut World, destination: SessionIndex) {
    hand_in_forged_of(world, 1, destination);
}

fn hand_in_forged_of(world: &mut World, from: usize, destination: SessionIndex) {
    let mut bytes = vec![0; Unavailable::LEN];
    let out = (&mut bytes[..]).try_into().unwrap();
    Unavailable { destination, code: 1 }.emit(1, out);
    world.hand_in(&Datagram { is_trimmed: false, at: world.now, from, to: 0, bytes });
}

#[test]
fn a_server_that_shuts_down_says_so() {
    let mut world = World::pair(Config::default(), Config::default());
    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    let (error, taken) = refused(&mut world);
    let expected = ConnectError::Unavailable(Unavailability::ShuttingDown);
    assert_eq!(error, expected);
    assert!(taken < 20, "{taken} ms");
    let text = "peer: the server is shutting down; connect to another, or again later";
    assert_eq!(error.to_string(), text);
}

/// It has taken that client: flight 1 comes again since its answer was lost, and so does a part of
/// it that was.
// SMT [12.4-4]
#[test]
fn a_server_that_shuts_down_finishes_handshakes_that_have_begun() {
    for lost in [0, 1] {
        let mut world = World::pair(Config::default(), Config::default());
        let mut exchanges = exchanges(0);
        exchanges.settings.filler[0] = 2_000;
        world.nodes[0] = Node::with_exchanges(0, Config::default(), exchanges);
        let mut count = 0;
        world.rule = Box::new(move |datagram, _| {
            let is_lost = match lost {
                0 => datagram.from == 0 && count == 1,
                _ => datagram.from == 1,
            };
            count += usize::from(datagram.from == 0);
            match is_lost {
                true => Verdict::Drop,
                false => Verdict::Deliver,
            }
        });
        world.start_connect(0, 1);
        world.run_for(ms(10));
        let now = world.now;
        world.nodes[1].endpoint.drain(now);
        world.rule = Box::new(|_, _| Verdict::Deliver);
        until_connected(&mut world);
        assert_eq!(world.nodes[1].endpoint.statistics().unavailable_sent, 0);
    }
}

#[test]
fn a_full_server_says_so() {
    let (mut world, _, _) = World::connected_with(Config::default(), full_with_one());
    let (error, taken) = refused(&mut world);
    assert_eq!(error, ConnectError::Unavailable(Unavailability::Full));
    assert!(taken < 20, "{taken} ms");
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 1);
}

#[test]
fn a_server_takes_clients_again_when_there_is_room() {
    let (mut world, client, _) = World::connected_with(Config::default(), full_with_one());
    refused(&mut world);
    let done = smt_proto::CloseCode::Done;
    world.nodes[0].endpoint.close(client, done);
    world.run_for(ms(10));
    let (client, _) = world.connect(0, 1).unwrap();
    let rpc = world.call(0, client, body(1, 64));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 64)));
}

/// It speaks another version under the same version byte, as far as its parameters say.
// SMT [12.4-2], [6.3-9]
#[test]
fn a_server_with_nothing_in_common_says_so() {
    let mut world = World::pair(Config::default(), Config::default());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.kind = smt_wire::KeyExchange::Registered;
    let mut config = Config::default();
    config.accept = true;
    world.nodes[1] = Node::with_exchanges(1, config, exchanges);
    let (error, taken) = refused(&mut world);
    let expected = ConnectError::Unavailable(Unavailability::NothingInCommon);
    assert_eq!(error, expected);
    assert!(taken < 20, "{taken} ms");
    for words in ["configure both alike", "have another one handed over"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    let told = world.nodes[1].endpoint.statistics().unavailable_sent;
    assert_eq!(told, 3, "once an attempt");
}

/// An answer would tell a forger, and a client that is wrong sees its deadline.
// SMT [6.3-5], [12.4-5]
#[test]
fn parameters_that_are_not_well_formed_are_not_answered() {
    type Change = fn(&mut Vec<u8>);
    // Cut; a kind of key exchange that does not exist; the length of that; the first tag twice.
    let changes: [Change; 4] = [
        |params| params.truncate(params.len() - 1),
        |params| params[5] = 3,
        |params| params[4] = 2,
        |params| params[3] = 1,
    ];
    for change in changes {
        let mut world = World::pair(Config::default(), Config::default());
        world.is_recording = true;
        world.rule = Box::new(|_, _| Verdict::Drop);
        world.start_connect(0, 1);
        let sent = world.sent[0].clone();
        let packet = sent.handshake().unwrap();
        let genuine = FlightBody::parse(packet.fragment).unwrap();
        let mut params = genuine.params.to_vec();
        change(&mut params);
        let changed = FlightBody { params: &params, ..genuine };
        let mut fragment = vec![0; changed.flight_len()];
        changed.emit(&mut fragment);
        let flight_length = fragment.len() as u32;
        let changed = Handshake { fragment: &fragment, flight_length, ..packet };
        let mut bytes = vec![0; 1_200];
        changed.emit(1, 1_200, &mut bytes);
        world.hand_in(&Datagram { bytes, ..sent.clone() });
        world.run_for(ms(10));
        assert_eq!(world.nodes[1].endpoint.statistics().handshakes_failed, 1);
        assert!(world.sent.iter().all(|sent| sent.from == 0), "{}", world.trace());
    }
}

#[test]
fn the_answer_is_smaller_than_the_packet_it_answers() {
    let mut world = World::pair(Config::default(), Config::default());
    world.is_recording = true;
    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    refused(&mut world);
    let flights = first_flights(&world);
    assert_eq!(answers(&world).len(), flights.len());
    assert!(flights.iter().all(|(sent, _)| sent.bytes.len() >= 1_200));
    assert!(answers(&world).iter().all(|sent| sent.bytes.len() == 22));
}

/// A flight of several fragments is answered once.
// SMT [12.4-3]
#[test]
fn only_the_first_fragment_is_answered() {
    let mut world = World::pair(Config::default(), Config::default());
    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    for fragment in 0..4 {
        let mut bytes = vec![0; 1_200];
        Handshake {
            destination: SessionIndex(0),
            source: SessionIndex::new(1, 1),
            flight: 1,
            cookie: &[],
            flight_length: 4_000,
            offset: 1_000 * fragment,
            fragment: &[7; 1_000],
        }
        .emit(1, 1_200, &mut bytes);
        world.hand_in(&Datagram { is_trimmed: false, at: world.now, from: 0, to: 1, bytes });
    }
    assert_eq!(world.nodes[1].endpoint.statistics().unavailable_sent, 1);
}

#[test]
fn an_endpoint_that_takes_no_clients_at_all_says_nothing() {
    let mut world = World::new(vec![Config::default(), Config::default()]);
    world.is_recording = true;
    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    let (error, _) = refused(&mut world);
    assert!(matches!(error, ConnectError::NoAnswer(_)), "{error}");
    assert!(answers(&world).is_empty());
}

/// Answers cost attempts; two may come from other shards, or from before the server began anew.
// SMT [12.4-8], [12.4-7]
#[test]
fn two_answers_are_not_believed() {
    let mut world = World::pair(Config::default(), Config::default());
    let mut config = Config::default();
    config.accept = true;
    let mut shutting_down = Node::new(1, config);
    let now = world.now;
    shutting_down.endpoint.drain(now);
    let running = std::mem::replace(&mut world.nodes[1], shutting_down);
    world.start_connect(0, 1);
    world.run_for(ms(7));
    assert_eq!(world.nodes[1].endpoint.statistics().unavailable_sent, 2);
    world.nodes[1] = running;
    until_connected(&mut world);
}

/// An answer from before the server took the client does not explain a later failure.
#[test]
fn an_answer_does_not_explain_a_later_failure() {
    let mut world = World::pair(Config::default(), Config::default());
    world.is_recording = true;
    let source = std::rc::Rc::new(std::cell::Cell::new(None));
    let seen = std::rc::Rc::clone(&source);
    world.rule = Box::new(move |datagram, _| {
        let flight = match datagram.packets().first() {
            Some(Packet::Handshake(handshake)) => (handshake.flight, handshake.source),
            _ => return Verdict::Drop,
        };
        // The first attempt gets no answer, and no attempt gets further than flight 2.
        match flight {
            (1, index) if seen.get().is_none_or(|first| first == index) => {
                seen.set(Some(index));
                Verdict::Drop
            }
            (1 | 2, _) => Verdict::Deliver,
            _ => Verdict::Drop,
        }
    });
    world.start_connect(0, 1);
    world.run_for(ms(1));
    hand_in_forged(&mut world, source.get().unwrap());
    let error = world.wait(0, |event| match event {
        Event::ConnectFailed { error, .. } => Some(error.clone()),
        _ => None,
    });
    assert!(matches!(error, ConnectError::Unfinished { .. }), "{error}");
}

// SMT [12.4-6]
#[test]
fn an_answer_for_another_attempt_is_not_believed() {
    let mut world = World::pair(Config::default(), Config::default());
    world.is_recording = true;
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.start_connect(0, 1);
    world.run_for(ms(1));
    let (_, flight) = first_flights(&world)[0];
    let other = SessionIndex(flight.source.0 + 1);
    for _ in 0..5 {
        hand_in_forged(&mut world, other);
        world.run_for(ms(60));
    }
    assert_eq!(world.nodes[0].endpoint.statistics().packets_unknown_session, 5);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    until_connected(&mut world);
}

// SMT [12.4-6]
#[test]
fn an_answer_of_another_address_than_the_servers_is_not_believed() {
    let mut world = World::pair(Config::default(), Config::default());
    world.is_recording = true;
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.start_connect(0, 1);
    world.run_for(ms(1));
    let present = first_flights(&world)[0].1.source;
    for _ in 0..5 {
        hand_in_forged_of(&mut world, 7, present);
        world.run_for(ms(60));
    }
    assert!(first_flights(&world).iter().all(|(_, flight)| flight.source == present));
    assert_eq!(world.nodes[0].endpoint.statistics().packets_unknown_session, 5);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    until_connected(&mut world);
}

/// A server that has answered flight 1 has taken the client, although only a part of its answer has
/// come.
// SMT [12.4-6]
#[test]
fn an_answer_after_flight_2_is_not_believed() {
    let kinds: [fn(&Handshake<'_>) -> bool; 2] =
        [|packet| packet.flight == 3, |packet| packet.flight == 2 && packet.offset > 0];
    for is_lost in kinds {
        let mut world = World::pair(Config::default(), Config::default());
        world.is_recording = true;
        let mut config = Config::default();
        config.accept = true;
        let mut exchanges = exchanges(1 << 32);
        exchanges.settings.filler[1] = 2_000;
        world.nodes[1] = Node::with_exchanges(1, config, exchanges);
        let end = world.now + ms(500);
        world.rule = Box::new(move |datagram, _| match datagram.packets().first() {
            Some(Packet::Handshake(packet)) if is_lost(packet) && datagram.at < end => {
                Verdict::Drop
            }
            _ => Verdict::Deliver,
        });
        world.start_connect(0, 1);
        world.run_for(ms(1));
        for _ in 0..5 {
            let flights = first_flights(&world);
            let present = flights.last().unwrap().1.source;
            hand_in_forged(&mut world, present);
            world.run_for(ms(60));
        }
        until_connected(&mut world);
        assert_eq!(world.nodes[0].endpoint.statistics().handshakes_failed, 0);
    }
}

// SMT [12.4-1]
#[test]
fn a_code_of_a_later_version_is_reported_as_it_is() {
    let why = Unavailability::from_code(77);
    assert_eq!(why.code(), 77);
    let text = ConnectError::Unavailable(why).to_string();
    assert!(text.contains("takes no client now (code 77)"), "{text}");
    for code in [1, 2, 3] {
        assert_eq!(Unavailability::from_code(code).code(), code);
    }
}
