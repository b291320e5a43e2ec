// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt adopt`: data processes whose sessions `smt keyd hand-over` agrees on (SPEC §7.5). They have
//! no certificates and no keys.

mod call;
mod serve;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Serve and call by sessions that smt keyd hand-over agrees on
///
/// The process has no certificate and no key of its own: it gets each session at the socket of its
/// host's key daemon, and may go on when that has ended.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Call(call::Arguments),
    Serve(serve::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Call(arguments) => call::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
    }
}
