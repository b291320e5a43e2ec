// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt perf`: how fast calls are, alone and under load.
//!
//! - `server` replies with what it gets, and tells how much CPU it has used when asked.
//! - `client` measures against such a server, also on another host.
//! - `handshake` measures the first reply of a new session, by each kind of handshake.
//! - `loopback` starts the server itself, and with `--against tls` measures TLS over TCP in the
//!   same run, by the same model: threads against threads, tasks against tasks.
//!
//! Loops are closed: each of the concurrent callers begins its next call when it has its reply.

mod api;
mod caller;
mod client;
mod cpu;
mod handshake;
mod load;
mod loopback;
mod measurement;
mod plan;
mod report;
mod server;
mod smt_load;
mod task_load;
mod tls;
mod tls_load;
mod tls_server;
mod tls_tasks;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::standard_error;

/// Measure: latency, calls per second, throughput and CPU per call
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Client(client::Arguments),
    Handshake(handshake::Arguments),
    Loopback(loopback::Arguments),
    Server(server::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if crate::machine::is_debug() {
        standard_error::tell(
            "smt: this is a debug build: its numbers mean nothing; build with --release",
        );
    }
    match &arguments.command {
        Command::Client(arguments) => client::run(arguments),
        Command::Handshake(arguments) => handshake::run(arguments),
        Command::Loopback(arguments) => loopback::run(arguments),
        Command::Server(arguments) => server::run(arguments),
    }
}
