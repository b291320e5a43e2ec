// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three nodes breaks nothing.

use smt_trusted_models::transform::{Bounds, Transform, names};
use smt_trusted_models::{Cluster, explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, views: 1, lies: 1 }
}

/// With one liar no property is broken, and each situation that tests one is reached.
fn holds(liar: u32) {
    let report = explore(Cluster::new(Transform::new(bounds()), &[liar]), THREADS);
    println!("node {liar} lies, {:?}: {report}", bounds());
    report.assert();
}

#[test]
fn a_leader_that_lies_breaks_nothing() {
    holds(0);
}

#[test]
fn a_leader_of_the_next_view_that_lies_breaks_nothing() {
    holds(1);
}

#[test]
fn a_follower_that_lies_breaks_nothing() {
    holds(2);
}

#[test]
fn more_than_f_liars_break_what_one_does_not() {
    let model = Cluster::new(Transform::new(bounds()), &[0, 2]);
    assert!(first_violation(model, names::RIGHT_ANSWERS, THREADS, None).is_some());
}
