// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt call`: sends one message, and writes the reply.
//!
//! 1. The message is read whole.
//! 2. It is sent, once or `--count` times, one after the other; replies go to the output as they
//!    come. A signal meanwhile cancels it at the server (`cancellation`).
//! 3. With `--count` or -v the latency is told on standard error.

mod cancellation;
mod output;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use smt::blocking::Client;
use smt::{Builder, KeyLogFile};

use crate::credentials::ClientCredentials;
use crate::failure::{Doing, Failure};
use crate::size::Size;
use crate::sockets::SocketArguments;
use crate::standard_error;
use crate::time_span;
use cancellation::Cancellation;

/// Call a server: send a request, and write the reply
///
/// Ctrl-C, SIGTERM and SIGHUP cancel the request: the server learns that no caller waits for the
/// reply, the last line on standard error says whether it may have run, and the exit code is 128
/// and the signal's number. A second one ends the process at once. A file of --out that is there
/// stays as it is until there is a reply and room for all of it.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The server's address; the default port is 17379
    address: String,
    #[command(flatten)]
    credentials: ClientCredentials,
    /// The request; - is standard input
    #[arg(long = "in", value_name = "FILE", default_value = "-")]
    input: PathBuf,
    /// Where the reply goes; - is standard output
    #[arg(long = "out", value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Give up after this time, connecting included
    #[arg(long, value_name = "TIME", value_parser = time_span::parse_nonzero)]
    deadline: Option<Duration>,
    /// Send a message that has no reply, and wait until the server has accepted it
    #[arg(long)]
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
    socket: SocketArguments,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let builder = builder(arguments)?;
    let message = read(&arguments.input)?;
    // Before anything is sent: a call whose reply cannot be written should not be made.
    let cancellation = Cancellation::on_signals()?;
    let mut output = cancellation.open(&arguments.output)?;
    let began = Instant::now();
    let client = builder.connect_blocking(&arguments.address)?;
    cancellation.of(&client);
    tracing::info!(local = %client.local_address(), "connected in {}", time_span::display(began.elapsed()));
    let time_left = |began: Instant| {
        arguments
            .deadline
            .map(|deadline| deadline.saturating_sub(began.elapsed()))
    };
    let mut times = Vec::new();
    let mut first = Some(began);
    for _ in 0..arguments.count {
        let began = Instant::now();
        let deadline = time_left(first.take().unwrap_or(began));
        if arguments.one_way {
            cancellation.during(|| send(&client, message.clone(), deadline))?;
        } else {
            let reply = cancellation.during(|| call(&client, message.clone(), deadline))?;
            output.write(&reply)?;
        }
        times.push(began.elapsed());
    }
    tell(&mut times, arguments.count > 1);
    Ok(())
}

fn builder(arguments: &Arguments) -> Result<Builder, Failure> {
    let builder = arguments.socket.apply(Builder::new());
    let mut builder = arguments
        .credentials
        .apply(builder)?
        .message_limit(arguments.message_limit);
    if let Some(deadline) = arguments.deadline {
        builder = builder.connect_deadline(deadline);
    }
    if let Some(path) = &arguments.key_log {
        let log = KeyLogFile::append(path).doing(format!("opening {}", path.display()))?;
        builder = builder.key_log(Arc::new(log));
    }
    Ok(builder)
}

fn call(client: &Client, message: Bytes, deadline: Option<Duration>) -> Result<Bytes, smt::Error> {
    let call = client.call(message);
    match deadline {
        Some(deadline) => call.deadline(deadline).wait(),
        None => call.wait(),
    }
}

fn send(client: &Client, message: Bytes, deadline: Option<Duration>) -> Result<(), smt::Error> {
    let send = client.send(message);
    match deadline {
        Some(deadline) => send.deadline(deadline).wait(),
        None => send.wait(),
    }
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
    input
        .take(most + 1)
        .read_to_end(&mut bytes)
        .doing(format!("reading {shown}"))?;
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
