// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt perf loopback`: starts servers on this host, and measures against them.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum};
use serde_json::json;
use smt::Trust;

use super::api::Api;
use super::load::Transport;
use super::plan::Plan;
use super::smt_load::Smt;
use super::tls_load::Tls;
use super::{cpu, report};
use crate::failure::Failure;
use crate::own_process::OwnProcess;
use crate::scratch::{EphemeralFiles, Scratch};
use crate::sockets::SocketArguments;

/// Measure on this host: starts the server itself
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    plan: Plan,
    /// Measure this too, in turn
    #[arg(long, value_name = "TRANSPORT")]
    against: Option<Against>,
    /// Keep the client on core 0 and the server on core 1
    #[arg(long)]
    pin: bool,
    /// The server answers by this interface; by default by blocking if it is one call at a time,
    /// else by tokio
    #[arg(long, value_name = "API")]
    server_api: Option<Api>,
    /// Threads of the server
    #[arg(long, value_name = "N", default_value_t = 1)]
    server_workers: u16,
    #[command(flatten)]
    socket: SocketArguments,
}

/// The transport that SMT is compared with.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Against {
    /// TLS 1.3 over TCP by rustls: a connection for each concurrent call, and a thread or a task as
    /// SMT has it
    Tls,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.pin {
        cpu::pin(CLIENT_CORE)?;
    }
    let scratch = Scratch::new()?;
    let files = scratch.ephemeral()?;
    let server = |transport| start_two(arguments, &files, transport);
    let [alone, loaded] = server("smt")?;
    let trust = Trust::roots_from_pem_files(&[&files.authority])?;
    let builder = arguments.socket.apply(smt::client(trust)).server_name(SERVER_NAME);
    let smt = Smt::connect(builder, [alone.address(), loaded.address()], &arguments.plan)?;
    let tls = match arguments.against {
        Some(Against::Tls) => {
            let servers = server("tls")?;
            let addresses = [servers[0].address(), servers[1].address()];
            let client = Tls::new(&arguments.plan, addresses, SERVER_NAME, &files.authority)?;
            Some((client, servers))
        }
        None => None,
    };
    let mut transports: Vec<&dyn Transport> = vec![&smt];
    if let Some((client, _servers)) = &tls {
        transports.push(client);
    }
    let setting = json!({
        "server": "another process of this host, over loopback",
        "pinned": arguments.pin,
        "carrier": arguments.socket.carrier.text(),
        "segmentation_offload": !arguments.socket.no_gso,
        "server_api": arguments.server_api.map_or("as the client's", Api::name),
        "server_threads": arguments.server_workers,
    });
    report::run(&arguments.plan, &setting, &transports)
}

/// The server that is called by one caller at a time, and that which is called by many. Both
/// transports have the same interfaces.
fn start_two(
    arguments: &Arguments,
    files: &EphemeralFiles,
    transport: &str,
) -> Result<[OwnProcess; 2], Failure> {
    let server = |concurrency| {
        let api = arguments.server_api.unwrap_or_else(|| Api::suited_to(concurrency));
        let mut words = server_arguments(arguments, files, api);
        if transport == "tls" {
            words.push("--tls".into());
        }
        OwnProcess::start(words)
    };
    Ok([server(1)?, server(2)?])
}

fn server_arguments(arguments: &Arguments, files: &EphemeralFiles, api: Api) -> Vec<OsString> {
    let path = |path: &Path| path.as_os_str().to_owned();
    let mut words: Vec<OsString> =
        ["perf", "server", "127.0.0.1:0", "--until-input-ends"].map(OsString::from).into();
    words.extend(["--cert".into(), path(&files.server.cert)]);
    words.extend(["--key".into(), path(&files.server.key)]);
    if arguments.pin {
        words.extend(["--core".into(), SERVER_CORE.to_string().into()]);
    }
    let spin = format!("{}ns", arguments.plan.spin.as_nanos());
    words.extend(["--api", api.name(), "--spin", &spin, "--workers"].map(OsString::from));
    words.push(arguments.server_workers.to_string().into());
    let socket = arguments.socket.to_arguments();
    words.extend(socket.into_iter().map(OsString::from));
    words
}

/// The server name in the ephemeral certificate.
const SERVER_NAME: &str = "localhost";
const CLIENT_CORE: usize = 0;
const SERVER_CORE: usize = 1;
