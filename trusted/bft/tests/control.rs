// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search finds a violation when there are more liars than f, when a liar's counter is rolled
//! back, and when a check is taken out.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_bft::Rule;
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
fn is_unsafe(violation: &Violation) -> bool {
    !matches!(violation, Violation::Stuck(..))
}

/// The lie that the check is against.
fn attack_on(rule: Rule) -> Attack {
    match rule {
        Rule::Mac => Attack::Forge,
        Rule::Gap => Attack::Equivocate,
        Rule::CommitQuorum | Rule::LongestLog => Attack::Silence,
        Rule::ClientSignature => Attack::ForgedRequest,
        Rule::ExactlyOnce => Attack::Twice,
        Rule::ChangeQuorum | Rule::DistinctVotes => Attack::BadQuorum,
        Rule::Promise => Attack::BreakPromise,
        Rule::PrepareOrder => Attack::SecondPrepare,
        Rule::Leader => Attack::NotLeader,
        Rule::CheckpointQuorum | Rule::StateDigest | Rule::EnterQuorum => Attack::WrongState,
        Rule::Admission | Rule::Replaced => Attack::OldState,
    }
}

/// Where this test begins, so that it ends soon; a search from 0 finds the same.
fn first_seed(rule: Rule) -> u64 {
    match rule {
        Rule::ChangeQuorum => 110,
        Rule::CheckpointQuorum => 400,
        Rule::DistinctVotes => 230,
        Rule::LongestLog => 690,
        Rule::Promise => 160,
        _ => 0,
    }
}

#[test]
fn each_check_that_is_taken_out_is_found() {
    let only = std::env::var("SMT_BFT_RULE").ok();
    let is_asked = |it: &Rule| only.as_ref().is_none_or(|name| *name == format!("{it:?}"));
    let mut missed = Vec::new();
    // No random run has come to the schedules that two need; `schedules.rs` has them.
    let by_hand = |it: &Rule| matches!(it, Rule::Admission | Rule::Replaced);
    let searched = Rule::ALL.into_iter().filter(|it| is_asked(it) && !by_hand(it));
    for rule in searched {
        let lie = |it: &mut Scenario| {
            it.lacking = Some(rule);
            it.liars.iter_mut().for_each(|liar| liar.1 = attack_on(rule));
        };
        let first = first_seed(rule);
        let found = first_violation(first..first + 300, lie, is_unsafe);
        println!("{rule:?}: {:?}", found.as_ref().map(|it| (it.0, &it.1[0])));
        if found.is_none() {
            missed.push(rule);
        }
    }
    assert_eq!(missed, []);
}

#[test]
fn more_liars_than_f_are_found() {
    let lie = |it: &mut Scenario| {
        it.crashes.clear();
        it.liars = (0..=it.replicas / 2).map(|device| (device, Attack::WrongOutput)).collect();
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
        it.has_logs = true;
        it.sends_before_sync = true;
    };
    let found = first_violation(0..100, kill, is_unsafe);
    println!("{found:?}");
    assert!(found.is_some());
}

#[test]
fn logs_that_are_begun_anew_and_used_before_they_are_durable_are_found() {
    let kill = |it: &mut Scenario| {
        it.has_logs = true;
        it.replaces_before_sync = true;
    };
    let found = first_violation(0..100, kill, is_unsafe);
    println!("{found:?}");
    assert!(found.is_some());
}
