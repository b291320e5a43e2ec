// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-minbft`: smt-bft and minbft side by side, over the same device.

mod compare;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A reason to end, as it is shown.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// smt-bft and minbft side by side, over the same device
#[derive(Parser)]
#[command(name = "smt-minbft")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures both in one run, and prints a table in Markdown
    Compare {
        /// Requests of each measurement
        #[arg(long, default_value_t = 4000)]
        requests: u64,
        /// How often each measurement is repeated: the least processor time counts
        #[arg(long, default_value_t = 5)]
        repeat: u32,
    },
    /// Runs the device of a directory until it is killed
    Device {
        /// The directory
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Compare { requests, repeat } => compare::run(requests, repeat),
        Command::Device { directory } => smt_loopback::run_device(&directory).map_err(Into::into),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("smt-minbft: {error}");
            ExitCode::FAILURE
        }
    }
}
