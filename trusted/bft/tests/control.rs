// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search finds a violation when there are more liars than f, when a liar's counter is rolled
//! back, and when replicas use a log before it is durable.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_bft::sim::{Attack, Scenario, Violation, run};

/// The first seed that violates a property, in scenarios that `change` has changed.
fn first_violation(
    seeds: std::ops::Range<u64>,
    change: impl Fn(&mut Scenario),
    is_it: impl Fn(&Violation) -> bool,
) -> Option<(u64, Vec<Violation>)> {
    { seeds }.find_map(|seed| {
        let mut scenario = Scenario::of_seed(seed);
        change(&mut scenario);
        let found: Vec<_> = run(&scenario).violations.into_iter().filter(&is_it).collect();
        (!found.is_empty()).then_some((seed, found))
    })
}

/// Whether a violation is more than that nothing goes on.
#[test]
fn more_liars_than_f_are_found() {
    let lie = |it: &mut Scenario| {
        it.crashes.clear();
        it.liars =
            (0..=it.conditions.nodes / 2).map(|device| (device, Attack::WrongOutput)).collect();
    };
    let found = first_violation(0..10, lie, |it| matches!(it, Violation::WrongAnswer(..)));
    assert!(found.is_some());
}

#[test]
fn one_liar_with_a_counter_that_was_rolled_back_is_found() {
    let roll_back = |it: &mut Scenario| {
        it.crashes.clear();
        it.liars = vec![(0, Attack::WrongOutput)];
        it.is_rolled_back = true;
    };
    let found = first_violation(0..200, roll_back, |it| matches!(it, Violation::Differ(_)));
    println!("{found:?}");
    assert!(found.is_some());
}

#[test]
fn replicas_that_send_before_their_log_is_durable_are_found() {
    let kill = |it: &mut Scenario| {
        it.conditions.has_logs = true;
        it.conditions.sends_before_sync = true;
    };
    let found = first_violation(0..100, kill, Violation::is_of_safety);
    println!("{found:?}");
    assert!(found.is_some());
}

#[test]
fn logs_that_are_begun_anew_and_used_before_they_are_durable_are_found() {
    let kill = |it: &mut Scenario| {
        it.conditions.has_logs = true;
        it.conditions.replaces_before_sync = true;
    };
    let found = first_violation(0..100, kill, Violation::is_of_safety);
    println!("{found:?}");
    assert!(found.is_some());
}
