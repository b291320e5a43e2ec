// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two servers may choose the same index; the same ids are used with both.

use super::support::configs::ethernet;
use super::support::{World, body};

#[test]
fn although_both_servers_chose_the_same_index() {
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
