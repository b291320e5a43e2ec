// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint sends what its carrier takes: no larger datagram, no longer batch, and no priority
//! that means nothing. Marks of arrivals are counted.

use smt_carrier::{Arrival, Capabilities, Ecn, Marks, Path};
use smt_proto::Config;

use super::support::{World, body};

/// A pair whose carriers have these abilities, after it has exchanged a long call.
fn after_a_call(capabilities: Capabilities) -> World {
    let mut world = World::pair(Config::default(), Config::default());
    for node in &mut world.nodes {
        node.endpoint.set_capabilities(capabilities);
    }
    world.is_recording = true;
    let (client, _) = world.connect(0, 1).unwrap();
    let rpc = world.call(0, client, body(1, 100_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 100_000)));
    world
}

fn datagram_most(world: &World) -> usize {
    let lengths = world.sent.iter().map(|datagram| datagram.bytes.len());
    lengths.max().unwrap()
}

#[test]
fn no_datagram_is_larger_than_the_carriers_largest() {
    for largest in [1_200, 1_300, 1_472, 9_000] {
        let capabilities = Capabilities::new(largest).with_segments_max(64);
        assert_eq!(datagram_most(&after_a_call(capabilities)), largest);
    }
    // Below the floor it is the floor: every carrier takes that.
    let world = after_a_call(Capabilities::new(600));
    assert_eq!(datagram_most(&world), 1_200);
}

#[test]
fn no_batch_has_more_datagrams_than_the_carrier_takes() {
    for segments in [1, 2, 7, 64] {
        let capabilities = Capabilities::new(1_472).with_segments_max(segments);
        let world = after_a_call(capabilities);
        let found = world.segments_most;
        assert!(found <= usize::from(segments), "{found} of {segments}");
        assert!(found > usize::from(segments) / 2, "{found} of {segments}");
    }
}

#[test]
fn no_batch_has_more_bytes_than_the_carrier_takes() {
    for bytes in [10, 5_000, 20_000] {
        let capabilities = Capabilities::new(1_472).with_segments_max(64);
        let world = after_a_call(capabilities.with_batch_max(bytes));
        assert!(world.batch_most <= bytes.max(1_472), "{bytes}");
    }
}

#[test]
fn batches_have_priorities_only_if_the_carrier_has() {
    for (has_priorities, most) in [(false, 0), (true, 7)] {
        let capabilities = Capabilities::new(1_472).with_priorities(has_priorities);
        assert_eq!(after_a_call(capabilities).priority_most, most);
    }
}

#[test]
fn datagrams_with_a_congestion_mark_are_counted() {
    let (mut world, ..) = World::connected();
    let path = Path::to("192.0.2.99:9".parse().unwrap());
    let now = world.now;
    let endpoint = &mut world.nodes[1].endpoint;
    let before = endpoint.statistics();
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        let marks = Marks { ecn, ..Marks::NONE };
        let arrival = Arrival { segment_size: 4, ..Arrival::datagram(path, &[0; 10]) };
        endpoint.handle_arrival(now, arrival.with_marks(marks));
    }
    let after = endpoint.statistics();
    assert_eq!(after.datagrams_received - before.datagrams_received, 12);
    assert_eq!(after.datagrams_ce - before.datagrams_ce, 3);
}
