// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs seeds in which all liars tell one lie: `lie ATTACK FIRST COUNT [logs]`, up to the first
//! in which a property is violated; with `logs` nodes have logs, and are killed.
//! Requests without an answer and liars that are not found do not count: mutants break safety.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::process::ExitCode;

use smt_transform::sim::{Attack, Scenario, Violation, run};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [attack, first, count, rest @ ..] = &words[..] else {
        eprintln!("usage: lie ATTACK FIRST COUNT [logs]");
        return ExitCode::FAILURE;
    };
    let named = Attack::ALL.into_iter().find(|it| format!("{it:?}") == *attack);
    let attack = named.expect("an attack of this name");
    let (first, count): (u64, u64) = (first.parse().unwrap(), count.parse().unwrap());
    for seed in first..first + count {
        let mut scenario = Scenario::of_seed(seed);
        if rest == ["logs"] {
            scenario = Scenario::with_logs(seed);
        }
        scenario.liars.iter_mut().for_each(|it| it.1 = attack);
        let found = run(&scenario).violations.into_iter();
        if let Some(it) =
            { found }.find(|it| !matches!(it, Violation::Stuck(..) | Violation::NotFound(_)))
        {
            println!("seed {seed}: {it:?}");
            return ExitCode::FAILURE;
        }
    }
    println!("{count} seeds, no violation");
    ExitCode::SUCCESS
}
