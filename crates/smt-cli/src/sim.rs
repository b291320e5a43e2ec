// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim`: the production code in a simulated network, where everything repeats from a seed.
//!
//! - `run` plays the case of one seed, and tells the case and the findings of the checkers; or it
//!   runs a scenario of a datacenter, and tells how fast messages were.
//! - `scenarios` lists the scenarios that come along.
//! - `share` lets SMT and TCP share links, and prints who gets what.
//! - `report` makes a page with plots from scenarios' results.
//! - `swarm` plays many seeds from several threads until a checker finds something.
//!
//! Seeds go in and verdicts come out; `smt-sim` plays the cases (docs/SIMULATOR.md).

mod case_run;
mod case_text;
mod fault_text;
mod outcome;
mod outcome_text;
mod panics;
mod played;
mod progress;
mod recording;
mod report;
mod run;
mod scenario_run;
mod scenarios;
mod seeds;
mod share;
mod status_line;
mod swarm;
mod telling;
mod totals;
mod worker_pool;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Simulate: hosts and faults in virtual time, repeatable from a seed
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Report(report::Arguments),
    Run(run::Arguments),
    Scenarios(scenarios::Arguments),
    Share(share::Arguments),
    Swarm(swarm::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Report(arguments) => report::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Scenarios(arguments) => scenarios::run(arguments),
        Command::Share(arguments) => share::run(arguments),
        Command::Swarm(arguments) => swarm::run(arguments),
    }
}

/// Version of the JSON lines: changed when a field changes its meaning or goes.
const SCHEMA: u32 = 1;
