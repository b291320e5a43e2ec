// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One liar of three nodes breaks nothing, and breaks each chain whose nodes lack a check.

use smt_chain::Rule;
use smt_trusted_models::chain::{Bounds, Chain, names};
use smt_trusted_models::{Cluster, explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { requests: 1, configurations: 1, lies: 2 }
}

/// Whether all rules are tried, which takes minutes.
fn are_all() -> bool {
    std::env::var("SMT_MODELS").is_ok_and(|it| it == "all")
}

/// With one liar no property is broken, and each situation that tests one is reached.
fn holds(bounds: Bounds, liar: u32) {
    let report = explore(Cluster::new(Chain::new(bounds, None), &[liar]), THREADS);
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

/// One liar breaks a property of nodes that lack a check.
fn breaks(rule: Rule, property: &'static str, bounds: Bounds, liar: u32) {
    let model = Cluster::new(Chain::new(bounds, Some(rule)), &[liar]);
    let way = first_violation(model, property, THREADS);
    println!("without {rule:?}, {property} is broken:\n{}", way.as_deref().unwrap_or("never"));
    assert!(way.is_some(), "{rule:?}");
}

#[test]
fn one_liar_breaks_a_chain_whose_nodes_lack_a_check() {
    let bounds = bounds();
    breaks(Rule::Mac, names::NO_ACCUSATION, bounds, 2);
    breaks(Rule::Output, names::PROOFS, bounds, 0);
    breaks(Rule::Link, names::PROOFS, bounds, 1);
    breaks(Rule::ClientSignature, names::SIGNED, bounds, 0);
    if !are_all() {
        return;
    }
    let two = Bounds { requests: 2, ..bounds };
    breaks(Rule::Gap, names::NO_ACCUSATION, two, 0);
    breaks(Rule::ExactlyOnce, names::RIGHT_ANSWERS, two, 0);
    breaks(Rule::Head, names::NO_ACCUSATION, two, 1);
    // The liar orders, freezes and opens.
    let three = Bounds { lies: 3, ..bounds };
    breaks(Rule::ProofQuorum, names::NOTHING_IS_LOST, three, 0);
    breaks(Rule::FreezeQuorum, names::NOTHING_IS_LOST, three, 0);
    breaks(Rule::DistinctFreezes, names::NOTHING_IS_LOST, three, 0);
    breaks(Rule::LongestLog, names::NOTHING_IS_LOST, three, 1);
}

#[test]
fn more_than_f_liars_break_what_one_does_not() {
    let model = Cluster::new(Chain::new(Bounds { lies: 1, ..bounds() }, None), &[0, 2]);
    assert!(first_violation(model, names::RIGHT_ANSWERS, THREADS).is_some());
}
