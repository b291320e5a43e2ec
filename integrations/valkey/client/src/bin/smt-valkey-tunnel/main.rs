// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-valkey-tunnel`: a local port whose connections are sessions of SMT with a Valkey server,
//! for clients that know TCP or Unix sockets alone. A replica is one of them.
//!
//! Flow: 1. a client connects  2. a session is opened for it  3. bytes go both ways until the
//! server ends the connection. A client without a session is told so by an error reply.

mod listener;
mod relay;

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use smt_valkey::{Credentials, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use listener::{Listener, Local};
use relay::{Cut, relay};

#[derive(Debug, Parser)]
#[command(
    version,
    about = "A local port whose connections are sessions of SMT with a Valkey server",
    disable_help_flag = true
)]
struct Arguments {
    /// Where clients connect: HOST:PORT of the loopback, or unix:PATH.
    #[arg(long)]
    listen: String,
    /// Lets --listen be an address that other hosts reach. They act by the certificate given here.
    #[arg(long)]
    public: bool,
    /// Host of the server.
    #[arg(short = 'h', long = "host", default_value = "127.0.0.1")]
    host: String,
    /// Port of the server.
    #[arg(short, long, default_value_t = 6380)]
    port: u16,
    #[command(flatten)]
    credentials: Credentials,
    /// Clients at once. Further ones are refused.
    #[arg(long, default_value_t = 1_000)]
    connections: usize,
    /// Seconds for which the server may be silent while it is asked, before it is taken for dead.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..))]
    silence: u64,
    /// Prints this help.
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome =
        runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(serve(&arguments)));
    match outcome {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("smt-valkey-tunnel: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The server behind the tunnel.
struct Server {
    options: Options,
    host: String,
    port: u16,
}

async fn serve(arguments: &Arguments) -> Result<std::convert::Infallible, Box<dyn Error>> {
    let silence = Duration::from_secs(arguments.silence);
    let server = Arc::new(Server {
        options: arguments.credentials.options()?.silence_max(silence),
        host: arguments.host.clone(),
        port: arguments.port,
    });
    let listener = Listener::open(&arguments.listen, arguments.public).await;
    let listener = listener.map_err(|error| format!("listen {}: {error}", arguments.listen))?;
    eprintln!("smt-valkey-tunnel: listens at {}", listener.place()?);
    let room = Arc::new(Semaphore::new(arguments.connections));
    loop {
        let (local, name) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("smt-valkey-tunnel: environment: no client can be accepted: {error}");
                // Descriptors are short, as a rule; they come back when clients go.
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let (server, place) = (Arc::clone(&server), Arc::clone(&room).try_acquire_owned());
        let count = arguments.connections;
        tokio::spawn(async move {
            let outcome = match &place {
                Ok(_) => serve_client(local, &server).await,
                Err(_) => refuse(local, format!("limit: {count} clients are here already")).await,
            };
            if let Err(text) = outcome {
                eprintln!("smt-valkey-tunnel: client {name}: {text}");
            }
        });
    }
}

async fn serve_client(mut local: Box<dyn Local>, server: &Server) -> Result<(), String> {
    let Server { host, port, .. } = server;
    let address = (host.as_str(), *port);
    let remote = match server.options.stream(address).await {
        Ok(remote) => remote,
        Err(error) => {
            let text = format!("connect: no session with {host}:{port}: {error}");
            return refuse(local, text).await;
        }
    };
    relay(&mut local, remote).await.map_err(|cut| {
        local.cut();
        match cut {
            Cut::Local(error) => format!("relay: the client's connection is cut: {error}"),
            Cut::Remote(error) => format!("relay: the session with {host}:{port} is cut: {error}"),
        }
    })
}

/// Answers the first command by an error, and ends the connection.
async fn refuse(mut local: Box<dyn Local>, text: String) -> Result<(), String> {
    let line = text.replace(['\r', '\n'], " ");
    let told = async {
        let reply = format!("-ERR smt-valkey-tunnel: {line}\r\n");
        local.write_all(reply.as_bytes()).await?;
        local.shutdown().await?;
        // A close with unread bytes would cut the reply off.
        let mut unread = [0; 4_096];
        let mut left = REFUSED_BYTES;
        while left > 0 {
            match local.read(&mut unread).await? {
                0 => break,
                length => left = left.saturating_sub(length),
            }
        }
        Ok::<_, io::Error>(())
    };
    let _ = tokio::time::timeout(REFUSED_TIME, told).await;
    Err(text)
}

const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// A refused client has this time, and so many bytes, to read its error.
const REFUSED_TIME: Duration = Duration::from_secs(2);
const REFUSED_BYTES: usize = 64 << 10;
