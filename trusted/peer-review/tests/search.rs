// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search: up to f nodes lie, and no property is violated; with a check taken out, or with more
//! liars, one is.
//!
//!     SMT_PEER_REVIEW_COUNT=10000 cargo test -p smt-peer-review --all-features --test search
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use smt_peer_review::Rule;
use smt_peer_review::sim::{Attack, Report, Scenario, Violation, run};

#[test]
fn no_seed_violates_a_property() {
    let variable = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let first = variable("SMT_PEER_REVIEW_SEED").unwrap_or(0);
    let count = variable("SMT_PEER_REVIEW_COUNT").unwrap_or(200);
    let mut report = Report::default();
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

/// The lie that a check is against.
fn attack_on(rule: Rule) -> Attack {
    match rule {
        Rule::Signature => Attack::Forge,
        Rule::Outputs => Attack::WrongOutput,
        Rule::Order => Attack::Twice,
        Rule::Checkpoint => Attack::WrongCheckpoint,
        Rule::Schedule => Attack::NoCheckpoint,
        Rule::Chain => Attack::Rewrite,
        Rule::Nonce => Attack::Stale,
        Rule::Receipt => Attack::FalseReceipt,
        Rule::Complaint => Attack::Hide,
        Rule::Forwarding => Attack::Selfish,
        Rule::Evidence | Rule::Challenge => Attack::FalseAccuser,
        // Not searched for: `src/schedules/delivery.rs` has the schedule by hand.
        Rule::Due => Attack::Frame,
        Rule::Asked => Attack::Defer,
        Rule::Logged => Attack::HideLater,
        Rule::Delivery => Attack::TellOwn,
        Rule::AuditRate => Attack::Flood,
    }
}

/// Whether a violation is the one that a check prevents.
fn is_against(rule: Rule, violation: &Violation) -> bool {
    match rule {
        Rule::Signature => matches!(violation, Violation::Invented(..)),
        Rule::Evidence => matches!(violation, Violation::Slandered(_)),
        // Its witnesses deliver for a sender that tells nobody, and the receiver's hear of it then.
        Rule::Complaint | Rule::Challenge | Rule::Due => {
            matches!(violation, Violation::Suspected(..))
        }
        Rule::Delivery => matches!(violation, Violation::Stuck(..)),
        Rule::AuditRate => matches!(violation, Violation::Flooded(_)),
        _ => matches!(violation, Violation::NotFound(_)),
    }
}

#[test]
fn each_check_that_is_taken_out_is_found() {
    let only = std::env::var("SMT_PEER_REVIEW_RULE").ok();
    let is_searched = |it: &Rule| *it != Rule::Due;
    let is_asked = |it: &Rule| only.as_ref().is_none_or(|name| *name == format!("{it:?}"));
    let mut missed = Vec::new();
    for rule in Rule::ALL.into_iter().filter(is_searched).filter(is_asked) {
        let found = (0..40).find_map(|seed| {
            let mut scenario = Scenario::of_seed(seed).with_liar(attack_on(rule));
            assert_eq!(run(&scenario).violations, [], "with all checks: {scenario:?}");
            scenario.lacking = Some(rule);
            let violations = run(&scenario).violations;
            let first = violations.into_iter().find(|it| is_against(rule, it));
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
