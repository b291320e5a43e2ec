// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keyd hand-over`: handshakes for data processes that have no credentials (SPEC §7.5).
//!
//! 1. The data process of the listening host says where it serves, that of the connecting host
//!    asks for a session, each at the socket of its own key daemon.
//! 2. The two daemons have a session by certificates, and agree on terms (`terms`).
//! 3. The serving process gets its value first, and then the one that asked.
//!
//! The daemons keep nothing of what they hand over: their end changes no session.

mod connect;
mod listen;
mod terms;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Hand sessions over to data processes: smt adopt, or programs with the library
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Connect(connect::Arguments),
    Listen(listen::Arguments),
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Connect(arguments) => connect::run(arguments),
        Command::Listen(arguments) => listen::run(arguments),
    }
}
