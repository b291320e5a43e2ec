// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs seeds in which all liars tell one lie: `bft_lie ATTACK FIRST COUNT`, up to the first in
//! which a property is violated. A request that stays without an answer is no violation then. With
//! `Plan` or `PlanWithLogs` in the place of an attack liars work together by plans, and a request
//! without an answer is a violation too.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::process::ExitCode;

use smt_bft::sim::{Attack, Scenario, Violation, run};

/// The scenarios of a word, and whether a request without an answer violates a property of them.
fn scenarios(word: &str) -> Option<(Box<dyn Fn(u64) -> Scenario>, bool)> {
    if let "Plan" | "PlanWithLogs" = word {
        let has_logs = word == "PlanWithLogs";
        let of_seed = move |seed| Scenario { has_logs, ..Scenario::with_plan(seed) };
        return Some((Box::new(of_seed), true));
    }
    let attack = Attack::ALL.into_iter().find(|it| format!("{it:?}") == word)?;
    let of_seed = move |seed| {
        let mut scenario = Scenario::of_seed(seed);
        scenario.liars.iter_mut().for_each(|it| it.1 = attack);
        scenario
    };
    Some((Box::new(of_seed), false))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [word, first, count] = &words[..] else {
        eprintln!("usage: bft_lie ATTACK FIRST COUNT");
        return ExitCode::FAILURE;
    };
    let (of_seed, is_stuck_counted) = scenarios(word).expect("an attack of this name, or a plan");
    let (first, count): (u64, u64) = (first.parse().unwrap(), count.parse().unwrap());
    for seed in first..first + count {
        let found = run(&of_seed(seed)).violations.into_iter();
        let counts = |it: &Violation| is_stuck_counted || !matches!(it, Violation::Stuck(..));
        if let Some(it) = { found }.find(counts) {
            println!("seed {seed}: {it:?}");
            return ExitCode::FAILURE;
        }
    }
    println!("{count} seeds, no violation");
    ExitCode::SUCCESS
}
