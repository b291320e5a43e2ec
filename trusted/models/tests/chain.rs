// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three nodes breaks nothing.

use smt_trusted_models::chain::{Bounds, Chain, names};
use smt_trusted_models::{Cluster, explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, configurations: 1, lies: 2 }
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

#[test]
fn more_than_f_liars_break_what_one_does_not() {
    let model = Cluster::new(Chain::new(Bounds { lies: 1, ..bounds() }), &[0, 2]);
    assert!(first_violation(model, names::RIGHT_ANSWERS, THREADS, None).is_some());
}
