// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search: up to f nodes lie, and no property is violated; with more liars one is.
//!
//!     SMT_PEER_REVIEW_COUNT=10000 cargo test -p smt-peer-review --all-features --test search
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_peer_review::sim::{Attack, Scenario, Violation, report, run};

#[test]
fn no_seed_violates_a_property() {
    let variable = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let first = variable("SMT_PEER_REVIEW_SEED").unwrap_or(0);
    let count = variable("SMT_PEER_REVIEW_COUNT").unwrap_or(200);
    let mut report = report();
    for seed in first..first + count {
        let scenario = Scenario::of_seed(seed);
        let outcome = run(&scenario);
        if !outcome.violations.is_empty() {
            println!("{scenario:?}");
        }
        report.add(seed, outcome);
    }
    println!("{report}");
    assert_eq!(report.violations(), []);
    if count >= 200 {
        assert_eq!(report.rare(), Vec::<String>::new());
    }
}

#[test]
fn a_liar_whose_witnesses_all_lie_is_not_found() {
    let mut scenario = Scenario::of_seed(1);
    (scenario.nodes, scenario.faults) = (4, 1);
    scenario.liars = vec![(0, Attack::WrongOutput), (1, Attack::Blind), (2, Attack::Blind)];
    assert!(run(&scenario).violations.contains(&Violation::NotFound(0)));
    scenario.liars.pop();
    assert_eq!(run(&scenario).violations, []);
}

#[test]
fn one_liar_with_a_counter_that_was_rolled_back_is_found() {
    let found = (0..40).find(|seed| {
        let mut scenario = Scenario::of_seed(*seed);
        scenario.liars = vec![(0, Attack::Replay)];
        scenario.is_rolled_back = true;
        run(&scenario).violations.iter().any(|it| matches!(it, Violation::Differ(_)))
    });
    println!("{found:?}");
    assert!(found.is_some());
}
