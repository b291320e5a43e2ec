// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search: up to f nodes and any clients lie, and no property is violated; with a check taken
//! out, or with more liars, one is.
//!
//!     SMT_CHAIN_SEED=0 SMT_CHAIN_COUNT=10000 cargo test -p smt-chain --all-features --test search
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_chain::Rule;
use smt_chain::sim::{Attack, Report, Scenario, Violation, run};

/// Runs the seeds that the environment names, 200 by default.
fn search(scenario: impl Fn(u64) -> Scenario) {
    let variable = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let first = variable("SMT_CHAIN_SEED").unwrap_or(0);
    let count = variable("SMT_CHAIN_COUNT").unwrap_or(200);
    let mut report = Report::default();
    for seed in first..first + count {
        report.add(seed, run(&scenario(seed)));
    }
    println!("{report}");
    assert_eq!(report.violations(), []);
    if count >= 200 {
        assert_eq!(report.rare(), Vec::<String>::new());
    }
}

#[test]
fn no_seed_violates_a_property() {
    search(Scenario::of_seed);
}

#[test]
fn no_seed_with_logs_and_kills_violates_a_property() {
    search(Scenario::with_logs);
}

#[test]
fn nodes_that_send_before_their_log_is_durable_are_found() {
    let found = (0..100).find(|seed| {
        let scenario = Scenario { sends_early: true, ..Scenario::with_logs(*seed) };
        let violations = run(&scenario).violations;
        violations.iter().any(|it| !matches!(it, Violation::Stuck(..) | Violation::NotFound(_)))
    });
    println!("{found:?}");
    assert!(found.is_some());
}

#[test]
fn logs_that_are_begun_anew_and_used_before_they_are_durable_are_found() {
    let found = (0..100).find(|seed| {
        let scenario = Scenario { replaces_early: true, ..Scenario::with_logs(*seed) };
        !run(&scenario).violations.is_empty()
    });
    println!("{found:?}");
    assert!(found.is_some());
}

/// The lie that a check is against.
fn attack_on(rule: Rule) -> Attack {
    match rule {
        Rule::Mac => Attack::Forge,
        Rule::Gap => Attack::Equivocate,
        Rule::ProofQuorum | Rule::LongestLog => Attack::Silence,
        Rule::Output => Attack::WrongOutput,
        Rule::Link => Attack::WrongLink,
        Rule::ClientSignature => Attack::ForgedRequest,
        Rule::ExactlyOnce => Attack::Twice,
        Rule::FreezeQuorum | Rule::DistinctFreezes => Attack::BadQuorum,
        Rule::Promise => Attack::BreakPromise,
        Rule::Head => Attack::NotHead,
    }
}

/// Whether a violation is more than that nothing goes on, or that a liar is not found. Two checks
/// are there to find liars.
fn is_against(rule: Rule, violation: &Violation) -> bool {
    match violation {
        Violation::Stuck(..) => false,
        Violation::NotFound(_) => matches!(rule, Rule::Output | Rule::Link),
        _ => true,
    }
}

/// Where this test begins, so that it ends soon; a search from 0 finds the same.
fn first_seed(rule: Rule) -> u64 {
    match rule {
        Rule::DistinctFreezes => 95,
        Rule::FreezeQuorum => 110,
        Rule::ExactlyOnce => 40,
        Rule::ProofQuorum => 105,
        Rule::Promise => 120,
        _ => 0,
    }
}

#[test]
fn each_check_that_is_taken_out_is_found() {
    let only = std::env::var("SMT_CHAIN_RULE").ok();
    let is_asked = |it: &Rule| only.as_ref().is_none_or(|name| *name == format!("{it:?}"));
    let mut missed = Vec::new();
    for rule in Rule::ALL.into_iter().filter(is_asked) {
        let first = first_seed(rule);
        let found = (first..first + 300).find_map(|seed| {
            let mut scenario = Scenario::of_seed(seed);
            scenario.lacking = Some(rule);
            scenario.liars.iter_mut().for_each(|it| it.1 = attack_on(rule));
            let found = run(&scenario).violations;
            let first = found.into_iter().find(|it| is_against(rule, it));
            first.map(|it| (seed, it))
        });
        println!("{rule:?}: {found:?}");
        if found.is_none() {
            missed.push(rule);
        }
    }
    assert_eq!(missed, []);
}

#[test]
fn more_liars_than_f_are_found() {
    let found = (0..20).any(|seed| {
        let mut scenario = Scenario::of_seed(seed);
        scenario.liars = (0..=scenario.nodes / 2).map(|it| (it, Attack::WrongReply)).collect();
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
