// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search: up to f nodes lie, and no property is violated; with more liars one is.
//!
//!     SMT_PEER_REVIEW_COUNT=10000 cargo test -p smt-peer-review --all-features --test search
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_peer_review::sim::{Attack, Report, Scenario, Violation, report, run};

fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |it| it.parse().unwrap())
}

fn count() -> u64 {
    variable("SMT_PEER_REVIEW_COUNT", 200)
}

/// Searches seeds, and calls what happens too seldom among `many` of them or more a failure too.
fn search(
    mut report: Report<Violation>,
    (count, many): (u64, u64),
    scenario: impl Fn(u64) -> Scenario,
) {
    let first = variable("SMT_PEER_REVIEW_SEED", 0);
    for seed in first..first + count {
        let scenario = scenario(seed);
        let outcome = run(&scenario);
        if !outcome.violations.is_empty() {
            println!("{scenario:?}");
        }
        report.add(seed, outcome);
    }
    println!("{report}");
    assert_eq!(report.violations(), []);
    if count >= many {
        assert_eq!(report.rare(), Vec::<String>::new());
    }
}

#[test]
fn no_seed_violates_a_property() {
    search(report(false, false), (count(), 200), Scenario::of_seed);
}

/// Up to f liars follow a plan of several steps together. Without journals, then with them.
#[test]
fn liars_who_work_together_violate_nothing() {
    search(report(false, true), (count() * 3 / 2, 300), Scenario::with_plan);
    search(report(true, true), (count() / 4, 300), |it| Scenario::with_plan(it).and_logs(true));
}

/// A child that lies gave its receipts late and one by one, or nothing until its parent forgot what
/// came next: the parent was suspected at times, or for good.
#[test]
fn a_child_that_lies_brings_its_correct_parent_under_no_suspicion() {
    for (seed, has_logs) in [(39, false), (1035, false), (1045, false), (1251, false), (3130, true)]
    {
        let outcome = run(&Scenario::with_plan(seed).and_logs(has_logs));
        assert_eq!(outcome.violations, [], "seed {seed}");
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
