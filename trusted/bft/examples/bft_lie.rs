// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs seeds in which all liars tell one lie: `bft_lie ATTACK FIRST COUNT`, up to the first in
//! which a property is violated. A request that stays without an answer is no violation then. With
//! `Plan` or `PlanWithLogs` in the place of an attack liars work together by plans, and a request
//! without an answer is a violation too.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::process::ExitCode;

use smt_bft::sim::{Attack, Scenario, Violation, run};

/// The scenarios of a word on the command line.
enum Liars {
    /// Each with this lie.
    Alone(Attack),
    /// Together by a plan, also among replicas with logs.
    Together { has_logs: bool },
}

impl Liars {
    fn of(word: &str) -> Option<Self> {
        match word {
            "Plan" => Some(Self::Together { has_logs: false }),
            "PlanWithLogs" => Some(Self::Together { has_logs: true }),
            _ => {
                let mut all = Attack::ALL.into_iter();
                all.find(|it| format!("{it:?}") == word).map(Self::Alone)
            }
        }
    }

    fn scenario(&self, seed: u64) -> Scenario {
        match self {
            Self::Alone(attack) => {
                let mut scenario = Scenario::of_seed(seed);
                scenario.liars.iter_mut().for_each(|it| it.1 = *attack);
                scenario
            }
            Self::Together { has_logs } => {
                let mut scenario = Scenario::with_plan(seed);
                scenario.has_logs = *has_logs;
                scenario
            }
        }
    }

    fn is_violated_by(&self, violation: &Violation) -> bool {
        matches!(self, Self::Together { .. }) || !matches!(violation, Violation::Stuck(..))
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [word, first, count] = &words[..] else {
        eprintln!("usage: bft_lie ATTACK FIRST COUNT");
        return ExitCode::FAILURE;
    };
    let liars = Liars::of(word).expect("an attack of this name, or a plan");
    let (first, count): (u64, u64) = (first.parse().unwrap(), count.parse().unwrap());
    for seed in first..first + count {
        let mut found = run(&liars.scenario(seed)).violations.into_iter();
        if let Some(it) = found.find(|it| liars.is_violated_by(it)) {
            println!("seed {seed}: {it:?}");
            return ExitCode::FAILURE;
        }
    }
    println!("{count} seeds, no violation");
    ExitCode::SUCCESS
}
