// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command `smt-trusted`.
#![forbid(unsafe_code)]

mod a2m;
mod bft;
mod bootstrap;
mod caller;
mod chain;
mod device;
mod keys;
mod log;
mod metrics_file;
mod new_group;
mod new_log;
mod operation;
mod own_device;
mod peer_review;
mod process;
mod search;
mod source;
mod state;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::a2m::A2mCommand;
use crate::bft::BftCommand;
use crate::bootstrap::{ManufacturerCommand, VendorCommand};
use crate::chain::ChainCommand;
use crate::device::DeviceCommand;
use crate::log::LogArguments;
use crate::peer_review::PeerReviewCommand;

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
    /// The owner of groups, who gives devices their secrets
    #[command(subcommand)]
    Vendor(VendorCommand),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(error) = arguments.log.install() {
        eprintln!("smt-trusted: {error}");
        return ExitCode::FAILURE;
    }
    let result = match arguments.command {
        Command::A2m(command) => command.run(),
        Command::Bft(command) => command.run(),
        Command::Chain(command) => command.run(),
        Command::Device(command) => command.run(),
        Command::Manufacturer(command) => command.run(),
        Command::PeerReview(command) => command.run(),
        Command::Vendor(command) => command.run(),
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
