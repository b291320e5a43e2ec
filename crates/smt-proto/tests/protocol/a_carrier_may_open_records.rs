// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A carrier opens records before the core gets them: messages and rules are the same, and the
//! carrier's word counts for keys and numbers that are this side's own alone.

use std::sync::Arc;

use smt_carrier::{Arrival, KeyHandle, Opened, Path};
use smt_proto::{Config, Statistics};
use smt_record::KeyLimits;
use smt_testkit::OpeningKeys;
use smt_wire::SessionIndex;

use super::support::configs::ethernet;
use super::support::load::assert_nothing_is_left;
use super::support::rule::trouble;
use super::support::{Load, Node, Random, World, body, ms};

/// A live session whose ends have carriers with room for so many keys.
fn connected(config: &Config, room: usize) -> (World, [SessionIndex; 2], [Arc<OpeningKeys>; 2]) {
    let keys = [0, 1].map(|_| Arc::new(OpeningKeys::new(room)));
    let mut nodes: Vec<Node> = [0, 1]
        .map(|number| {
            let mut config = config.clone();
            config.accept = number == 1;
            Node::new(number, config)
        })
        .into();
    for (node, keys) in nodes.iter_mut().zip(&keys) {
        node.endpoint.set_key_store(Arc::<OpeningKeys>::clone(keys));
        let keys = Arc::clone(keys);
        node.opener = Some(Box::new(move |datagram| keys.open(datagram)));
    }
    let mut world = World::of(nodes);
    let (client, server) = world.connect(0, 1).unwrap();
    (world, [client, server], keys)
}

/// Records that fit a datagram, so that a carrier which merges nothing can open them.
fn short_records() -> Config {
    let mut config = ethernet();
    config.record_size = 1_142;
    config
}

fn statistics(world: &World) -> [Statistics; 2] {
    [0, 1].map(|node| world.nodes[node].endpoint.statistics())
}

// SMT [5.4-13]
#[test]
fn messages_of_every_length_are_the_same_as_without_the_carrier() {
    for config in [ethernet(), short_records()] {
        let (mut world, [client, _], keys) = connected(&config, 8);
        let boundaries = [0, 1_102, 1_142, 1_436, 2_284, 2_872, 16_384, 32_768, 65_507];
        for boundary in boundaries {
            for length in (boundary as usize).saturating_sub(46)..boundary as usize + 46 {
                let request = body(length as u64, length);
                let rpc = world.call(0, client, request.clone());
                assert!(world.outcome(0, rpc) == Ok(request), "{length} bytes");
            }
        }
        for (statistics, keys) in statistics(&world).iter().zip(&keys) {
            assert!(statistics.records_opened_by_carrier > 700);
            assert_eq!(statistics.records_opened_by_carrier, keys.opened());
            assert_eq!(statistics.records_failed + statistics.carrier_records_refused, 0);
        }
    }
}

// SMT [7.3-9], [7.3-14]
#[test]
fn losses_are_repaired_and_keys_renewed_while_a_carrier_opens() {
    for room in [0, 1, 8] {
        let mut random = Random::from_env();
        let mut config = short_records();
        config.key_limits = KeyLimits::new(4_096, 400, 1 << 20).unwrap();
        let (mut world, ends, keys) = connected(&config, room);
        world.rule = Box::new(trouble(Random::new(random.any()), 5));
        let load = Load { messages: 1_000, at_once: 20, size_max: 30_000, random };
        load.run(&mut world, ends);
        assert_nothing_is_left(&world, ends);
        for (node, index) in ends.into_iter().enumerate() {
            let facts = world.nodes[node].endpoint.session(index).unwrap();
            assert!(facts.open_epoch >= 2, "keys were renewed");
        }
        for (statistics, keys) in statistics(&world).iter().zip(&keys) {
            assert_eq!(statistics.records_opened_by_carrier > 0, room > 0);
            // Keys of finished epochs went back.
            assert!(keys.installed() <= room.min(2));
        }
    }
}

// SMT [4.2-1], [4.2-2]
#[test]
fn a_replayed_packet_that_a_carrier_opens_again_delivers_nothing_again() {
    let (mut world, [client, _], keys) = connected(&short_records(), 8);
    world.is_recording = true;
    for length in [10, 1_000, 5_000] {
        let rpc = world.call(0, client, body(1, length));
        world.outcome(0, rpc).unwrap();
    }
    let delivered = world.nodes[1].delivered.len();
    let before = keys[1].opened();
    for datagram in std::mem::take(&mut world.sent) {
        world.hand_in(&datagram);
    }
    world.run_for(ms(1_000));
    assert!(keys[1].opened() > before, "the carrier opens it again");
    assert_eq!(world.nodes[1].delivered.len(), delivered);
}

/// Lets the first openings of the server's carrier be changed, and calls.
fn call_through_lies(lie: impl Fn(&mut Opened) + 'static) -> [Statistics; 2] {
    let (mut world, [client, _], keys) = connected(&short_records(), 8);
    let rpc = world.call(0, client, body(1, 10));
    world.outcome(0, rpc).unwrap();
    let mut lies = 5;
    let keys = Arc::clone(&keys[1]);
    world.nodes[1].opener = Some(Box::new(move |datagram| {
        let mut opened = keys.open(datagram);
        if lies > 0 && !opened.is_empty() {
            lies -= 1;
            opened.iter_mut().for_each(&lie);
        }
        opened
    }));
    let request = body(2, 20_000);
    let rpc = world.call(0, client, request.clone());
    assert!(world.outcome(0, rpc) == Ok(request));
    assert_eq!(world.nodes[1].delivered.len(), 2);
    statistics(&world)
}

#[test]
fn a_word_for_another_number_or_key_is_not_taken() {
    let lies: [fn(&mut Opened); 3] = [
        |opened| opened.number += 1,
        |opened| opened.number ^= 1 << 40,
        |opened| opened.key = KeyHandle(opened.key.0 + 1),
    ];
    for lie in lies {
        let [_, server] = call_through_lies(lie);
        assert!(server.carrier_records_refused >= 5);
    }
}

#[test]
fn a_word_for_another_place_is_as_good_as_none() {
    let [_, server] = call_through_lies(|opened| opened.at += 1);
    assert!(server.records_failed >= 1);
}

/// A carrier to which no key was given says that it has opened what the network has made up: a
/// card that is not trusted, for example.
#[test]
fn an_endpoint_that_gave_no_key_takes_no_word_of_its_carrier() {
    let (mut world, client, _) = World::connected_with(short_records(), short_records());
    world.is_recording = true;
    let rpc = world.call(0, client, body(1, 10));
    world.outcome(0, rpc).unwrap();
    let sent = std::mem::take(&mut world.sent);
    let request = sent.iter().find(|datagram| datagram.to == 1 && datagram.data().is_some());
    let mut forged = request.unwrap().bytes.clone();
    let id = request.unwrap().data().unwrap().header.id.0 + 2;
    forged[20..28].copy_from_slice(&id.to_be_bytes());
    // An inner header of a request of ten bytes, and the bytes.
    let inner = &mut forged[36 + 5..];
    inner[..40].fill(0);
    inner[3] = 10;
    inner[7] = 50;
    inner[8] = 1;
    inner[50] = 0x17;
    for key in 0..4 {
        for bits in 8..=17 {
            let opened = [Opened { at: 36, key: KeyHandle(key), number: id << bits }];
            let path = Path::between(world.nodes[0].address, world.nodes[1].address.ip());
            let arrival = Arrival::datagram(path, &forged).with_opened(&opened);
            world.nodes[1].endpoint.handle_arrival(world.now, arrival);
        }
    }
    world.run_for(ms(100));
    assert_eq!(world.nodes[1].delivered.len(), 1);
    let [_, server] = statistics(&world);
    assert_eq!(server.carrier_records_refused, 40);
    assert_eq!(server.records_opened_by_carrier, 0);
}
