// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt serve`: a server that echoes, hands out files, or runs a command.
//!
//! 1. The endpoint is opened; the first line on standard output says where it listens.
//! 2. Threads take requests and hand them to the [`Handler`].
//! 3. Ctrl-C, SIGTERM or SIGHUP: new requests are refused, those in progress are finished, and a
//!    summary goes to standard error. A second one ends all at once.

mod command;
mod directory;
mod handler;
mod program;
mod tally;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use smt::blocking::Server;
use smt::{Builder, KeyLogFile, Request, Shards};
use smt_wire::Shard;

use crate::credentials::ServerCredentials;
use crate::failure::{Doing, Failure};
use crate::interrupt::Interrupt;
use crate::own_process::LISTENING;
use crate::size::Size;
use crate::sockets::SocketArguments;
use crate::standard_error;
use crate::time_span;
use command::Limits;
use handler::{Handler, HandlerArguments};
use tally::Tally;

/// Serve requests: echo them, hand out files, or run a command for each
///
/// On Ctrl-C, SIGTERM and SIGHUP new requests are refused, those in progress get 10 seconds to be
/// answered, and the server ends with exit code 0; under nohup SIGHUP is ignored. Nothing is
/// reloaded: new certificates need a new start. A second signal kills the commands of --exec and
/// closes all sessions at once; the exit code is then 128 and the signal's number.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The address to listen on; port 0 lets the system choose
    #[arg(default_value = "0.0.0.0:17379")]
    address: String,
    #[command(flatten)]
    credentials: ServerCredentials,
    #[command(flatten)]
    handler: HandlerArguments,
    /// Let everybody in, without a certificate: with --exec this or --client-ca has to be said
    #[arg(long, conflicts_with = "client_ca")]
    anyone: bool,
    /// Kill a command of --exec that runs for longer, and all that it has started; its caller
    /// learns that it may have run
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time_span::parse_nonzero, requires = "exec")]
    exec_timeout: Duration,
    /// Keep a boot number here, so that clients notice a restart at once
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Append the secrets of all sessions to this file: its readers can read the sessions
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
    /// The largest request accepted
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = Size::parse_message_limit)]
    message_limit: u32,
    /// Number of endpoints behind one address, a power of two; they share no lock, so that as many
    /// cores work at once
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = shards)]
    shards: u16,
    /// Threads that work on requests, for each shard; by default one for --echo, else one per core
    /// over all shards
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// End when standard input ends, as with Ctrl-C
    #[arg(long)]
    until_input_ends: bool,
    #[command(flatten)]
    socket: SocketArguments,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.check_access()?;
    let limits = Limits {
        reply: arguments.message_limit,
        time: arguments.exec_timeout,
    };
    let handler = Handler::new(&arguments.handler, limits)?;
    let shards = open(arguments)?;
    let closing: Vec<Server> = shards.iter().cloned().collect();
    let interrupt = Interrupt::with_last_act(move || {
        command::kill_all();
        // Callers learn at once.
        closing
            .iter()
            .for_each(|shard| shard.shutdown(Duration::ZERO));
    })?;
    let interrupt = if arguments.until_input_ends {
        interrupt.or_end_of_input()
    } else {
        interrupt
    };
    let began = Instant::now();
    let mut output = std::io::stdout().lock();
    // The process that started this one may read no more than this line, but the line must arrive.
    let listening = writeln!(output, "{LISTENING}{}", shards[0].local_address());
    listening
        .and_then(|()| output.flush())
        .doing("telling the address on standard output")?;
    drop(output);

    let tallies: Vec<Tally> = shards.iter().map(|_| Tally::default()).collect();
    let is_over = AtomicBool::new(false);
    let workers = arguments
        .workers
        .map_or_else(|| handler.workers().div_ceil(shards.len()), usize::from);
    std::thread::scope(|scope| {
        for (shard, tally) in shards.iter().zip(&tallies) {
            for _ in 0..workers {
                scope.spawn(|| work(shard, &handler, tally, &is_over));
            }
        }
        interrupt.wait();
        shards.shutdown(GRACE);
        // Handlers that still run now have no caller left to hear from them.
        is_over.store(true, Ordering::Relaxed);
    });
    interrupt.give_way();
    let statistics: Vec<_> = shards.iter().map(Server::statistics).collect();
    tracing::debug!(?statistics, "final counts");
    standard_error::tell(tally::summary(&tallies, began.elapsed(), &statistics));
    Ok(())
}

impl Arguments {
    /// A command is not run for every client unless an option says so.
    fn check_access(&self) -> Result<(), Failure> {
        let is_said = self.anyone || self.credentials.has_client_authority();
        if !self.handler.runs_a_command() || is_said {
            return Ok(());
        }
        Err(Failure::usage(
            "--exec runs a command for each request: give --client-ca FILE to let only clients in that this authority has signed, or --anyone to let everybody in",
        ))
    }
}

fn open(arguments: &Arguments) -> Result<Shards<Server>, Failure> {
    let builder = arguments.socket.apply(Builder::new());
    let mut builder = arguments
        .credentials
        .apply(builder)?
        .message_limit(arguments.message_limit);
    if let Some(path) = &arguments.state {
        builder = builder.state_file(path);
    }
    if let Some(path) = &arguments.key_log {
        let log = KeyLogFile::append(path).doing(format!("opening {}", path.display()))?;
        builder = builder.key_log(Arc::new(log));
    }
    Ok(builder.bind_shards_blocking(&arguments.address, arguments.shards)?)
}

/// Takes requests until the server is shut down.
fn work(server: &Server, handler: &Handler, tally: &Tally, is_over: &AtomicBool) {
    while let Some(request) = server.accept() {
        let is_useless = || request.is_cancelled() || is_over.load(Ordering::Relaxed);
        match handler.handle(request.body(), &is_useless) {
            Ok(body) => answer(request, body, tally),
            Err(dropped) => {
                let why = dropped.failure.text();
                tracing::warn!(peer = %request.peer().address, "request dropped: {why}");
                tally.drop(request.body().len());
                if !dropped.has_run {
                    request.refuse();
                }
            }
        }
    }
}

fn answer(request: Request, body: Bytes, tally: &Tally) {
    let (length, peer) = (request.body().len(), request.peer().address);
    if request.is_one_way() {
        tally.one_way(length);
        return;
    }
    let reply = body.len();
    match request.reply(body) {
        Ok(()) => tally.reply(length, reply),
        Err(error) => {
            tracing::warn!(%peer, "reply not sent: {error}");
            tally.drop(length);
        }
    }
}

/// A number of shards (SPEC §6.6).
fn shards(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|number| Shard::is_count(*number));
    number.ok_or_else(|| format!("give a power of two, at most {}", Shard::COUNT_MAX))
}

/// Time that requests in progress get when the server is told to end.
const GRACE: Duration = Duration::from_secs(10);
