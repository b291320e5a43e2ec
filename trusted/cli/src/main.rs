// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command `smt-trusted`.
#![forbid(unsafe_code)]

mod a2m;
mod bft;
mod bootstrap;
mod certification;
mod chain;
mod command_error;
mod device;
mod event_log;
mod keys;
mod operation;
mod own_device;
mod peer_review;
mod search;
mod service;
mod tail;
mod transform;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use smt_trusted_process::{LogArguments, failure};

use crate::a2m::A2mCommand;
use crate::bft::BftCommand;
use crate::bootstrap::{ManufacturerCommand, VendorCommand};
use crate::chain::ChainCommand;
use crate::device::DeviceCommand;
use crate::peer_review::PeerReviewCommand;
use crate::transform::TransformCommand;

/// Trusted messages: logs and systems of which nobody can tell two stories
#[derive(Parser)]
#[command(name = "smt-trusted", version)]
struct Arguments {
    #[command(flatten)]
    log: LogArguments,
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
    /// Chain replication with proofs of execution
    #[command(subcommand)]
    Chain(ChainCommand),
    /// A device that is a process of its own
    #[command(subcommand)]
    Device(DeviceCommand),
    /// The maker of devices
    #[command(subcommand)]
    Manufacturer(ManufacturerCommand),
    /// Accountability: nodes whose witnesses find their faults
    #[command(subcommand)]
    PeerReview(PeerReviewCommand),
    /// Crash-tolerant protocols of users, made Byzantine-tolerant
    #[command(subcommand)]
    Transform(TransformCommand),
    /// The owner of groups, who gives devices their secrets
    #[command(subcommand)]
    Vendor(VendorCommand),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(error) = arguments.log.install() {
        return failure("smt-trusted", &error, None);
    }
    let result = match arguments.command {
        Command::A2m(command) => command.run(),
        Command::Bft(command) => command.run(),
        Command::Chain(command) => command.run(),
        Command::Device(command) => command.run(),
        Command::Manufacturer(command) => command.run(),
        Command::PeerReview(command) => command.run(),
        Command::Transform(command) => command.run(),
        Command::Vendor(command) => command.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure("smt-trusted", &error, error.cause()),
    }
}
