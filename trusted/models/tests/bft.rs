// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three replicas breaks nothing.

use smt_trusted_models::bft::{Bft, Bounds, names};
use smt_trusted_models::{Cluster, explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, views: 1, lies: 2, ..Bounds::default() }
}

/// Whether larger bounds are tried, which takes minutes.
fn are_all() -> bool {
    std::env::var("SMT_MODELS").is_ok_and(|it| it == "all")
}

/// With one liar no property is broken, and each situation that tests one is reached.
fn holds(bounds: Bounds, liar: u32) {
    let report = explore(Cluster::new(Bft::new(bounds), &[liar]), THREADS);
    println!("replica {liar} lies, {bounds:?}: {report}");
    report.assert();
}

#[test]
fn a_leader_that_lies_breaks_nothing() {
    holds(bounds(), 0);
}

#[test]
fn a_leader_of_the_next_view_that_lies_breaks_nothing() {
    holds(bounds(), 1);
}

#[test]
fn a_follower_that_lies_breaks_nothing() {
    holds(bounds(), 2);
}

#[test]
fn a_liar_whose_device_restarts_breaks_nothing() {
    let lies = if are_all() { 2 } else { 1 };
    holds(Bounds { lies, restarts: true, ..bounds() }, 0);
}

#[test]
fn more_than_f_liars_break_what_one_does_not() {
    let model = Cluster::new(Bft::new(Bounds { lies: 1, ..bounds() }), &[0, 2]);
    assert!(first_violation(model, names::RIGHT_ANSWERS, THREADS, None).is_some());
}
