// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three nodes breaks nothing, and breaks each group whose nodes lack a check.

use smt_transform::Rule;
use smt_trusted_models::transform::{Bounds, Transform, names};
use smt_trusted_models::{Cluster, explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, views: 1, lies: 1 }
}

/// Whether all rules are tried, which takes minutes.
fn are_all() -> bool {
    std::env::var("SMT_MODELS").is_ok_and(|it| it == "all")
}

/// With one liar no property is broken, and each situation that tests one is reached.
fn holds(liar: u32) {
    let report = explore(Cluster::new(Transform::new(bounds(), None), &[liar]), THREADS);
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

/// One liar breaks a property of nodes that lack a check.
fn breaks(rule: Rule, property: &'static str, bounds: Bounds, liar: u32) {
    let model = Cluster::new(Transform::new(bounds, Some(rule)), &[liar]);
    let way = first_violation(model, property, THREADS);
    println!("without {rule:?}, {property} is broken:\n{}", way.as_deref().unwrap_or("never"));
    assert!(way.is_some(), "{rule:?}");
}

#[test]
fn one_liar_breaks_a_group_whose_nodes_lack_a_check() {
    breaks(Rule::RequestSignature, names::SIGNED, Bounds { lies: 2, ..bounds() }, 0);
    breaks(Rule::EndorsementQuorum, names::RIGHT_ANSWERS, bounds(), 0);
    breaks(Rule::EndorsementSignature, names::RIGHT_ANSWERS, bounds(), 0);
    breaks(Rule::Sent, names::NOTHING_IS_LOST, bounds(), 2);
    breaks(Rule::Armed, names::PROTOCOL, bounds(), 1);
    breaks(Rule::Effects, names::PROTOCOL, bounds(), 0);
    if !are_all() {
        return;
    }
    let two = Bounds { lies: 2, ..bounds() };
    breaks(Rule::Effects, names::RIGHT_ANSWERS, two, 0);
    breaks(Rule::Mac, names::NO_ACCUSATION, two, 2);
    breaks(Rule::Gap, names::PROTOCOL, two, 0);
    breaks(Rule::Prefix, names::PROTOCOL, Bounds { requests: 2, ..bounds() }, 1);
}

#[test]
fn more_than_f_liars_break_what_one_does_not() {
    let model = Cluster::new(Transform::new(bounds(), None), &[0, 2]);
    assert!(first_violation(model, names::RIGHT_ANSWERS, THREADS).is_some());
}
