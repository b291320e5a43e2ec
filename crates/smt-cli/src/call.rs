// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt call`: sends one message, and writes the reply.
//!
//! 1. The message is read whole.
//! 2. It is sent, once or `--count` times, one after the other; replies go to the output as they come.
//! 3. With `--count` or -v the latency is told on standard error.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
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

/// Call a server: send a request, and write the reply
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
    /// Do it so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// The largest reply accepted
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = Size::parse_message_limit)]
    message_limit: u32,
    /// Append the session's secrets to this file: whoever reads it reads the session
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
    let mut output = Output::open(&arguments.output)?;
    let began = Instant::now();
    let client = builder.connect_blocking(&arguments.address)?;
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
            send(&client, message.clone(), deadline)?;
        } else {
            let reply = call(&client, message.clone(), deadline)?;
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

/// All of it, unless no message can be so long: a device may never end.
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

/// Where replies go.
enum Output {
    File(ReplyFile),
    Standard,
}

/// A file for replies. One that exists keeps what it has until there is a reply; one that does not is there only if
/// there was one.
struct ReplyFile {
    path: PathBuf,
    file: File,
    is_new: bool,
    is_begun: bool,
}

impl Output {
    fn open(path: &Path) -> Result<Self, Failure> {
        if is_standard(path) {
            return Ok(Self::Standard);
        }
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(path);
        Ok(Self::File(ReplyFile {
            path: path.to_owned(),
            file: file.doing(format!("writing {}", path.display()))?,
            is_new,
            is_begun: false,
        }))
    }

    fn write(&mut self, reply: &[u8]) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.write(reply).doing(format!(
                "the request has run, but writing its reply to {} failed",
                file.path.display()
            )),
            Self::Standard => {
                let mut output = io::stdout().lock();
                output.write_all(reply)?;
                Ok(output.flush()?)
            }
        }
    }
}

impl ReplyFile {
    fn write(&mut self, reply: &[u8]) -> io::Result<()> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        // A pipe or device has no length to set.
        if is_first && self.file.metadata().is_ok_and(|facts| facts.is_file()) {
            self.file.set_len(0)?;
        }
        self.file.write_all(reply)
    }
}

impl Drop for ReplyFile {
    fn drop(&mut self) {
        if self.is_new && !self.is_begun {
            // Empty, it would look like an empty reply. It may be somebody else's meanwhile: then it stays.
            let is_empty = self.file.metadata().is_ok_and(|facts| facts.len() == 0);
            let _ = is_empty.then(|| std::fs::remove_file(&self.path));
        }
    }
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}
