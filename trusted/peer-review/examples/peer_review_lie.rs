// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs seeds with one liar who tells one lie: `lie ATTACK COUNT VIOLATION`, up to the first with
//! a violation of this name, such as `NotFound`. Mutants may violate other properties as well.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::process::ExitCode;

use smt_peer_review::sim::{Attack, Scenario, run};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [attack, count, violation] = &words[..] else {
        eprintln!("usage: lie ATTACK COUNT VIOLATION");
        return ExitCode::FAILURE;
    };
    let named = Attack::ALL.into_iter().find(|it| format!("{it:?}") == *attack);
    let attack = named.expect("an attack of this name");
    for seed in 0..count.parse().unwrap() {
        let scenario = Scenario::of_seed(seed).with_liar(attack);
        let found = run(&scenario).violations.into_iter();
        if let Some(it) = { found }.find(|it| format!("{it:?}").starts_with(violation)) {
            println!("seed {seed}: {it:?}");
            return ExitCode::FAILURE;
        }
    }
    println!("{count} seeds, no {violation}");
    ExitCode::SUCCESS
}
