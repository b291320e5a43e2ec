// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search: up to f replicas and any clients lie, and no property is violated.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_bft::sim::{Report, Scenario, run};

#[test]
fn no_seed_violates_a_property() {
    let first = std::env::var("SMT_BFT_SEED").map_or(0, |it| it.parse().unwrap());
    let count = std::env::var("SMT_BFT_COUNT").map_or(400, |it| it.parse().unwrap());
    let mut report = Report::default();
    for seed in first..first + count {
        report.add(seed, run(&Scenario::of_seed(seed)));
    }
    println!("{report}");
    assert_eq!(report.violations(), []);
    if count >= 400 {
        assert_eq!(report.rare(), []);
    }
}
