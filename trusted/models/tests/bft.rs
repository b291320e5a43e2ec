// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three replicas breaks nothing, and breaks each group whose replicas lack a check.

use smt_bft::Rule;
use smt_trusted_models::bft::{Bft, Bounds, names};
use smt_trusted_models::{Cluster, explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, views: 1, lies: 2, restarts: false, orders: true }
}

/// Whether all rules are tried, which takes minutes.
fn are_all() -> bool {
    std::env::var("SMT_MODELS").is_ok_and(|it| it == "all")
}

/// With one liar no property is broken, and each situation that tests one is reached.
fn holds(bounds: Bounds, liar: u32) {
    let report = explore(Cluster::new(Bft::new(bounds, None), &[liar]), THREADS);
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

/// One liar breaks a property of replicas that lack a check.
fn breaks(rule: Rule, property: &'static str, bounds: Bounds, liar: u32) {
    let model = Cluster::new(Bft::new(bounds, Some(rule)), &[liar]);
    let way = first_violation(model, property, THREADS);
    println!("without {rule:?}, {property} is broken:\n{}", way.as_deref().unwrap_or("never"));
    assert!(way.is_some(), "{rule:?}");
}

#[test]
fn one_liar_breaks_a_group_whose_replicas_lack_a_check() {
    breaks(Rule::CommitQuorum, names::NOTHING_IS_LOST, bounds(), 0);
    breaks(Rule::ClientSignature, names::SIGNED, bounds(), 0);
    breaks(Rule::ChangeQuorum, names::NOTHING_IS_LOST, bounds(), 1);
    breaks(Rule::DistinctVotes, names::NOTHING_IS_LOST, bounds(), 1);
    breaks(Rule::Promise, names::NOTHING_IS_LOST, bounds(), 2);
    breaks(Rule::LongestLog, names::NOTHING_IS_LOST, bounds(), 0);
    let restarts = Bounds { lies: 3, restarts: true, ..bounds() };
    breaks(Rule::Admission, names::NOTHING_IS_LOST, restarts, 0);
    if !are_all() {
        return;
    }
    let two = Bounds { requests: 2, ..bounds() };
    breaks(Rule::Mac, names::AGREEMENT, two, 2);
    breaks(Rule::Gap, names::AGREEMENT, two, 0);
    breaks(Rule::ExactlyOnce, names::RIGHT_ANSWERS, two, 0);
    breaks(Rule::PrepareOrder, names::AGREEMENT, two, 0);
    breaks(Rule::Leader, names::AGREEMENT, two, 2);
}

#[test]
fn more_than_f_liars_break_what_one_does_not() {
    let model = Cluster::new(Bft::new(Bounds { lies: 1, ..bounds() }, None), &[0, 2]);
    assert!(first_violation(model, names::RIGHT_ANSWERS, THREADS).is_some());
}
