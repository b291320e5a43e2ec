// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs seeds in which all liars tell one lie: `chain_lie ATTACK FIRST COUNT`, up to the first in
//! which safety is violated. With `Plan` or `PlanWithLogs` in the place of an attack liars work
//! together by plans, and all that is violated counts.

use std::process::ExitCode;

use smt_chain::sim::{Attack, Scenario, Violation, run};
use smt_replica::sim::main_of_lies;

fn main() -> ExitCode {
    main_of_lies(|lie, seed| {
        let together = |has_logs| run(&Scenario::with_plan(seed).and_logs(has_logs)).violations;
        match lie {
            "Plan" => Some(together(false)),
            "PlanWithLogs" => Some(together(true)),
            _ => alone(lie, seed),
        }
    })
}

fn alone(lie: &str, seed: u64) -> Option<Vec<Violation>> {
    let mut all = Attack::ALL.into_iter();
    let attack = all.find(|it| format!("{it:?}") == lie)?;
    let mut scenario = Scenario::of_seed(seed);
    scenario.liars.iter_mut().for_each(|it| it.1 = attack);
    let found = run(&scenario).violations.into_iter();
    Some(found.filter(Violation::is_of_safety).collect())
}
