// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim`: the production code in a simulated network, where everything repeats from a seed.
//!
//! - `run` plays the case of one seed, and tells what it was and what the checkers found.
//! - `swarm` plays many seeds from several threads until a checker finds something.
//!
//! Seeds go in and verdicts come out; what happens between is `smt-sim`'s (docs/SIMULATOR.md).

mod case_text;
mod crew;
mod fault_text;
mod panics;
mod played;
mod progress;
mod run;
mod seeds;
mod swarm;
mod totals;

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
    Run(run::Arguments),
    Swarm(swarm::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Swarm(arguments) => swarm::run(arguments),
    }
}

/// Version of the JSON lines: changed when a field changes its meaning or goes.
const SCHEMA: u32 = 1;
