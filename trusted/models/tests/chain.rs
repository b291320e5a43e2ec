// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three nodes breaks nothing.

use smt_trusted_models::chain::{Bounds, Chain, names};
use smt_trusted_models::{Cluster, explore, explore_some, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, configurations: 1, lies: 2, ..Bounds::default() }
}

/// Whether larger bounds are tried, which takes minutes.
fn are_all() -> bool {
    std::env::var("SMT_MODELS").is_ok_and(|it| it == "all")
}

/// With one liar no property is broken, and each situation that tests one is reached.
fn holds(bounds: Bounds, liar: u32) {
    let report = explore(Cluster::new(Chain::new(bounds), &[liar]), THREADS);
    println!("node {liar} lies, {bounds:?}: {report}");
    report.assert();
}

/// Bounds with fewer lies, unless all is tried.
fn fewer() -> Bounds {
    Bounds { lies: if are_all() { 2 } else { 1 }, ..bounds() }
}

#[test]
fn a_head_that_lies_breaks_nothing() {
    let lies = if are_all() { 3 } else { bounds().lies };
    holds(Bounds { lies, ..bounds() }, 0);
}

#[test]
fn a_node_in_the_middle_that_lies_breaks_nothing() {
    holds(fewer(), 1);
}

#[test]
fn a_tail_that_lies_breaks_nothing() {
    holds(fewer(), 2);
}

/// With logs the same states are reached by logs of different lengths: a part is explored.
#[test]
fn nodes_that_are_killed_and_leave_entries_out_break_nothing() {
    let ways = if are_all() { 400_000 } else { 8000 };
    for liars in [&[][..], &[0], &[1], &[2]] {
        let cluster = Cluster::new(Chain::new(Bounds::logs()), liars);
        let counts = cluster.counts();
        let report = explore_some(cluster, 1, Some(ways));
        println!("{liars:?} lie, {:?}: {report}\n{counts}", Bounds::logs());
        report.assert();
        assert!(counts.closings() > 0);
    }
}

#[test]
fn more_than_f_liars_break_what_one_does_not() {
    let model = Cluster::new(Chain::new(Bounds { lies: 1, ..bounds() }), &[0, 2]);
    assert!(first_violation(model, names::RIGHT_ANSWERS, THREADS, None).is_some());
}
