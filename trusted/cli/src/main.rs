// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command `smt-trusted`.
#![forbid(unsafe_code)]

mod a2m;
mod bft;
mod keys;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::a2m::A2mCommand;
use crate::bft::BftCommand;

/// Trusted messages: logs and systems of which nobody can tell two stories
#[derive(Parser)]
#[command(name = "smt-trusted", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Attested append-only memory in a directory
    #[command(subcommand)]
    A2m(A2mCommand),
    /// Byzantine-tolerant replication
    #[command(subcommand)]
    Bft(BftCommand),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::A2m(command) => command.run(),
        Command::Bft(command) => command.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("smt-trusted: {error}");
            let mut cause = error.cause();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}
