// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls that begin with their session: as early data, or as any call (SPEC §6.8).

use std::time::Duration;

use bytes::Bytes;
use smt_carrier::Path;
use smt_proto::{Config, ConnectRequest, EarlyCall, Event, OutgoingMessage, RpcId};
use smt_testkit::{Early, FakeKeyExchange};
use smt_wire::{Handshake, Packet, PacketType, VERSION};

use super::support::{Answer, Datagram, Node, Verdict, World, body, ms};

/// A client and a server whose key exchange has early data.
fn world(client: Early, server: Early) -> World {
    let nodes = [(0, client), (1, server)].map(|(number, early)| {
        let mut config = Config::default();
        config.accept = number == 1;
        let exchanges = FakeKeyExchange::with_early(1_000 * number as u64, early);
        Node::with_exchanges(number, config, exchanges)
    });
    World::of(nodes.into())
}

/// Connects with calls of these bodies.
fn connect(world: &mut World, bodies: &[Bytes]) {
    let call =
        |body: &Bytes| EarlyCall { message: OutgoingMessage::new(body.clone()), deadline: None };
    let wanted = ConnectRequest {
        path: Path::to(world.nodes[1].address),
        server_name: "server",
        deadline: Duration::from_secs(5),
        calls: bodies.iter().map(call).collect(),
    };
    let (now, endpoint) = (world.now, &mut world.nodes[0].endpoint);
    endpoint.connect_with_calls(now, wanted).unwrap();
    world.flush();
}

/// The names of the calls, and how many were early.
fn calls(world: &mut World) -> (Vec<RpcId>, usize) {
    world.wait(0, |event| match event {
        Event::EarlyCalls { calls, taken, .. } => {
            let calls = calls.iter().map(|call| call.clone().unwrap());
            Some((calls.collect(), *taken))
        }
        _ => None,
    })
}

fn bodies(count: u64) -> Vec<Bytes> {
    (0..count).map(|number| body(number, 20)).collect()
}

/// Each body was delivered, and none twice.
fn assert_delivered(world: &World, bodies: &[Bytes]) {
    let mut delivered: Vec<&Bytes> =
        world.nodes[1].delivered.iter().map(|(_, body)| body).collect();
    let mut wanted: Vec<&Bytes> = bodies.iter().collect();
    delivered.sort();
    wanted.sort();
    assert_eq!(delivered, wanted);
}

fn assert_all_answered(world: &mut World, bodies: &[Bytes]) -> usize {
    let (rpcs, taken) = calls(world);
    assert_eq!(rpcs.len(), bodies.len());
    assert_eq!(world.nodes[1].early, taken);
    for (rpc, body) in rpcs.into_iter().zip(bodies) {
        assert_eq!(world.outcome(0, rpc).as_ref(), Ok(body));
    }
    world.run_for(ms(3_000));
    assert_delivered(world, bodies);
    taken
}

// SMT [6.8-5]
#[test]
fn a_reply_to_an_early_call_takes_one_round_trip() {
    let mut world = world(Early::Taken, Early::Taken);
    world.is_recording = true;
    let bodies = bodies(3);
    let begun = world.now;
    connect(&mut world, &bodies);
    let (rpcs, taken) = calls(&mut world);
    assert_eq!(taken, 3);
    world.outcome(0, rpcs[0]).unwrap();
    let first = world.sent.iter().find(|sent| sent.from == 1).unwrap();
    let one_way = first.at.since(begun);
    assert!(world.now.since(begun) <= one_way * 3, "{:?}", world.trace());
    assert_delivered(&world, &bodies);
    world.run_for(ms(3_000));
    assert_delivered(&world, &bodies);
}

// SMT [6.8-6]
#[test]
fn calls_that_a_server_does_not_take_early_leave_as_others_do() {
    let bodies = bodies(3);
    for (client, server) in [(Early::Taken, Early::NotTaken), (Early::NotTaken, Early::NotTaken)] {
        let mut world = world(client, server);
        connect(&mut world, &bodies);
        assert_eq!(assert_all_answered(&mut world, &bodies), 0);
    }
}

/// Flight 1 may be a repetition: CONFIRM shows that it is none.
// SMT [6.7-13]
#[test]
fn a_server_that_takes_no_early_data_begins_no_session_before_the_client_has_confirmed() {
    let mut world = world(Early::Taken, Early::NotTaken);
    world.is_recording = true;
    let mut is_first = true;
    world.rule = Box::new(move |datagram, _| match datagram.from {
        0 if !std::mem::take(&mut is_first) => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    connect(&mut world, &bodies(1));
    world.run_for(ms(100));
    assert_eq!(world.nodes[1].endpoint.statistics().sessions_begun, 0);
    assert!(world.nodes[1].delivered.is_empty());
    let mut of_server = world.sent.iter().filter(|sent| sent.from == 1);
    assert!(of_server.all(|sent| matches!(sent.packets()[..], [Packet::Handshake(_)])));
}

#[test]
fn an_exchange_without_early_data_has_the_calls_begin_with_the_session() {
    let mut world = World::pair(Config::default(), Config::default());
    let bodies = bodies(3);
    connect(&mut world, &bodies);
    assert_eq!(assert_all_answered(&mut world, &bodies), 0);
}

#[test]
fn calls_that_do_not_fit_into_the_flight_follow() {
    let mut world = world(Early::Taken, Early::Taken);
    let mut bodies = bodies(2);
    bodies.push(body(9, 100_000));
    bodies.push(body(10, 10));
    connect(&mut world, &bodies);
    assert_eq!(assert_all_answered(&mut world, &bodies), 2);
}

/// A datagram of either side that is lost costs time, and nothing else.
// SMT [6.8-2], [6.8-7]
#[test]
fn any_datagram_may_be_lost() {
    let bodies = bodies(3);
    for lost in 0..8 {
        let mut world = world(Early::Taken, Early::Taken);
        let mut number = 0;
        world.rule = Box::new(move |_, _| {
            number += 1;
            match number == lost + 1 {
                true => Verdict::Drop,
                false => Verdict::Deliver,
            }
        });
        connect(&mut world, &bodies);
        assert_eq!(assert_all_answered(&mut world, &bodies), 3, "{lost}");
    }
}

/// Datagrams that come twice and late deliver nothing twice.
// SMT [6.8-4]
#[test]
fn flight_1_may_come_again() {
    let mut world = world(Early::Taken, Early::Taken);
    world.rule = Box::new(|_, _| Verdict::Duplicate);
    let bodies = bodies(3);
    connect(&mut world, &bodies);
    assert_eq!(assert_all_answered(&mut world, &bodies), 3);
}

#[test]
fn an_early_call_may_take_its_time() {
    let mut world = world(Early::Taken, Early::Taken);
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let bodies = bodies(1);
    connect(&mut world, &bodies);
    let (rpcs, _) = calls(&mut world);
    world.run_for(ms(20_000));
    let (now, (held, _)) = (world.now, world.nodes[1].delivered[0].clone());
    let endpoint = &mut world.nodes[1].endpoint;
    endpoint.reply(now, held, body(5, 5)).unwrap();
    world.flush();
    assert_eq!(world.outcome(0, rpcs[0]), Ok(body(5, 5)));
}

/// Anybody can send a flight in another's name: until the client is heard, its address gets at most
/// three times the bytes that came from it.
// SMT [6.2-17], [6.8-5]
// SMT [6.8-5]
#[test]
fn a_server_probes_no_sizes_before_its_client_was_heard() {
    let mut world = world(Early::Taken, Early::Taken);
    world.is_recording = true;
    let begun = world.now;
    world.rule = Box::new(move |datagram, _| {
        let is_first = datagram.at == begun;
        let is_late = datagram.at > begun + ms(100);
        match datagram.from == 0 && !is_first && !is_late {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    connect(&mut world, &bodies(1));
    world.run_for(ms(90));
    let probes = |world: &World| {
        let of_server = world.sent.iter().filter(|sent| sent.from == 1);
        of_server.filter(|sent| sent.has(PacketType::Probe)).count()
    };
    assert_eq!(probes(&world), 0, "{}", world.trace());
    world.run_for(ms(500));
    assert!(probes(&world) > 0, "{}", world.trace());
}

#[test]
fn a_long_reply_waits_until_the_client_was_heard() {
    let mut world = world(Early::Taken, Early::Taken);
    world.is_recording = true;
    world.nodes[1].application = Box::new(|_| Answer::Reply(vec![7; 200_000].into()));
    // All that the client says after its first flight is lost for a while.
    let begun = world.now;
    world.rule = Box::new(move |datagram, _| {
        let is_first = datagram.at == begun;
        let is_late = datagram.at > begun + ms(100);
        match datagram.from == 0 && !is_first && !is_late {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    connect(&mut world, &bodies(1));
    let (rpcs, _) = calls(&mut world);
    world.run_for(ms(90));
    let bytes = |from: usize| -> usize {
        let sent = world.sent.iter().filter(|sent| sent.from == from);
        let sent = sent.filter(|sent| from == 1 || sent.at == begun);
        sent.map(|sent| sent.bytes.len()).sum()
    };
    assert!(bytes(1) <= 3 * bytes(0), "{}", world.trace());
    assert_eq!(world.outcome(0, rpcs[0]).unwrap().len(), 200_000);
}

/// A client that was never there costs a session for as long as a handshake.
// SMT [6.8-5]
#[test]
fn an_early_session_without_a_client_is_forgotten() {
    let mut world = world(Early::Taken, Early::Taken);
    world.rule = Box::new(|datagram, _| match datagram.from {
        1 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    connect(&mut world, &bodies(1));
    world.run_for(Duration::from_secs(30));
    assert!(world.nodes[1].endpoint.statistics().sessions_begun >= 1);
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 0);
}

/// The session has a part of what may be sent to the client's address, and the handshake the rest:
/// small packets that make the server repeat flight 2 gain nothing beside the session's bytes.
// SMT [6.2-17], [6.8-5], [6.2-18]
#[test]
fn an_address_that_was_not_validated_gets_three_times_its_bytes_by_session_and_handshake() {
    for filler_of_server in [0, 300, 1_100] {
        let nodes = [(0, Early::Taken), (1, Early::Taken)].map(|(number, early)| {
            let mut config = Config::default();
            config.accept = number == 1;
            let mut exchanges = FakeKeyExchange::with_early(1_000 * number as u64, early);
            exchanges.settings.filler = [1_200, filler_of_server, 0];
            Node::with_exchanges(number, config, exchanges)
        });
        let mut world = World::of(nodes.into());
        world.is_recording = true;
        world.nodes[1].application = Box::new(|_| Answer::Reply(vec![7; 200_000].into()));
        let begun = world.now;
        // The address is somebody else's, who never answers.
        world.rule =
            Box::new(move |datagram, _| match datagram.from == 0 && datagram.at != begun {
                true => Verdict::Drop,
                false => Verdict::Deliver,
            });
        connect(&mut world, &bodies(1));
        world.run_for(ms(20));
        let flight = world.sent.iter().filter(|sent| sent.from == 0 && sent.at == begun);
        let flight: Vec<_> = flight.cloned().collect();
        let mut received: usize = flight.iter().map(|sent| sent.bytes.len()).sum();
        let small = beginning_of(&flight[0]);
        for _ in 0..60 {
            world.hand_in(&small);
            received += small.bytes.len();
            world.flush();
            world.run_for(ms(5));
        }
        let from_server = world.sent.iter().filter(|sent| sent.from == 1);
        let sent: usize = from_server.map(|sent| sent.bytes.len()).sum();
        assert!(sent <= 3 * received, "{sent} bytes for {received}, filler {filler_of_server}");
    }
}

/// The first byte of the flight in a datagram, in a packet of its own.
fn beginning_of(flight: &Datagram) -> Datagram {
    let packets = flight.packets();
    let Some(Packet::Handshake(handshake)) = packets.first() else { panic!("no flight") };
    let tiny = Handshake { fragment: &handshake.fragment[..1], ..*handshake };
    let mut bytes = vec![0; tiny.packet_len()];
    tiny.emit(VERSION, 0, &mut bytes);
    Datagram { bytes, ..flight.clone() }
}
