// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A liar between two correct nodes breaks nothing.

use smt_trusted_models::explore;
use smt_trusted_models::peer_review::{Bounds, PeerReview};

const THREADS: usize = 2;

/// Whether larger bounds are tried, which takes minutes.
fn are_all() -> bool {
    std::env::var("SMT_MODELS").is_ok_and(|it| it == "all")
}

#[test]
fn a_liar_breaks_nothing() {
    let child_ticks = if are_all() { 3 } else { 1 };
    let bounds = Bounds { ticks: 3, child_ticks, entries: 1 };
    let report = explore(PeerReview::new(bounds), THREADS);
    println!("{bounds:?}: {report}");
    report.assert();
}
