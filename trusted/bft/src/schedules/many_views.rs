// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Liars that make a correct replica want one view after the other.

use std::sync::Arc;

use super::Cluster;
use super::steps::{hears, is_answered, restart_of_the_liar, second_request, wants};
use crate::sim::group::group;

// 1 heard of one epoch after the other before it heard of 2, wanted a view for each of them, and
// said the 1,025th VIEW-CHANGE, which is faulty.
#[test]
fn a_liar_that_restarts_1100_times_makes_no_correct_replica_faulty() {
    let mut cluster = Cluster::new(3);
    for epoch in 2..=1100 {
        restart_of_the_liar(&mut cluster, epoch, 0);
        cluster.replicas[0].outputs();
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
