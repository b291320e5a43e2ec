// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liars that make a correct replica want one view after the other.

use std::sync::Arc;

use super::Cluster;
use super::steps::{hears, hello, is_answered, restart_of_the_liar, second_request, wants};
use crate::sim::group::group;

// 1 wanted a view for each epoch of the liar, of which 2 did not hear, and said the 1,025th
// VIEW-CHANGE, which is faulty.
#[test]
fn a_liar_that_restarts_1100_times_makes_no_correct_replica_faulty() {
    let mut cluster = Cluster::new(3);
    let timeout = cluster.replicas[1].group.options.timeout;
    for epoch in 2..=1100 {
        restart_of_the_liar(&mut cluster, epoch, 0);
        cluster.replicas[0].outputs();
        (0..timeout).for_each(|_| cluster.replicas[1].tick());
        cluster.settle(|from, to| from != 0 && to != 0);
    }
    second_request(&mut cluster);
    assert!(is_answered(&mut cluster, &[1, 2]));
}

// The liar's promise made each of its timeouts count.
#[test]
fn a_replica_that_is_alone_with_a_liar_for_1100_timeouts_is_not_faulty() {
    let mut group = group(3);
    group.options.timeout = 1;
    let mut cluster = Cluster::of_group(&Arc::new(group));
    let far = wants(&mut cluster, 0, 1 << 40);
    let (bytes, _) = second_request(&mut cluster);
    hears(&mut cluster, 1, &[far, bytes]);
    for _ in 0..1100 * 66 {
        cluster.replicas[1].tick();
        cluster.replicas[1].outputs();
    }
    assert!(is_answered(&mut cluster, &[1, 2]));
}

#[test]
fn a_replica_that_may_want_no_other_view_is_silent_and_no_liar() {
    let mut cluster = Cluster::new(3);
    (1..1100).for_each(|view| cluster.replicas[1].want(view));
    let track = cluster.replicas[1].own_track();
    assert_eq!((track.wanted, track.promised, track.is_faulty), (1024, 1024, false));
}

/// HELLOs of the liar 0 up to an epoch. A replica gets the next one when it has voted for the one
/// before.
struct Hellos {
    next: u64,
    end: u64,
}

impl Hellos {
    fn give(&mut self, cluster: &mut Cluster, to: usize) {
        let epochs = cluster.replicas[to].streams.range((0, 0)..=(0, u64::MAX));
        let newest = epochs.map(|it| it.0.1).max().unwrap_or(1);
        let voted = cluster.replicas[to].own_track().ballots.get(&0).copied();
        if newest <= voted.unwrap_or(1) && newest + 1 < self.end {
            let hello = hello(cluster, newest + 1);
            hears(cluster, to, &[hello]);
            self.next = self.next.max(newest + 2);
        }
    }
}

// Before anything was ordered in a view, the next HELLO was here.
#[test]
fn a_liar_that_restarts_ever_again_does_not_keep_requests_from_being_answered() {
    let mut cluster = Cluster::new(3);
    let mut hellos = Hellos { next: 2, end: 300 };
    cluster.submit(0, 1);
    (0..20).for_each(|_| cluster.clients[0].tick());
    [1, 2].into_iter().for_each(|it| cluster.replicas[it].tick());
    let mut sent = vec![(100, cluster.clients[0].outputs())];
    while cluster.answers[0].is_none() && sent.iter().any(|it| !it.1.is_empty()) {
        for (from, all) in sent {
            for output in all {
                [1, 2].into_iter().for_each(|it| hellos.give(&mut cluster, it));
                cluster.put(from, output, |from, to| from != 0 && to != 0);
            }
        }
        sent = [1, 2].map(|it| (it, cluster.replicas[it].outputs())).to_vec();
    }
    assert!(cluster.answers[0].is_some());
    assert!(hellos.next < hellos.end, "none was ordered while there were HELLOs");
}
