// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Only authenticated answers raise the datagram size; a black hole lowers it, never below the
//! floor.

use bytes::Bytes;
use smt_proto::Config;
use smt_wire::SessionIndex;

use super::support::node::replies_of_asked_length;
use super::support::{Verdict, World, body, ms};

fn narrow(world: &mut World, size: usize) {
    world.rule =
        Box::new(
            move |datagram, _| {
                if datagram.bytes.len() > size { Verdict::Drop } else { Verdict::Deliver }
            },
        );
}

fn sizes(world: &World, ends: [SessionIndex; 2]) -> [usize; 2] {
    [0, 1].map(|node| world.nodes[node].endpoint.session(ends[node]).unwrap().datagram_size)
}

// SMT [9.8-2], [9.8-1]
#[test]
fn datagram_sizes_grow_to_what_the_path_carries() {
    let expected = [
        (1_200, 1_200),
        (1_400, 1_200),
        (1_472, 1_472),
        (1_452, 1_452),
        (9_000, 8_972),
        (65_507, 65_507),
    ];
    for (path, found) in expected {
        let mut world = World::pair(Config::default(), Config::default());
        narrow(&mut world, path);
        let (client, server) = world.connect(0, 1).unwrap();
        assert_eq!(sizes(&world, [client, server]), [found; 2], "a path of {path}");
        let rpc = world.call(0, client, body(1, 200_000));
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 200_000)));
        assert_eq!(sizes(&world, [client, server]), [found; 2]);
    }
}

// SMT [9.8-2]
#[test]
fn datagram_sizes_grow_to_what_both_sides_permit() {
    let mut client = Config::default();
    client.datagram_limit = 5_000;
    let (world, client, server) = World::connected_with(client, Config::default());
    assert_eq!(sizes(&world, [client, server]), [5_000; 2]);
}

// SMT [9.8-4]
#[test]
fn datagram_sizes_are_discovered_although_probes_are_lost() {
    let mut world = World::pair(Config::default(), Config::default());
    let mut lost = 0;
    world.rule = Box::new(move |datagram, _| {
        let is_large = datagram.bytes.len() > 1_200;
        lost += usize::from(is_large);
        if is_large && lost <= 8 { Verdict::Drop } else { Verdict::Deliver }
    });
    let (client, server) = world.connect(0, 1).unwrap();
    assert_eq!(sizes(&world, [client, server]), [65_507; 2]);
}

/// The path becomes narrower while a session lives.
// SMT [9.8-6]
#[test]
fn a_black_hole_brings_back_the_floor_for_requests() {
    let (mut world, client, server) = World::connected();
    narrow(&mut world, 1_472);
    let began = world.now;
    let rpc = world.call(0, client, body(1, 100_000));
    assert!(world.outcome(0, rpc).is_ok_and(|reply| reply.len() == 100_000));
    let took = world.now.since(began);
    assert!(took < ms(2_000), "{took:?}");
    assert_eq!(sizes(&world, [client, server]), [1_200; 2]);
}

#[test]
fn a_black_hole_brings_back_the_floor_for_replies() {
    let (mut world, client, server) = World::connected();
    world.nodes[1].application = replies_of_asked_length();
    narrow(&mut world, 1_472);
    let rpc = world.call(0, client, 100_000_u32.to_be_bytes().to_vec().into());
    assert_eq!(world.outcome(0, rpc), Ok(body(100_000, 100_000)));
    assert_eq!(sizes(&world, [client, server]), [65_507, 1_200]);
}

#[test]
fn a_black_hole_brings_back_the_floor_for_one_way_messages() {
    let (mut world, client, _) = World::connected();
    narrow(&mut world, 1_472);
    let rpc = world.send_one_way(0, client, body(1, 100_000));
    assert_eq!(world.one_way_outcome(0, rpc), smt_proto::OneWayOutcome::Delivered);
}

/// Calls that leave together, and are answered together.
fn call_at_once(world: &mut World, client: SessionIndex, bodies: Vec<Bytes>) {
    let began = world.now;
    for rpc in world.start_calls(0, client, bodies) {
        assert!(world.outcome(0, rpc).is_ok());
    }
    let took = world.now.since(began);
    assert!(took < ms(1_000), "{took:?}");
}

/// Each member is asked for, and so is the rest of the bundle: a question about one does not hide
/// that of the other.
#[test]
fn a_black_hole_brings_back_the_floor_for_bundles_of_requests() {
    let (mut world, client, server) = World::connected();
    narrow(&mut world, 1_472);
    let bodies = (0..200).map(|number| body(number, 64)).collect();
    call_at_once(&mut world, client, bodies);
    assert_eq!(sizes(&world, [client, server])[0], 1_200);
}

#[test]
fn a_black_hole_brings_back_the_floor_for_bundles_of_replies() {
    let (mut world, client, server) = World::connected();
    world.nodes[1].application = replies_of_asked_length();
    narrow(&mut world, 1_472);
    let asked = Bytes::copy_from_slice(&600_u32.to_be_bytes());
    call_at_once(&mut world, client, vec![asked; 20]);
    assert_eq!(sizes(&world, [client, server]), [65_507, 1_200]);
}

#[test]
fn discovery_is_tried_again_after_a_black_hole() {
    let (mut world, client, server) = World::connected();
    narrow(&mut world, 1_472);
    let rpc = world.call(0, client, body(1, 100_000));
    world.outcome(0, rpc).unwrap();
    world.run_for(ms(61_000));
    assert_eq!(sizes(&world, [client, server]), [1_472; 2]);
}

/// Anybody can forge the reports by which a system says so.
// SMT [9.8-5]
#[test]
fn reports_about_a_path_do_not_lower_the_datagram_size() {
    let (mut world, client, server) = World::connected();
    let (now, remote) = (world.now, world.nodes[1].address);
    for length in [1_200, 1_472, 65_507] {
        let endpoint = &mut world.nodes[0].endpoint;
        endpoint.handle_send_too_large(now, remote, length);
        endpoint.handle_unreachable(now, remote);
    }
    world.run_for(ms(1_000));
    assert_eq!(sizes(&world, [client, server]), [65_507; 2]);
}

/// Loss is not a black hole.
#[test]
fn loss_alone_does_not_lower_the_datagram_size() {
    let (mut world, client, server) = World::connected();
    let mut random = super::support::Random::from_env();
    world.rule =
        Box::new(move |_, _| if random.percent(5) { Verdict::Drop } else { Verdict::Deliver });
    for number in 0..300 {
        let rpc = world.call(0, client, body(number, 30_000));
        world.outcome(0, rpc).unwrap();
    }
    assert_eq!(sizes(&world, [client, server]), [65_507; 2]);
}

/// A peer that has no memory for a message has never seen it: that says nothing about the path.
// SMT [9.8-9]
#[test]
fn a_peer_without_memory_does_not_lower_the_datagram_size() {
    let mut server = Config::default();
    server.memory_max = 0;
    let (mut world, client, server) = World::connected_with(Config::default(), server);
    world.is_recording = true;
    world.call(0, client, body(1, 100_000));
    world.run_for(ms(3_000));
    let answers = world.sent.iter().filter(|sent| sent.has(smt_wire::PacketType::NeverSeen));
    assert!(answers.count() > 3);
    assert_eq!(sizes(&world, [client, server]), [65_507; 2]);
}
