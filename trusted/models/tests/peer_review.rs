// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A liar between two correct nodes breaks nothing, and breaks nodes that lack a check.

use smt_peer_review::Rule;
use smt_trusted_models::peer_review::{Bounds, PeerReview, names};
use smt_trusted_models::{explore, first_violation};

const THREADS: usize = 2;

/// Whether all rules are tried, with larger bounds, which takes minutes.
fn are_all() -> bool {
    std::env::var("SMT_MODELS").is_ok_and(|it| it == "all")
}

#[test]
fn a_liar_breaks_nothing() {
    let child_ticks = if are_all() { 3 } else { 1 };
    let bounds = Bounds { ticks: 3, child_ticks, entries: 1 };
    let report = explore(PeerReview::new(bounds, None), THREADS);
    println!("{bounds:?}: {report}");
    report.assert();
}

/// A liar breaks a property of nodes that lack a check.
fn breaks(rule: Rule, property: &'static str, bounds: Bounds) {
    let way = first_violation(PeerReview::new(bounds, Some(rule)), property, THREADS);
    println!("without {rule:?}, {property} is broken:\n{}", way.as_deref().unwrap_or("never"));
    assert!(way.is_some(), "{rule:?}");
}

#[test]
fn a_liar_breaks_nodes_that_lack_a_check() {
    let bounds = Bounds { ticks: 3, child_ticks: 3, entries: 1 };
    breaks(Rule::Outputs, names::AUDITED, bounds);
    breaks(Rule::Signature, names::AUDITED, bounds);
    breaks(Rule::Receipt, names::RECEIPTS, bounds);
    breaks(Rule::Evidence, names::NEVER_EXPOSED, bounds);
    if !are_all() {
        return;
    }
    breaks(Rule::Chain, names::AUDITED, bounds);
    breaks(Rule::Nonce, names::SILENCE, bounds);
    breaks(Rule::Order, names::AUDITED, Bounds { entries: 2, ..bounds });
}
