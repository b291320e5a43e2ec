// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt perf server`: replies with what it gets, and tells its CPU time when asked.

use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use smt::{Builder, TlsServer};
use tokio::runtime::{self, Runtime};

use super::api::Api;
use super::{caller, cpu, tls_server};
use crate::credentials::ServerCredentials;
use crate::failure::{Doing, Failure};
use crate::interrupt::Interrupt;
use crate::own_process::LISTENING;
use crate::sockets::SocketArguments;
use crate::standard_output::standard_output;
use crate::time_span;

/// The server of a measurement
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The address to listen on; port 0 lets the system choose
    #[arg(default_value = "0.0.0.0:17379")]
    address: String,
    #[command(flatten)]
    credentials: ServerCredentials,
    /// Serve TLS over TCP instead, to compare
    #[arg(long)]
    tls: bool,
    /// Answer by this interface
    #[arg(long, value_name = "API", default_value = "blocking")]
    api: Api,
    /// Threads that answer; blocking TLS has one for each connection
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: u16,
    /// Time for which waiting threads look before they sleep; 0us never
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = time_span::parse)]
    spin: Duration,
    /// Stay on this core
    #[arg(long, value_name = "CORE")]
    core: Option<usize>,
    /// End when standard input ends, as with Ctrl-C
    #[arg(long)]
    until_input_ends: bool,
    #[command(flatten)]
    socket: SocketArguments,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(core) = arguments.core {
        cpu::pin(core)?;
    }
    let interrupt = Interrupt::on_signals()?;
    let interrupt =
        if arguments.until_input_ends { interrupt.or_end_of_input() } else { interrupt };
    if arguments.tls {
        let (credentials, address) = (&arguments.credentials, &arguments.address);
        return match arguments.api {
            Api::Blocking => tls_server::run(credentials, address, &interrupt),
            Api::Tokio => tls_server::run_tasks(
                credentials,
                address,
                &multi_thread(arguments.workers)?,
                &interrupt,
            ),
        };
    }
    let builder = arguments.socket.apply(arguments.credentials.builder()?);
    let builder = builder.spin(arguments.spin);
    match arguments.api {
        Api::Blocking => serve_blocking(builder, arguments, &interrupt),
        Api::Tokio => serve_tokio(builder, arguments, &interrupt),
    }
}

fn serve_blocking(
    builder: Builder<TlsServer>,
    arguments: &Arguments,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let server = builder.bind_blocking(&arguments.address)?;
    listening(server.local_address())?;
    std::thread::scope(|scope| {
        for _ in 0..arguments.workers {
            scope.spawn(|| {
                while let Some(request) = server.accept_request() {
                    let reply = reply_to(request.body());
                    if let Err(error) = request.reply(reply) {
                        tracing::debug!("not replied: {error}");
                    }
                }
            });
        }
        interrupt.wait();
        server.close(GRACE);
    });
    Ok(())
}

fn serve_tokio(
    builder: Builder<TlsServer>,
    arguments: &Arguments,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let runtime = multi_thread(arguments.workers)?;
    let server = runtime.block_on(builder.bind(&arguments.address))?;
    listening(server.local_address())?;
    let acceptor = server.clone();
    runtime.spawn(async move {
        while let Some(request) = acceptor.accept_request().await {
            let reply = reply_to(request.body());
            if let Err(error) = request.reply(reply) {
                tracing::debug!("not replied: {error}");
            }
        }
    });
    interrupt.wait();
    runtime.block_on(server.close(GRACE));
    Ok(())
}

fn multi_thread(workers: u16) -> Result<Runtime, Failure> {
    runtime::Builder::new_multi_thread()
        .worker_threads(usize::from(workers))
        .enable_all()
        .build()
        .doing("starting tokio")
}

fn reply_to(request: &Bytes) -> Bytes {
    caller::answer(request).map_or_else(|| request.clone(), Bytes::from)
}

/// The first line of standard output.
pub(super) fn listening(address: std::net::SocketAddr) -> Result<(), Failure> {
    let mut output = standard_output();
    writeln!(output, "{LISTENING}{address}")?;
    Ok(output.flush()?)
}

/// Nothing is in progress when a measurement is over.
const GRACE: Duration = Duration::from_millis(500);
