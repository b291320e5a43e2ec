// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt`: keys, servers, calls, measurements and captures of the secure message transport.
//!
//! 1. The arguments are parsed (`arguments`); a mistake in them ends with exit code 2, and so does
//!    what this build lacks a feature for (`absent`).
//! 2. The subcommand runs, each in its own file: data goes to standard output, talk to standard
//!    error.
//! 3. A failure is one line on standard error, and an exit code that tells what has become of the
//!    request (`exit_code`).

#![forbid(unsafe_code)]

mod absent;
#[cfg(all(target_os = "linux", feature = "esp"))]
mod adopt;
mod arguments;
mod call;
#[cfg(feature = "man")]
mod completions;
mod connect_deadline;
mod credentials;
mod demo;
mod doctor;
#[cfg(feature = "dump")]
mod dump;
#[cfg(all(target_os = "linux", feature = "esp"))]
mod esp;
mod exit_code;
mod failure;
mod file_range;
mod fingerprint;
#[cfg(all(target_os = "linux", feature = "esp"))]
mod handover_socket;
#[cfg(any(feature = "dns", feature = "esp"))]
mod host_and_port;
mod interrupt;
#[cfg(all(target_os = "linux", feature = "esp"))]
mod keyd;
mod keys;
mod log;
mod machine;
#[cfg(feature = "man")]
mod man;
mod moment;
#[cfg(all(target_os = "linux", feature = "nic"))]
mod nic;
mod own_process;
mod pause;
#[cfg(feature = "perf")]
mod perf;
mod private_key;
#[cfg(feature = "dns")]
mod resolver;
mod scratch;
mod serve;
#[cfg(feature = "sim")]
mod sim;
mod size;
mod sockets;
mod standard_error;
mod standard_output;
#[cfg(feature = "dns")]
mod ticket;
mod time_span;
mod usage;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use failure::Failure;

/// Runs the command by the arguments of this process.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => match absent::failure(&error) {
            Some(failure) => return failure.report(),
            None => return usage::answer(error),
        },
    };
    let begun = arguments.log.install();
    match begun.and_then(|()| run(arguments.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        #[cfg(all(target_os = "linux", feature = "esp"))]
        Command::Adopt(arguments) => adopt::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        #[cfg(feature = "man")]
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        #[cfg(feature = "dump")]
        Command::Dump(arguments) => dump::run(&arguments),
        #[cfg(all(target_os = "linux", feature = "esp"))]
        Command::Esp(arguments) => esp::run(&arguments),
        #[cfg(all(target_os = "linux", feature = "esp"))]
        Command::Keyd(arguments) => keyd::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        #[cfg(feature = "man")]
        Command::Man(arguments) => man::run(&arguments),
        #[cfg(feature = "perf")]
        Command::Perf(arguments) => perf::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        #[cfg(feature = "sim")]
        Command::Sim(arguments) => sim::run(&arguments),
        #[cfg(feature = "dns")]
        Command::Ticket(arguments) => ticket::run(&arguments),
    }
}
