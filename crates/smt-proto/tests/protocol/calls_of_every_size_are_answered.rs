// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_proto::OneWayOutcome;

use super::support::node::replies_of_asked_length;
use super::support::{World, body};

/// Around the edges of records (1,142 less 40 of header; then 16,384 each) and of the unscheduled
/// bytes.
const SIZES: [usize; 27] = [
    0,
    1,
    2,
    23,
    24,
    25,
    100,
    1_000,
    1_101,
    1_102,
    1_103,
    1_104,
    1_200,
    1_472,
    9_000,
    17_485,
    17_486,
    17_487,
    33_870,
    33_871,
    59_000,
    60_000,
    65_536,
    100_000,
    1_000_000,
    10_000_001,
    64 << 20,
];

#[test]
fn calls_from_client_to_server_are_answered() {
    let (mut world, session, _) = World::connected();
    for size in SIZES {
        let request = body(1, size);
        let rpc = world.call(0, session, request.clone());
        assert_eq!(world.outcome(0, rpc), Ok(request), "{size} bytes");
    }
    assert_eq!(world.nodes[1].delivered.len(), SIZES.len());
}

#[test]
fn calls_from_server_to_client_are_answered() {
    let (mut world, _, session) = World::connected();
    for size in SIZES {
        let request = body(2, size);
        let rpc = world.call(1, session, request.clone());
        assert_eq!(world.outcome(1, rpc), Ok(request), "{size} bytes");
    }
}

#[test]
fn a_short_request_may_have_a_long_reply() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = replies_of_asked_length();
    for size in SIZES {
        let rpc = world.call(0, session, (size as u32).to_be_bytes().to_vec().into());
        assert_eq!(world.outcome(0, rpc), Ok(body(size as u64, size)), "{size} bytes");
    }
}

#[test]
fn one_way_messages_arrive_and_are_acknowledged() {
    let (mut world, client, server) = World::connected();
    for (node, session) in [(0, client), (1, server)] {
        for size in SIZES {
            let message = body(3, size);
            let rpc = world.send_one_way(node, session, message.clone());
            assert_eq!(world.one_way_outcome(node, rpc), OneWayOutcome::Delivered, "{size} bytes");
            assert_eq!(world.nodes[1 - node].delivered.pop().unwrap().1, message);
        }
    }
}
