// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A liar between two correct nodes breaks nothing, and breaks each node that lacks a check.

use smt_peer_review::Rule;
use smt_trusted_models::peer_review::{Bounds, PeerReview, names};
use smt_trusted_models::{explore, first_violation};

const THREADS: usize = 2;

fn bounds() -> Bounds {
    Bounds { ticks: 3, entries: 2 }
}

#[test]
fn a_liar_breaks_nothing() {
    let report = explore(PeerReview::new(bounds(), None), THREADS);
    println!("{:?}: {report} {:?}", bounds(), report.unreached);
    for (name, way) in &report.violations {
        println!("{name}:\n{way}");
    }
}

#[test]
fn a_liar_breaks_each_node_that_lacks_a_check() {
    let only = std::env::var("SMT_RULE").ok();
    for (rule, property) in [
        (Rule::Signature, names::AUDITED),
        (Rule::Outputs, names::AUDITED),
        (Rule::Order, names::AUDITED),
        (Rule::Chain, names::AUDITED),
        (Rule::Nonce, names::SILENCE),
        (Rule::Receipt, names::RECEIPTS),
        (Rule::Evidence, names::NEVER_EXPOSED),
    ] {
        if only.as_ref().is_some_and(|it| *it != format!("{rule:?}")) {
            continue;
        }
        let begin = std::time::Instant::now();
        let found = first_violation(PeerReview::new(bounds(), Some(rule)), property, THREADS);
        let way = found.unwrap_or_default();
        println!("{rule:?} {:?} {property}\n{way}", begin.elapsed());
    }
}
