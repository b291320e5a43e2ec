// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim run`: the case of one seed (`case_run`), or a scenario (`scenario_run`).

use clap::Args;

use super::{case_run, recording, scenario_run};
use crate::failure::Failure;

/// Run a scenario of a datacenter, or play the random case of a seed
///
/// A SCENARIO tells how fast messages are under load: a table of their slowdown by size, which is
/// their time over that of the same message alone.
///
/// Without one, --seed says which random case is played, and the findings are told; exit code 1 if
/// a checker has found something. The trace is a hash of every packet that a host has sent and of
/// its time: one seed has one trace, on any machine, as long as the code is the same.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["scenario", "seed"])))]
pub(super) struct Arguments {
    /// A name that smt sim scenarios lists, or a file
    scenario: Option<String>,
    /// The random case, as a number; in a scenario, the seed of the random numbers
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// One JSON object per line instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Only of scenarios")]
    of_scenario: scenario_run::Arguments,
    #[command(flatten, next_help_heading = "Only of random cases")]
    of_case: case_run::Arguments,
    #[command(flatten, next_help_heading = "Captures")]
    recording: recording::Arguments,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { scenario, seed, json, of_scenario, of_case, recording } = arguments;
    match scenario {
        Some(scenario) => {
            let which = scenario_run::Which { scenario, seed: *seed };
            scenario_run::run(which, of_scenario, recording, *json)
        }
        None => case_run::run(seed.unwrap_or_default(), of_case, recording, *json),
    }
}
