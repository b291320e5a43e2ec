// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt perf client`: measures against an `smt perf server`, on this host or another.

use clap::Args;
use serde_json::json;

use super::load::Transport;
use super::plan::Plan;
use super::smt_load::Smt;
use super::tls_load::Tls;
use super::{cpu, report};
use crate::credentials::ClientCredentials;
use crate::failure::Failure;
use crate::sockets::SocketArguments;

/// Measure against a server
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The server's address; the default port is 17379
    address: String,
    #[command(flatten)]
    credentials: ClientCredentials,
    /// Measure in turn against this server too, which is an `smt perf server --tls`
    #[arg(long, value_name = "ADDRESS", requires = "ca", conflicts_with = "pin")]
    against_tls: Option<String>,
    #[command(flatten)]
    plan: Plan,
    /// Stay on this core
    #[arg(long, value_name = "CORE")]
    core: Option<usize>,
    #[command(flatten)]
    socket: SocketArguments,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(core) = arguments.core {
        cpu::pin(core)?;
    }
    let builder = arguments.socket.apply(arguments.credentials.builder()?);
    let smt = Smt::connect(builder, [arguments.address.as_str(); 2], &arguments.plan)?;
    let tls = arguments
        .against_tls
        .as_ref()
        .map(|address| Tls::connect(&arguments.plan, &arguments.credentials, address))
        .transpose()?;
    let mut transports: Vec<&dyn Transport> = vec![&smt];
    if let Some(tls) = &tls {
        transports.push(tls);
    }
    let setting = json!({
        "server": arguments.address,
        "client_core": arguments.core,
        "carrier": arguments.socket.carrier.text(),
        "segmentation_offload": !arguments.socket.no_gso,
    });
    report::run(&arguments.plan, &setting, &transports)
}
