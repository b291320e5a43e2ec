// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Carriers seal whole packets (SPEC §15.4): messages and rules are the same, and a record without
//! a seal of its own counts only in a packet that came under an association of this session.

use std::sync::Arc;

use smt_carrier::{Arrival, Associations, Path};
use smt_proto::{CloseCode, Config, Statistics};
use smt_record::KeyLimits;
use smt_testkit::PacketSealer;
use smt_wire::{AssociationFields, Body, Packet, PacketType, SessionIndex, VERSION, parse};

use super::support::configs::ethernet;
use super::support::load::assert_nothing_is_left;
use super::support::rogue::Rogue;
use super::support::rule::trouble;
use super::support::{Datagram, Load, Node, Random, Verdict, World, body, ms};

/// A client and a server, whose carriers seal packets if `seals` says so.
fn pair(config: &Config, seals: [bool; 2]) -> (World, [Arc<PacketSealer>; 2]) {
    let sealers = [1, 2].map(|number| Arc::new(PacketSealer::new(number)));
    let nodes = [0, 1].map(|number| {
        let mut config = config.clone();
        config.accept = number == 1;
        let mut node = Node::new(number, config);
        if seals[number] {
            node.seal_packets(Arc::clone(&sealers[number]));
        }
        node
    });
    (World::of(nodes.into()), sealers)
}

/// A live session between carriers that seal packets.
fn connected(config: &Config) -> (World, [SessionIndex; 2], [Arc<PacketSealer>; 2]) {
    let (mut world, sealers) = pair(config, [true; 2]);
    let (client, server) = world.connect(0, 1).unwrap();
    (world, [client, server], sealers)
}

fn statistics(world: &World) -> [Statistics; 2] {
    [0, 1].map(|node| world.nodes[node].endpoint.statistics())
}

/// The types of the packets in a datagram as it left; none in one that is sealed.
fn types(datagram: &Datagram) -> Vec<PacketType> {
    let (mut types, mut rest) = (Vec::new(), &datagram.bytes[..]);
    while let Ok((packet, further)) = parse(VERSION, rest) {
        rest = further;
        types.push(match packet {
            Packet::Data(_) => PacketType::Data,
            Packet::Control(control) => control.body.packet_type(),
            _ => PacketType::Handshake,
        });
    }
    types
}

/// Sealed packets of a client's call, and its session at both ends.
fn recorded_call() -> (World, [SessionIndex; 2], [Arc<PacketSealer>; 2], Vec<Datagram>) {
    let (mut world, ends, sealers) = connected(&ethernet());
    world.is_recording = true;
    let rpc = world.call(0, ends[0], body(1, 100));
    world.outcome(0, rpc).unwrap();
    let sent = std::mem::take(&mut world.sent);
    (world, ends, sealers, sent)
}

fn psp_version(world: &World, node: usize, session: SessionIndex) -> Option<u8> {
    let facts = world.nodes[node].endpoint.session(session);
    facts.unwrap().psp_version
}

/// Gives a datagram to the server, as its carrier would hand it over with this SPI.
fn arrive(world: &mut World, bytes: &[u8], spi: Option<u32>) {
    let path = Path::between(world.nodes[0].address, world.nodes[1].address.ip());
    let arrival = Arrival::datagram(path, bytes).with_spi(spi);
    world.nodes[1].endpoint.handle_arrival(world.now, arrival);
    world.flush();
}

// SMT [15.4-1], [15.4-2], [15.4-6], [15.4-4]
#[test]
fn every_message_leaves_in_sealed_packets_and_no_record_outside() {
    let (mut world, _) = pair(&ethernet(), [true; 2]);
    world.is_recording = true;
    let (client, server) = world.connect(0, 1).unwrap();
    let ends = [client, server];
    for (node, end) in ends.into_iter().enumerate() {
        assert_eq!(psp_version(&world, node, end), Some(1));
    }
    for length in [0, 100, 1_500, 20_000, 300_000] {
        let request = body(length as u64, length);
        let rpc = world.call(0, ends[0], request.clone());
        assert!(world.outcome(0, rpc) == Ok(request), "{length} bytes");
    }
    let sealed = world.sent.iter().filter(|of| types(of).is_empty()).count();
    assert!(sealed > 400, "{sealed} sealed packets");
    let bare = world.sent.iter().flat_map(types);
    let sealed_only = [PacketType::Data, PacketType::Probe];
    assert!(!bare.into_iter().any(|ty| sealed_only.contains(&ty)));
    for statistics in statistics(&world) {
        assert_eq!(statistics.data_unsealed + statistics.records_failed, 0);
    }
}

// SMT [15.4-2]
#[test]
fn records_are_sealed_if_one_carrier_does_not_seal_packets() {
    for seals in [[true, false], [false, true]] {
        let (mut world, _) = pair(&ethernet(), seals);
        let (client, server) = world.connect(0, 1).unwrap();
        world.is_recording = true;
        for (node, end) in [client, server].into_iter().enumerate() {
            assert_eq!(psp_version(&world, node, end), None);
        }
        let rpc = world.call(0, client, body(1, 5_000));
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 5_000)));
        let mut types = world.sent.iter().flat_map(types);
        assert!(types.any(|ty| ty == PacketType::Data));
        let plain = &body(1, 5_000)[100..120];
        let shows = |of: &Datagram| of.bytes.windows(plain.len()).any(|part| part == plain);
        assert!(!world.sent.iter().any(shows), "the record's seal hides it");
    }
}

// SMT [15.4-7]
#[test]
fn a_record_outside_its_sessions_packets_counts_for_nothing() {
    let (mut world, _, sealers, sent) = recorded_call();
    let sealed = sent.iter().find(|of| of.to == 1 && types(of).is_empty());
    let (spi, datagram) = sealers[1].open(&sealed.unwrap().bytes).unwrap();
    // The same request under the next id: nothing of it was seen.
    let mut forged = datagram.clone();
    forged[27] = forged[27].wrapping_add(4);
    let before = world.nodes[1].delivered.len();
    for wrong in [None, Some(spi ^ 1), Some(spi ^ (1 << 31)), Some(0)] {
        arrive(&mut world, &forged, wrong);
        world.run_for(ms(100));
    }
    assert_eq!(world.nodes[1].delivered.len(), before);
    assert_eq!(statistics(&world)[1].data_unsealed, 4);
    // The right packet brings what was refused.
    arrive(&mut world, &forged, Some(spi));
    world.run_for(ms(100));
    assert_eq!(world.nodes[1].delivered.len(), before + 1);
}

// SMT [4.2-1], [15.3-10]
#[test]
fn a_sealed_packet_that_comes_again_delivers_nothing_again() {
    let (mut world, _, _, sent) = recorded_call();
    let delivered = world.nodes[1].delivered.len();
    for datagram in &sent {
        world.hand_in(datagram);
    }
    world.run_for(ms(1_000));
    assert_eq!(world.nodes[1].delivered.len(), delivered);
}

// SMT [15.3-8], [15.4-8], [15.4-11]
#[test]
fn losses_are_repaired_while_associations_are_used_up_and_device_keys_replaced() {
    for seed in 0..3 {
        let mut random = Random::from_env();
        let mut config = ethernet();
        config.key_limits = KeyLimits::new(4_096, 400, 1 << 20).unwrap();
        let (mut world, ends, sealers) = connected(&config);
        world.rule = Box::new(trouble(Random::new(random.any() ^ seed), 5));
        for turn in 0..4 {
            let load = Load {
                messages: 300,
                at_once: 20,
                size_max: 30_000,
                random: Random::new(random.any()),
            };
            load.run(&mut world, ends);
            for node in &mut world.nodes {
                node.delivered.clear();
            }
            if turn > 0 {
                sealers[turn % 2].rotate();
                world.run_for(ms(3_000));
            }
        }
        assert_nothing_is_left(&world, ends);
        for (node, sealer) in sealers.iter().enumerate() {
            assert_eq!(sealer.installed().len(), 1, "one association a session");
            assert_eq!(statistics(&world)[node].records_failed, 0);
        }
    }
}

// SMT [15.4-10]
#[test]
fn two_rotations_leave_a_session_that_rests_alive() {
    let (mut world, ends, sealers) = connected(&ethernet());
    for _ in 0..5 {
        for sealer in &sealers {
            sealer.rotate();
        }
        // Something comes: the endpoints look at their devices.
        world.run_for(ms(1));
        for node in [0, 1] {
            let now = world.now;
            world.nodes[node].endpoint.handle_timeout(now);
        }
        world.run_for(ms(2_000));
    }
    let rpc = world.call(0, ends[0], body(1, 5_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 5_000)));
}

// SMT [15.4-5]
#[test]
fn messages_wait_until_the_peer_has_told_an_association() {
    let (mut world, sealers) = pair(&ethernet(), [true; 2]);
    sealers[1].set_left(0);
    let (client, _) = world.connect(0, 1).unwrap();
    let rpc = world.call(0, client, body(1, 100));
    world.run_for(ms(200));
    assert!(world.nodes[1].delivered.is_empty());
    sealers[1].set_left(u64::MAX);
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 100)));
}

// SMT [15.4-14]
#[test]
fn sessions_beyond_the_room_of_a_carrier_have_sealed_records() {
    for short in [0, 1] {
        let (mut world, sealers) = pair(&ethernet(), [true; 2]);
        sealers[short].set_room(1);
        let first = world.connect(0, 1).unwrap();
        let second = world.connect(0, 1).unwrap();
        for (session, version) in [(first, Some(1)), (second, None)] {
            assert_eq!(psp_version(&world, 0, session.0), version);
            assert_eq!(psp_version(&world, 1, session.1), version);
            let rpc = world.call(0, session.0, body(1, 5_000));
            assert_eq!(world.outcome(0, rpc), Ok(body(1, 5_000)));
        }
        let node = &mut world.nodes[0];
        node.endpoint.close(first.0, CloseCode::Done);
        world.run_for(ms(1_000));
        let third = world.connect(0, 1).unwrap();
        assert_eq!(psp_version(&world, 0, third.0), Some(1));
    }
}

// SMT [15.4-14]
#[test]
fn handshakes_that_come_to_nothing_give_their_room_back() {
    let (mut world, sealers) = pair(&ethernet(), [true; 2]);
    sealers.iter().for_each(|sealer| sealer.set_room(1));
    world.rule = Box::new(|datagram, _| match datagram.from {
        1 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    assert!(world.connect(0, 1).is_err());
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.run_for(ms(20_000));
    let (client, _) = world.connect(0, 1).unwrap();
    assert_eq!(psp_version(&world, 0, client), Some(1));
}

// SMT [15.4-8]
#[test]
fn an_association_that_is_lost_is_told_again() {
    let (mut world, _) = pair(&ethernet(), [true; 2]);
    let mut lost = [0; 2];
    world.rule = Box::new(move |datagram, _| {
        let tells = types(datagram).contains(&PacketType::Association);
        match tells && lost[datagram.from] < 3 {
            true => {
                lost[datagram.from] += 1;
                Verdict::Drop
            }
            false => Verdict::Deliver,
        }
    });
    let (client, _) = world.connect(0, 1).unwrap();
    let rpc = world.call(0, client, body(1, 5_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 5_000)));
}

/// Words about associations that a peer may say at any time.
fn words(version: u8) -> [Body<'static>; 3] {
    let fields = AssociationFields { serial: 9, spi: 77, version };
    [
        Body::Association(fields),
        Body::AssociationAck { serial: 9 },
        Body::AssociationRequest { serial: 9 },
    ]
}

// SMT [15.4-2]
#[test]
fn words_about_associations_count_for_nothing_in_a_session_with_sealed_records() {
    let (mut world, client, server) = World::connected();
    Rogue::client(server).say(&mut world, &words(1));
    assert_eq!(statistics(&world)[1].violations, 3);
    let rpc = world.call(0, client, body(1, 5_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 5_000)));
}

// SMT [15.4-8]
#[test]
fn an_association_of_another_version_is_not_taken() {
    let (mut world, ends, sealers) = connected(&ethernet());
    let before = sealers[1].installed();
    Rogue::client(ends[1]).say(&mut world, &words(0));
    assert_eq!(sealers[1].installed(), before);
    assert_eq!(statistics(&world)[1].violations, 1);
    let rpc = world.call(0, ends[0], body(1, 5_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 5_000)));
}

// SMT [15.4-11]
#[test]
fn a_peer_that_asks_and_acknowledges_without_end_gets_few_associations() {
    let (mut world, ends, sealers) = connected(&ethernet());
    let mut rogue = Rogue::client(ends[1]);
    for serial in 1..1_000 {
        let serial = 1 + serial % 20;
        rogue.say(
            &mut world,
            &[Body::AssociationAck { serial }, Body::AssociationRequest { serial }],
        );
        world.run_for(ms(1));
    }
    let next = sealers[1].allocate(1).unwrap().spi;
    assert!((8..15).contains(&next), "{next} in a second");
}

// SMT [15.4-13]
#[test]
fn an_association_that_comes_again_is_not_used_and_another_is_asked_for() {
    let mut config = ethernet();
    config.key_limits = KeyLimits::new(100, 100, 1 << 20).unwrap();
    let (mut world, ends, sealers) = connected(&config);
    let call = |world: &mut World, number| {
        let request = body(number, 300_000);
        let rpc = world.call(0, ends[0], request.clone());
        assert!(world.outcome(0, rpc) == Ok(request));
    };
    call(&mut world, 1);
    // The device of the server was given a key that it had.
    sealers[1].give_spis_again();
    call(&mut world, 2);
    let refused = statistics(&world)[0].associations_refused;
    assert!((1..20).contains(&refused), "{refused} refused");
}

// SMT [15.4-12]
#[test]
fn no_more_packets_leave_under_an_association_than_its_limit() {
    let mut config = ethernet();
    config.key_limits = KeyLimits::new(100, 100, 1 << 20).unwrap();
    let (mut world, ends, _) = connected(&config);
    world.is_recording = true;
    let request = body(1, 300_000);
    let rpc = world.call(0, ends[0], request.clone());
    assert!(world.outcome(0, rpc) == Ok(request));
    let sealed = world.sent.iter().filter(|of| types(of).is_empty());
    let number = |of: &Datagram| u64::from_be_bytes(*of.bytes[5..].first_chunk().unwrap());
    assert_eq!(sealed.map(number).max(), Some(100));
}
