// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt call`: sends one message, and writes the reply.
//!
//! 1. The message is read whole.
//! 2. It is sent, once or `--count` times, one after the other, and again if it has failed and may
//!    be repeated (`attempts`). A signal meanwhile cancels it at the server (`cancellation`).
//! 3. A server of files refuses one that is too large: it is fetched in ranges (`range_fetch`).
//! 4. Replies go to standard output as they come, and to a file once all are there (`output`).
//! 5. With `--tickets` the server's ticket is looked up before it connects (`tickets`).
//! 6. With `--count` or -v the latency is told on standard error.

mod attempts;
mod caller;
mod cancellation;
mod output;
mod range_fetch;
mod terminal;
#[cfg_attr(not(feature = "dns"), path = "call/no_tickets.rs")]
mod tickets;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use smt::{Builder, KeyLogFile, Metadata, TlsClient};

use crate::credentials::ClientCredentials;
use crate::exit_code;
use crate::failure::{Doing, Failure};
use crate::size::Size;
use crate::sockets::SocketArguments;
use crate::standard_error;
use crate::time_span;
use crate::usage;
use attempts::Retry;
use caller::{Caller, Reply};
use cancellation::Cancellation;
use tickets::TicketArguments;

/// Call a server: send a request, and write the reply
///
/// Ctrl-C, SIGTERM and SIGHUP cancel the request: the server learns that no caller waits for the
/// reply, the last line on standard error says whether it may have run, and the exit code is 128
/// and the signal's number. A second one ends the process at once. The file of --out is written
/// whole or not at all: what was there stays until all replies are on disk beside it. A file of
/// smt serve --dir that is too large for a message is fetched in ranges, several at a time, and
/// must not change meanwhile; on standard output its ranges appear as they come.
#[derive(Args, Debug)]
#[command(after_help = exit_code::HELP)]
pub(crate) struct Arguments {
    /// The server's address; the default port is 17379
    address: String,
    #[command(flatten)]
    credentials: ClientCredentials,
    /// The request; - is standard input
    #[arg(long = "in", value_name = "FILE", default_value = "-")]
    input: PathBuf,
    /// Where the reply goes; - is standard output. On a terminal bytes that it would act on are
    /// shown escaped
    #[arg(long = "out", value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Give up after this time, connecting and repetitions included
    #[arg(long, value_name = "TIME", value_parser = time_span::parse_nonzero)]
    deadline: Option<Duration>,
    /// Repeat a request that has failed and did not run, so often or for so long, if it may succeed
    /// later; the pause grows from 0.1 to 5 seconds, and -v tells of each attempt
    #[arg(long, value_name = "N|TIME", value_parser = Retry::parse)]
    retry: Option<Retry>,
    /// With --retry, repeat a request also if it may have run: running it twice does no harm
    #[arg(long, requires = "retry")]
    idempotent: bool,
    /// Send this named value beside the request; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = named_value)]
    metadata: Vec<(String, String)>,
    /// Send a message that has no reply, and wait until the server has accepted it
    #[arg(long, conflicts_with = "output")]
    one_way: bool,
    /// Number of calls
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// The largest reply accepted
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = Size::parse_message_limit)]
    message_limit: u32,
    /// Append the session's secrets to this file: its readers can read the session
    #[arg(long, value_name = "FILE")]
    key_log: Option<PathBuf>,
    #[command(flatten)]
    tickets: TicketArguments,
    #[command(flatten)]
    socket: SocketArguments,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let cancellation = Cancellation::on_signals(arguments.one_way)?;
    let builder = builder(arguments)?;
    let message = read(&arguments.input)?;
    // Before anything is sent: a call whose reply cannot be written should not be made.
    let mut output = cancellation.open(&arguments.output)?;
    let mut caller = Caller::new(arguments, builder, &cancellation)?;
    let tickets = arguments.tickets.look_up(&arguments.address, &arguments.credentials);
    caller.use_tickets(tickets?);
    let mut times = Vec::new();
    for _ in 0..arguments.count {
        let began = Instant::now();
        match caller.request(&message)? {
            Reply::None => {}
            Reply::Whole(reply) => output.write(&reply)?,
            Reply::InRanges => caller.fetch(&message, began, &mut output)?,
        }
        times.push(began.elapsed());
    }
    if !arguments.one_way {
        output.finish()?;
    }
    tell(&mut times, arguments.count > 1);
    Ok(())
}

/// Understands a named value; a value parser for clap.
fn named_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give NAME=VALUE")?;
    // The name is looked at now, and not when it is sent.
    let checked = Metadata::new().push(name, value.as_bytes());
    checked.map_err(usage::without_fault)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn builder(arguments: &Arguments) -> Result<Builder<TlsClient>, Failure> {
    let builder = arguments.socket.apply(arguments.credentials.builder()?);
    let mut builder = builder.message_limit(arguments.message_limit);
    if let Some(path) = &arguments.key_log {
        let log = KeyLogFile::append(path).doing(format!("opening {}", path.display()))?;
        builder = builder.key_log(Arc::new(log));
    }
    Ok(builder)
}

fn tell(times: &mut [Duration], is_wanted: bool) {
    times.sort_unstable();
    let Some(median) = times.get(times.len() / 2) else {
        return;
    };
    let line = format!(
        "{} round trips: median {}, slowest {}",
        times.len(),
        time_span::display(*median),
        time_span::display(times[times.len() - 1]),
    );
    if is_wanted {
        standard_error::tell(line);
    } else {
        tracing::info!("{line}");
    }
}

fn read(path: &Path) -> Result<Bytes, Failure> {
    if is_standard(path) {
        return read_message(io::stdin().lock(), "standard input");
    }
    let shown = path.display().to_string();
    let file = File::open(path).doing(format!("reading {shown}"))?;
    read_message(file, &shown)
}

/// Reads all of it, up to the longest message: a device may never end.
fn read_message(input: impl Read, shown: &str) -> Result<Bytes, Failure> {
    let mut bytes = Vec::new();
    let most = u64::from(Size::MESSAGE_MAX);
    input.take(most + 1).read_to_end(&mut bytes).doing(format!("reading {shown}"))?;
    if bytes.len() as u64 > most {
        return Err(Failure::new(format!(
            "{shown} has more than {most} bytes, and no message has"
        )));
    }
    Ok(bytes.into())
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}
