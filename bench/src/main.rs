// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-bench`: SMT and its peers, measured in the same run (README.md).
//!
//! 1. `run` makes certificates and, if wanted, two network namespaces.
//! 2. For each case, repetition and peer in turn it starts this program twice, as `serve` and as
//!    `client`, each on a core of its own, and talks with both by their standard input and output.
//! 3. It makes medians, and writes a table, JSON and plots.

#![forbid(unsafe_code)]

mod certificates;
mod checks;
mod churn;
mod client;
mod cpu;
mod failure;
mod flood;
mod frame;
mod job;
mod load;
mod machine;
mod namespaces;
mod parts;
mod peers;
mod performance;
mod process;
mod report;
mod results;
mod rotate;
mod run;
mod scenario;
mod server;
mod shards;
mod size;
mod smt_tls;
mod stream;
mod tls;
mod traffic;

use clap::{Parser, Subcommand};

/// Measures SMT and its peers
#[derive(Parser, Debug)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Arguments>),
    Page(performance::Arguments),
    Shards(shards::Arguments),
    Stream(stream::Arguments),
    Flood(flood::Arguments),
    Churn(churn::Arguments),
    Rotate(rotate::Arguments),
    /// List the peers and their settings
    Peers,
    /// The server process of a run
    #[command(hide = true)]
    Serve {
        /// The job of the server, as JSON
        job: String,
    },
    /// The client process of a run
    #[command(hide = true)]
    Client {
        /// The job of the client, as JSON
        job: String,
    },
    /// The server process of a stream
    #[command(hide = true)]
    StreamServe {
        /// The job of both, as JSON
        job: String,
    },
    /// The client process of a stream
    #[command(hide = true)]
    StreamClient {
        /// The job of both, as JSON
        job: String,
        /// The server
        address: std::net::SocketAddr,
    },
    /// The server process of a flood
    #[command(hide = true)]
    FloodServe {
        /// The directory of certificates
        directory: String,
    },
    /// A process that keeps a network namespace until its input ends
    #[command(hide = true)]
    Hold,
}

fn main() -> std::process::ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Page(arguments) => performance::run(&arguments),
        Command::Shards(arguments) => shards::run(&arguments),
        Command::Stream(arguments) => stream::run(&arguments),
        Command::StreamServe { job } => stream::run_server(&job),
        Command::StreamClient { job, address } => stream::run_client(&job, address),
        Command::Rotate(arguments) => rotate::run(&arguments),
        Command::Churn(arguments) => churn::run(&arguments),
        Command::Flood(arguments) => flood::run(&arguments),
        Command::FloodServe { directory } => flood::run_server(&directory),
        Command::Peers => peers::list(),
        Command::Serve { job } => server::run(&job),
        Command::Client { job } => client::run(&job),
        Command::Hold => namespaces::hold(),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("smt-bench: {failure}");
            std::process::ExitCode::FAILURE
        }
    }
}
