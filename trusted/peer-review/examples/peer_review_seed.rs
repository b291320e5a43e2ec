// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The scenario and the outcome of one seed.

use std::process::ExitCode;

use smt_peer_review::sim::{Scenario, run};

fn main() -> ExitCode {
    let Some(Ok(seed)) = std::env::args().nth(1).map(|it| it.parse::<u64>()) else {
        eprintln!("usage: peer_review_seed NUMBER [plan] [logs]");
        return ExitCode::FAILURE;
    };
    let has = |word: &str| std::env::args().skip(2).any(|it| it == word);
    let scenario = match has("plan") {
        true => Scenario::with_plan(seed),
        false => Scenario::of_seed(seed),
    };
    let scenario = scenario.and_logs(has("logs"));
    let outcome = run(&scenario);
    println!("{scenario:#?}\n{outcome:#?}");
    if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
