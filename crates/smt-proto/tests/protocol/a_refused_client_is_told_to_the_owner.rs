// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server's owner learns which clients are refused, and why: the log of an operator.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use smt_proto::{Config, Event};
use smt_wire::{FlightBody, Handshake, Packet};

use super::support::{Datagram, Node, Verdict, World, exchanges, ms};

/// The reasons of the server's events about refused clients, which all name the only client.
fn reasons(world: &World) -> Vec<String> {
    let client = world.nodes[0].address;
    let events = world.nodes[1].events.iter();
    let refused = events.filter_map(|event| match event {
        Event::ClientRefused { path, reason } => Some((path.remote, reason.to_string())),
        _ => None,
    });
    let refused = refused.inspect(|(remote, _)| assert_eq!(*remote, client));
    refused.map(|(_, reason)| reason).collect()
}

#[test]
fn each_attempt_that_fails_is_an_event_with_the_reason() {
    let mut config = Config::default();
    config.accept = true;
    let mut world = World::pair(Config::default(), config.clone());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.refuses = true;
    world.nodes[1] = Node::with_exchanges(1, config, exchanges);
    world.connect(0, 1).unwrap_err();
    let reasons = reasons(&world);
    assert_eq!(reasons.len() as u64, world.nodes[1].endpoint.statistics().handshakes_failed);
    assert!(!reasons.is_empty());
    for reason in reasons {
        assert!(reason.contains("told to refuse"), "{reason}");
    }
}

#[test]
fn a_client_that_finds_no_room_is_told_as_well() {
    let mut world = World::pair(Config::default(), Config::default());
    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    world.connect(0, 1).unwrap_err();
    let reasons = reasons(&world);
    assert!(!reasons.is_empty());
    for reason in reasons {
        assert!(reason.contains("the server is shutting down"), "{reason}");
    }
}

// SMT [7.5-6]
/// The key exchange refuses when the peer's CONFIRM has opened, at either side: nothing begins, the
/// connect ends with an error, and a server's owner is told why.
#[test]
fn a_session_that_the_key_exchange_refuses_behind_confirm_does_not_begin() {
    for refusing in 0..2 {
        let mut config = Config::default();
        config.accept = true;
        let mut world = World::pair(Config::default(), config.clone());
        let mut exchanges = exchanges((refusing as u64 + 1) << 32);
        let left = Arc::new(AtomicU64::new(1));
        exchanges.settings.sessions_left = Some(Arc::clone(&left));
        let config = if refusing == 0 { Config::default() } else { config };
        world.nodes[refusing] = Node::with_exchanges(refusing, config, exchanges);
        world.connect(0, 1).unwrap();
        assert_eq!(left.load(Ordering::Relaxed), 0);
        let error = world.connect(0, 1).unwrap_err();
        let begun = |node: usize| world.nodes[node].endpoint.statistics().sessions_begun;
        assert_eq!(begun(refusing), 1);
        if refusing == 0 {
            assert!(error.to_string().contains("no session is left"), "{error}");
        } else {
            assert_eq!(begun(0), 1);
            let reasons = reasons(&world);
            assert!(reasons.iter().any(|reason| reason == "no session is left"));
        }
    }
}

/// A forger makes flights 5 of a client's flight 3: one that is a flight by its form, one that is
/// none.
fn forged_flights(genuine: &Datagram) -> Vec<Datagram> {
    let packets = genuine.packets();
    let Some(Packet::Handshake(third)) = packets.first().filter(|_| genuine.from == 0) else {
        return Vec::new();
    };
    let alert = FlightBody { params: &[], key_exchange: b"forged" };
    let mut body = vec![0; alert.flight_len()];
    alert.emit(&mut body);
    let flights = [&body[..], b"no flight"].into_iter();
    let forged = flights.filter(|_| third.flight == 3).map(|fragment| {
        let mut bytes = vec![0; 1_200];
        let flight = Handshake {
            flight: 5,
            fragment,
            flight_length: fragment.len() as u32,
            offset: 0,
            ..*third
        };
        flight.emit(1, 1_200, &mut bytes);
        Datagram { bytes, ..genuine.clone() }
    });
    forged.collect()
}

/// A key exchange is called no more after it has failed, and the owner is told once.
#[test]
fn a_flight_behind_the_refusal_of_a_confirm_is_dropped() {
    let mut config = Config::default();
    config.accept = true;
    let mut world = World::pair(Config::default(), config.clone());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.sessions_left = Some(Arc::default());
    world.nodes[1] = Node::with_exchanges(1, config, exchanges);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    world.rule = Box::new(move |datagram, _| {
        kept.lock().unwrap().extend(forged_flights(datagram));
        Verdict::Deliver
    });
    world.start_connect(0, 1);
    let end = world.now + ms(1_000);
    while reasons(&world).is_empty() {
        assert!(world.step(end), "the client was not refused");
    }
    let forged: Vec<_> = seen.lock().unwrap().drain(..).collect();
    assert!(forged.len() >= 2);
    for datagram in &forged {
        world.hand_in(datagram);
        assert_eq!(reasons(&world), ["no session is left"]);
    }
}

#[test]
fn a_client_that_is_taken_is_not_told_as_refused() {
    let (world, _, _) = World::connected();
    assert_eq!(reasons(&world), [""; 0]);
}
