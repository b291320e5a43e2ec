// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two servers may choose the same index; the same ids are used with both.

use smt_carrier::{Arrival, Path};

use super::support::configs::ethernet;
use super::support::{Verdict, World, body, ms};

#[test]
fn sessions_do_not_mix_although_both_servers_chose_the_same_index() {
    let mut server = ethernet();
    server.accept = true;
    let mut world = World::new(vec![ethernet(), server.clone(), server]);
    let (first, remote_of_first) = world.connect(0, 1).unwrap();
    let (second, remote_of_second) = world.connect(0, 2).unwrap();
    assert_eq!(remote_of_first, remote_of_second);
    // Both leave in turns, and the turns end in the middle of records.
    let now = world.now;
    let endpoint = &mut world.nodes[0].endpoint;
    let calls = [(first, 1), (second, 2)].map(|(session, seed)| {
        let rpc = endpoint.call(now, session, body(seed, 1_000_000), None);
        (rpc.unwrap(), seed)
    });
    for (rpc, seed) in calls {
        assert!(world.outcome(0, rpc) == Ok(body(seed, 1_000_000)));
    }
    for node in &world.nodes {
        assert_eq!(node.endpoint.statistics().records_failed, 0);
    }
}

/// A packet is of a session only if it came on that session's way (SPEC §6.3).
#[test]
fn sessions_do_not_mix_although_a_packet_comes_by_another_address_of_the_host() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.is_recording = true;
    let rpc = world.call(0, session, body(1, 100));
    let path = Path::between(world.nodes[0].address, [198, 51, 100, 1].into());
    let (now, server) = (world.now, &mut world.nodes[1].endpoint);
    server.handle_arrival(now, Arrival::datagram(path, &world.sent[0].bytes));
    assert_eq!(server.statistics().packets_unknown_session, 1);
    world.run_for(ms(1));
    assert!(world.nodes[1].delivered.is_empty());
    world.rule = Box::new(|_, _| Verdict::Deliver);
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 100)));
}
