// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search: up to f replicas and any clients lie, and no property is violated.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_bft::sim::{Report, Scenario, Violation, report, run};

/// Searches seeds, and calls what happens too seldom among many of them a failure too.
fn search(mut report: Report<Violation>, count: u64, scenario: impl Fn(u64) -> Scenario) {
    let first = std::env::var("SMT_BFT_SEED").map_or(0, |it| it.parse().unwrap());
    for seed in first..first + count {
        report.add(seed, run(&scenario(seed)));
    }
    println!("{report}");
    assert_eq!(report.violations(), []);
    if count >= 400 {
        assert_eq!(report.rare(), Vec::<String>::new());
    }
}

fn count() -> u64 {
    std::env::var("SMT_BFT_COUNT").map_or(400, |it| it.parse().unwrap())
}

#[test]
fn no_seed_violates_a_property() {
    search(report(false, false), count(), Scenario::of_seed);
}

/// Up to f liars follow a plan of several steps together. Without logs, then with them.
#[test]
fn liars_who_work_together_violate_nothing_and_all_others_catch_up() {
    search(report(false, true), count(), Scenario::with_plan);
    search(report(true, true), count() / 4, |it| Scenario::with_plan(it).and_logs(true));
}

/// A device that restarted wanted hundreds of views. Replicas forgot its earlier VIEW-CHANGEs at
/// different times, and one took a correct leader, whose NEW-VIEW referred to one, for faulty.
#[test]
fn a_leader_is_judged_alike_however_many_views_a_voter_has_wanted_since() {
    for seed in [20_082, 20_689, 21_133] {
        let outcome = run(&Scenario::of_seed(seed));
        assert_eq!(outcome.violations, [], "seed {seed}");
    }
}

/// A liar that wanted all views ahead of time was one of the first f + 1 in each, so that views
/// were opened again and again without the newcomer that all others had voted for.
#[test]
fn newcomers_are_admitted_though_a_liar_wants_every_view_ahead_of_time() {
    for seed in [5_424, 6_522, 7_809, 8_490] {
        let outcome = run(&Scenario::of_seed(seed));
        assert_eq!(outcome.violations, [], "seed {seed}");
    }
}

/// A device that had restarted had no vote for another one. Its replica asked for it again after
/// each commit of that, and its log grew for ever.
#[test]
fn a_replica_whose_device_has_no_vote_asks_for_it_no_more_than_once() {
    let outcome = run(&Scenario::with_logs(623));
    assert_eq!(outcome.violations, []);
}

#[test]
fn replicas_with_logs_that_are_killed_lose_nothing() {
    search(report(true, false), count(), Scenario::with_logs);
}

/// An idle replica asked its device for votes in each tick, which its log does not have. After a
/// kill, the log had answers that no input asked for.
#[test]
fn a_replica_with_a_device_asks_it_again_for_no_vote_in_ticks_that_are_not_logged() {
    assert_eq!(run(&Scenario::with_logs(880_000_000_025)).violations, []);
}
