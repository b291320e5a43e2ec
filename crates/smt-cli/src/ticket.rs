// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt ticket`: what a ticket says, and whether a client would take it.
//!
//! 1. The ticket comes from a file, from standard input, or from DNS (`source`).
//! 2. `show` tells what it says (`show`). Nothing is believed for that.
//! 3. `verify` judges it as a client does.

mod show;
mod source;

use std::io::Write;

use clap::{Args, Subcommand};
use smt::TicketVerifier;
use smt_dns::wall_now;

use crate::credentials::Anchors;
use crate::failure::Failure;
use crate::standard_output::standard_output;
use source::Source;

/// Tell what a server's ticket says, and whether a client would take it
///
/// A ticket is a key share of a server, signed by its certificate and good for an hour at most:
/// clients that have it begin sessions faster. There is no command that issues one: the private key
/// behind a ticket never leaves the process that answers to it, since no other process can know
/// what was answered already. A server issues, publishes and renews its own while it serves: smt
/// serve --tickets-dns-update, or --tickets-zone-file. smt call --tickets uses them.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(show::Arguments),
    Verify(VerifyArguments),
}

/// Judge a ticket as a client does: its certificate, its names, its signature and its time
///
/// The exit code is 0 if a client would take it, and 1 if not.
#[derive(Args, Debug)]
struct VerifyArguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    anchors: Anchors,
    /// The server's name; by default that of --dns, or the ticket's first
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Show(arguments) => show::run(arguments),
        Command::Verify(arguments) => verify(arguments),
    }
}

fn verify(arguments: &VerifyArguments) -> Result<(), Failure> {
    let verifier = TicketVerifier::new(arguments.anchors.trust()?)?;
    let found = arguments.source.read()?;
    let ticket = &found.ticket;
    let first = ticket.names().next().map(str::to_owned);
    let name = arguments.name.clone().or_else(|| found.server.clone()).or(first);
    let name = name.ok_or_else(|| Failure::usage("the ticket has no name: give --name"))?;
    let chain = found.chain.as_deref().ok_or_else(|| {
        Failure::new("the ticket came without its certificates: give them by --chain FILE")
    })?;
    let verified = verifier.verify(ticket.as_bytes(), chain, &name, wall_now());
    verified.map_err(|failure| Failure::new(failure.to_string()))?;
    writeln!(standard_output(), "a client would take it for {name}")?;
    Ok(())
}
