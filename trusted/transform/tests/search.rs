// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search: up to f nodes and any clients lie, and no property is violated; with more liars
//! one is.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_transform::sim::{Attack, Report, Scenario, Violation, report, run};

/// Seeds from `SMT_TRANSFORM_SEED` on, `SMT_TRANSFORM_COUNT` of them or the number given.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let variable = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let first = variable("SMT_TRANSFORM_SEED").unwrap_or(0);
    first..first + variable("SMT_TRANSFORM_COUNT").unwrap_or(count)
}

/// Runs all scenarios.
fn search(mut report: Report<Violation>, scenarios: impl ExactSizeIterator<Item = Scenario>) {
    let count = scenarios.len();
    for scenario in scenarios {
        report.add(scenario.conditions.seed, run(&scenario));
    }
    println!("{report}");
    assert_eq!(report.violations(), []);
    if count >= 400 {
        assert_eq!(report.rare(), Vec::<String>::new());
    }
}

#[test]
fn no_seed_violates_a_property() {
    let seeds: Vec<u64> = seeds(100).collect();
    search(report(false, false), seeds.into_iter().map(Scenario::of_seed));
}

#[test]
fn no_seed_violates_a_property_when_nodes_with_logs_are_killed() {
    let seeds: Vec<u64> = seeds(100).collect();
    search(report(true, false), seeds.into_iter().map(Scenario::with_logs));
}

/// Up to f liars follow a plan of several steps together. Without logs, then with them.
#[test]
fn liars_who_work_together_violate_nothing_and_all_others_catch_up() {
    for has_logs in [false, true] {
        let seeds: Vec<u64> = seeds(50).collect();
        let scenario = |seed| Scenario::with_plan(seed).and_logs(has_logs);
        search(report(has_logs, true), seeds.into_iter().map(scenario));
    }
}

#[test]
fn nodes_that_send_before_their_inputs_are_durable_are_found() {
    let found = (0..40).find_map(|seed| {
        let mut scenario = Scenario::with_logs(seed);
        scenario.conditions.sends_before_sync = true;
        let found = run(&scenario).violations;
        found.into_iter().find(|it| matches!(it, Violation::Slandered(_)))
    });
    println!("{found:?}");
    assert!(found.is_some());
}

#[test]
fn more_liars_than_f_are_found() {
    let found = (0..20).any(|seed| {
        let mut scenario = Scenario::of_seed(seed);
        scenario.stops.clear();
        let nodes = scenario.conditions.nodes;
        scenario.liars = (0..=nodes / 2).map(|it| (it, Attack::WrongEndorsement)).collect();
        run(&scenario).violations.iter().any(|it| matches!(it, Violation::WrongAnswer(..)))
    });
    assert!(found);
}
