// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt`: keys, servers, calls, measurements and captures of the secure message transport.
//!
//! 1. The arguments are parsed (`arguments`); a mistake in them ends with exit code 2.
//! 2. The subcommand runs, each in its own file: data goes to standard output, talk to standard
//!    error.
//! 3. A failure is one line on standard error, and an exit code that tells what has become of the
//!    request (`exit_code`).

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod adopt;
mod arguments;
mod call;
mod completions;
mod credentials;
mod demo;
mod doctor;
mod dump;
#[cfg(target_os = "linux")]
mod esp;
mod exit_code;
mod failure;
mod file_range;
mod fingerprint;
#[cfg(target_os = "linux")]
mod handover_socket;
mod interrupt;
#[cfg(target_os = "linux")]
mod keyd;
mod keys;
mod log;
mod machine;
mod man;
mod moment;
#[cfg(target_os = "linux")]
mod nic;
mod own_process;
mod perf;
mod private_key;
mod resolver;
mod scratch;
mod serve;
mod sim;
mod size;
mod sockets;
mod standard_error;
mod ticket;
mod time_span;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use failure::Failure;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let begun = arguments.log.install();
    match begun.and_then(|()| run(arguments.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        #[cfg(target_os = "linux")]
        Command::Adopt(arguments) => adopt::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Esp(arguments) => esp::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Keyd(arguments) => keyd::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        Command::Perf(arguments) => perf::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Ticket(arguments) => ticket::run(&arguments),
    }
}
