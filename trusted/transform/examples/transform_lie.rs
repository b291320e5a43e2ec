// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs seeds in which all liars tell one lie: `transform_lie ATTACK FIRST COUNT`, up to the first
//! in which safety is violated. With `Logs` after the attack's name nodes have logs and are killed.
//! With `Plan` or `PlanWithLogs` in the place of an attack liars work together by plans, and all
//! that is violated counts.

use std::process::ExitCode;

use smt_replica::sim::main_of_lies;
use smt_transform::sim::{Attack, Scenario, Violation, run};

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
    let (name, mut scenario) = match lie.strip_suffix("Logs") {
        Some(name) => (name, Scenario::with_logs(seed)),
        None => (lie, Scenario::of_seed(seed)),
    };
    let attack = Attack::ALL.into_iter().find(|it| format!("{it:?}") == name)?;
    scenario.liars.iter_mut().for_each(|it| it.1 = attack);
    let found = run(&scenario).violations.into_iter();
    Some(found.filter(Violation::is_of_safety).collect())
}
