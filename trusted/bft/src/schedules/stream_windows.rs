// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Streams whose checkpoints are stable late.

use super::Cluster;
use super::steps::{request, restart_of_the_liar, small};
use crate::replica::Output;

/// Delivers all, but that what 4 sends to 3 is kept in `late`.
fn settle_without_four_to_three(cluster: &mut Cluster, late: &mut Vec<Vec<u8>>) {
    let may = |from: usize, to: usize| (from, to) != (4, 3);
    loop {
        let of_clients = cluster.clients[0].outputs().into_iter().map(|it| (100, it));
        let mut sent: Vec<_> = of_clients.collect();
        for (number, replica) in cluster.replicas.iter_mut().enumerate() {
            sent.extend(replica.outputs().into_iter().map(|it| (number, it)));
        }
        if sent.is_empty() {
            return;
        }
        for (from, output) in sent {
            if let (4, Output::Nodes(bytes)) = (from, &output) {
                late.push(bytes.clone());
            }
            cluster.put(from, output, may);
        }
    }
}

// No liar is needed: 3 heard what others state of the stream before it had the stream, and forgot
// the first of it. It stopped at the end of the window, with the next statement at hand.
#[test]
fn a_stream_that_comes_late_is_gone_on_with_from_a_checkpoint() {
    let mut cluster = Cluster::new(5);
    let mut late = Vec::new();
    let interval = cluster.replicas[0].group.stream_interval();
    while cluster.replicas[0].streams[&(4, 1)].track.counter < interval * 18 {
        cluster.answers[0] = None;
        cluster.submit(0, 1);
        settle_without_four_to_three(&mut cluster, &mut late);
        assert!(cluster.answers[0].is_some());
    }
    late.iter().for_each(|it| cluster.replicas[3].receive(it));
    cluster.settle(|_, _| true);
    for _ in 0..30 {
        assert!(request(&mut cluster, &|_, _| true, &[0, 1, 2, 3, 4]));
        cluster.tick(&[0, 1, 2, 3, 4], 2);
    }
    let [here, there] = [0, 3].map(|it| cluster.replicas[it].streams[&(4, 1)].track.counter);
    assert_eq!(here, there);
    // f of five crash.
    let may = |from: usize, to: usize| from >= 2 && to >= 2;
    assert!(request(&mut cluster, &may, &[2, 3, 4]));
}

// It dropped its own statements, which nobody else had.
#[test]
fn a_replica_that_is_not_heard_for_long_stands_in_for_another_one() {
    for requests in [10, 4000] {
        let mut cluster = small(3);
        for _ in 0..requests {
            assert!(request(&mut cluster, &|from, _| from != 2, &[]));
        }
        for _ in 0..20 {
            cluster.tick(&[0, 1, 2], 20);
            assert!(request(&mut cluster, &|_, _| true, &[0, 1, 2]));
        }
        let replica = &cluster.replicas[2];
        assert_eq!(replica.device.counter(), replica.own_track().counter);
        assert!(request(&mut cluster, &|from, to| from != 0 && to != 0, &[1, 2]), "{requests}");
    }
}

// The places of the many epochs filled 1's own stream beyond the window, and those of its own
// stream came after that.
#[test]
fn a_liar_that_restarts_again_and_again_stops_no_replica_that_follows_it() {
    for epochs in [5, 60] {
        let mut cluster = small(3);
        for epoch in 2..2 + epochs {
            restart_of_the_liar(&mut cluster, epoch, 96);
        }
        // All that 1 has sent is lost on the way to 2.
        cluster.replicas[0].outputs();
        cluster.replicas[1].outputs();
        cluster.tick(&[1, 2], 400);
        assert!(request(&mut cluster, &|from, to| from != 0 && to != 0, &[1, 2]), "{epochs}");
    }
}
