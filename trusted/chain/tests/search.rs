// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search: up to f nodes and any clients lie, and no property is violated; with more liars
//! one is.
//!
//!     SMT_CHAIN_SEED=0 SMT_CHAIN_COUNT=10000 cargo test -p smt-chain --all-features --test search
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_chain::sim::{Attack, Report, Scenario, Violation, report, run};

fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |it| it.parse().unwrap())
}

fn count() -> u64 {
    variable("SMT_CHAIN_COUNT", 200)
}

fn search(mut report: Report<Violation>, count: u64, scenario: impl Fn(u64) -> Scenario) {
    let first = variable("SMT_CHAIN_SEED", 0);
    for seed in first..first + count {
        report.add(seed, run(&scenario(seed)));
    }
    println!("{report}");
    assert_eq!(report.violations(), []);
    if count >= 100 {
        assert_eq!(report.rare(), Vec::<String>::new());
    }
}

#[test]
fn no_seed_violates_a_property() {
    search(report(false, false), count(), Scenario::of_seed);
}

#[test]
fn no_seed_with_logs_and_kills_violates_a_property() {
    search(report(true, false), count(), Scenario::with_logs);
}

/// Up to f liars follow a plan of several steps together. Without logs, then with them.
#[test]
fn liars_who_work_together_violate_nothing_and_all_others_catch_up() {
    search(report(false, true), count() / 2, Scenario::with_plan);
    search(report(true, true), count() / 8, |it| Scenario::with_plan(it).and_logs(true));
}

#[test]
fn nodes_that_send_before_their_log_is_durable_are_found() {
    let found = (0..100).find(|seed| {
        let mut scenario = Scenario::with_logs(*seed);
        scenario.conditions.sends_before_sync = true;
        run(&scenario).violations.iter().any(Violation::is_of_safety)
    });
    println!("{found:?}");
    assert!(found.is_some());
}

#[test]
fn logs_that_are_begun_anew_and_used_before_they_are_durable_are_found() {
    let found = (0..100).find(|seed| {
        let mut scenario = Scenario::with_logs(*seed);
        scenario.conditions.replaces_before_sync = true;
        !run(&scenario).violations.is_empty()
    });
    println!("{found:?}");
    assert!(found.is_some());
}

#[test]
fn more_liars_than_f_are_found() {
    let found = (0..20).any(|seed| {
        let mut scenario = Scenario::of_seed(seed);
        let nodes = scenario.conditions.nodes;
        scenario.liars = (0..=nodes / 2).map(|it| (it, Attack::WrongReply)).collect();
        run(&scenario).violations.iter().any(|it| matches!(it, Violation::WrongAnswer(..)))
    });
    assert!(found);
}

#[test]
fn one_liar_with_a_counter_that_was_rolled_back_is_found() {
    let found = (0..200).find(|seed| {
        let mut scenario = Scenario::of_seed(*seed);
        scenario.liars = vec![(0, Attack::WrongReply)];
        scenario.is_rolled_back = true;
        run(&scenario).violations.iter().any(|it| matches!(it, Violation::Differ(_)))
    });
    println!("{found:?}");
    assert!(found.is_some());
}
