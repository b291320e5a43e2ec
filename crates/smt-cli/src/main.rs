// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt`: keys, servers, calls, measurements and captures of the secure message transport.
//!
//! 1. The arguments are parsed (`arguments`); a mistake in them ends with exit code 2.
//! 2. The subcommand runs, each in its own file: data goes to standard output, talk to standard
//!    error.
//! 3. A failure is one line on standard error and exit code 1.

#![forbid(unsafe_code)]

mod arguments;
mod call;
mod completions;
mod credentials;
mod demo;
mod doctor;
mod dump;
mod failure;
mod interrupt;
mod keys;
mod machine;
mod man;
mod own_process;
mod perf;
mod scratch;
mod serve;
mod sim;
mod size;
mod sockets;
mod standard_error;
mod time_span;
mod verbosity;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    verbosity::install(arguments.verbose, arguments.quiet);
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Call(arguments) => call::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        Command::Perf(arguments) => perf::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
    }
}
