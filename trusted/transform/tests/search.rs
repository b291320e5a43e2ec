// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search: up to f nodes and any clients lie, and no property is violated; with a check taken
//! out one is.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_transform::Rule;
use smt_transform::sim::{Attack, Report, Scenario, Violation, run};

#[test]
fn no_seed_violates_a_property() {
    let variable = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let first = variable("SMT_TRANSFORM_SEED").unwrap_or(0);
    let count = variable("SMT_TRANSFORM_COUNT").unwrap_or(100);
    let mut report = Report::default();
    for seed in first..first + count {
        report.add(seed, run(&Scenario::of_seed(seed)));
    }
    println!("{report}");
    assert_eq!(report.violations(), []);
    if count >= 400 {
        assert_eq!(report.rare(), Vec::<String>::new());
    }
}

/// The first violation of so many runs in which all nodes and clients lack a check, and liars
/// tell the lie that it is against.
fn violation_without(rule: Rule, attack: Attack) -> Option<(u64, Violation)> {
    let found = (0..40).find_map(|seed| {
        let mut scenario = Scenario::of_seed(seed);
        scenario.lacking = Some(rule);
        scenario.liars.iter_mut().for_each(|it| it.1 = attack);
        let found = run(&scenario).violations;
        let first = found.into_iter().find(|it| !matches!(it, Violation::Stuck(..)));
        first.map(|it| (seed, it))
    });
    println!("{rule:?}: {found:?}");
    found
}

#[test]
fn a_missing_check_of_macs_is_found() {
    assert!(violation_without(Rule::Mac, Attack::Forge).is_some());
}

#[test]
fn a_missing_check_of_gaps_is_found() {
    assert!(violation_without(Rule::Gap, Attack::Equivocate).is_some());
}

#[test]
fn a_missing_check_of_effects_is_found() {
    assert!(violation_without(Rule::Effects, Attack::WrongEffects).is_some());
}

#[test]
fn a_missing_check_of_requests_signatures_is_found() {
    assert!(violation_without(Rule::RequestSignature, Attack::ForgedRequest).is_some());
}

#[test]
fn a_missing_check_of_endorsements_signatures_is_found() {
    assert!(violation_without(Rule::EndorsementSignature, Attack::ForgedEndorsement).is_some());
}

#[test]
fn a_missing_quorum_of_endorsements_is_found() {
    assert!(violation_without(Rule::EndorsementQuorum, Attack::WrongEndorsement).is_some());
}

#[test]
fn more_liars_than_f_are_found() {
    let found = (0..20).any(|seed| {
        let mut scenario = Scenario::of_seed(seed);
        scenario.stops.clear();
        scenario.liars =
            (0..=scenario.nodes / 2).map(|it| (it, Attack::WrongEndorsement)).collect();
        run(&scenario).violations.iter().any(|it| matches!(it, Violation::WrongAnswer(..)))
    });
    assert!(found);
}
