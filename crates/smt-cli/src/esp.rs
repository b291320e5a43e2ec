// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt esp`: packets of this host's TCP and UDP in ESP, by a TUN device.
//!
//! 1. `up` reads a configuration, opens the tunnel and works until it is interrupted (`up`).
//! 2. The others ask a tunnel that is up, on its control socket (`ask`).

mod ask;
mod up;

use clap::{Args, Subcommand};

use crate::failure::Failure;
pub(crate) use ask::TunnelArguments;

/// Protect this host's packets by ESP (RFC 4303), through a TUN device
///
/// ESP encrypts what TCP and UDP carry below their sockets: no application changes. A tunnel takes
/// super-packets from the host, cuts them, seals the segments and sends them by one system call;
/// what it gets it opens and coalesces. Two ends have the same associations, each in the other
/// direction. It takes the rights CAP_NET_ADMIN, and CAP_NET_RAW for ESP that is not in UDP.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(ask::AddArguments),
    Remove(ask::RemoveArguments),
    Status(ask::StatusArguments),
    Up(up::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Add(arguments) => ask::add(arguments),
        Command::Remove(arguments) => ask::remove(arguments),
        Command::Status(arguments) => ask::status(arguments),
        Command::Up(arguments) => up::run(arguments),
    }
}
