// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt adopt call`: calls by sessions that are handed over, one session after another.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use smt::blocking::Client;
use smt::{Adopter, Fault, Phase};

use crate::failure::Failure;
use crate::handover_socket::{Ask, HandoverStream, HexId, Told};
use crate::moment::wall_time;
use crate::size::Size;
use crate::standard_error;
use crate::standard_output::standard_output;
use crate::{connect_deadline, pause, time_span};

/// Call the data process of the other host, and want the same bytes back
///
/// A call that fails is reported, and the next one is made in another session. A session that the
/// key daemon does not hand over is reported as well, and asked for again after a pause, which
/// grows from 0.1 to 5 seconds. Each reason is reported once until a call succeeds. A reason that
/// does not change by itself, such as a wrong name, ends the command.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The socket of smt keyd hand-over connect
    #[arg(long, value_name = "FILE")]
    socket: PathBuf,
    /// Number of calls that succeed
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u64,
    /// Bytes of each request
    #[arg(long, value_name = "SIZE", default_value = "64", value_parser = Size::parse_message_limit)]
    size: u32,
    /// Give a call, or an attempt to connect, up after this time
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time_span::parse_nonzero)]
    deadline: Duration,
    /// Tell on standard output how many calls have succeeded, each time so many have
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    progress: Option<u64>,
    /// End at the first failure
    #[arg(long)]
    once: bool,
}

/// Calls so often.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let body = Bytes::from(vec![b'x'; arguments.size as usize]);
    let (mut done, mut sessions) = (0, 0_u64);
    let mut trouble = Trouble::default();
    while done < arguments.count {
        let before = done;
        let ended = session(arguments).and_then(|client| {
            sessions += 1;
            calls(arguments, &client, &body, &mut done)
        });
        match ended {
            Ok(()) => {}
            Err(failure) if arguments.once || failure.is_lasting() => return Err(failure),
            Err(failure) => {
                if done > before {
                    trouble = Trouble::default();
                }
                trouble.wait_after(&failure);
            }
        }
    }
    standard_error::tell(format_args!("{done} calls in {sessions} sessions"));
    Ok(())
}

/// Failures since the last call that has succeeded.
#[derive(Default)]
struct Trouble {
    failed: u32,
    told: BTreeSet<String>,
}

impl Trouble {
    fn wait_after(&mut self, failure: &Failure) {
        let line = failure.line().into_owned();
        if self.told.insert(line.clone()) {
            standard_error::complain(format_args!("smt: {line}"));
        }
        self.failed = self.failed.saturating_add(1);
        std::thread::sleep(pause::after(self.failed));
    }
}

/// The next session.
fn session(arguments: &Arguments) -> Result<Client, Failure> {
    let adopter = Adopter::new()?;
    let stream = HandoverStream::connect(&arguments.socket)?;
    stream.write(&Ask::Session { adopter: HexId(adopter.id()) })?;
    let (value, address) = match stream.read_within(ANSWER_LIMIT)? {
        Some(Told::Session { value, address: Some(address) }) => (value.read()?, address),
        Some(Told::Session { address: None, .. }) => {
            return Err(Failure::of(Fault::Peer, "a session without an address"));
        }
        Some(Told::Refused { reason, is_lasting }) => {
            return Err(Failure::of(Fault::Environment, reason).and_lasting(is_lasting));
        }
        Some(Told::Replaced {}) => {
            let text = "the key daemon has answered a caller as one that serves";
            return Err(Failure::of(Fault::Peer, text));
        }
        None => {
            let text = "the key daemon has ended before it handed a session over";
            return Err(Failure::of(Fault::Environment, text));
        }
    };
    adopter.adopt(&value, wall_time())?;
    connect(arguments, adopter, value.peer_name(), address)
}

fn connect(
    arguments: &Arguments,
    adopter: Adopter,
    peer_name: &str,
    address: SocketAddr,
) -> Result<Client, Failure> {
    let deadline = connect_deadline::accepted(arguments.deadline);
    let client = smt::client_by_handover(adopter, peer_name).connect_deadline(deadline);
    // The next session has other keys, and may be with another process.
    client.connect_blocking(address).map_err(|error| Failure::from(error).and_lasting(false))
}

/// Calls in one session, until all are done or one fails.
fn calls(
    arguments: &Arguments,
    client: &Client,
    body: &Bytes,
    done: &mut u64,
) -> Result<(), Failure> {
    while *done < arguments.count {
        let call = client.call(body.clone()).deadline(arguments.deadline);
        let reply = call.wait().map_err(|error| {
            // A session that has ended is not connected again, and the next one may do.
            let is_lasting = error.phase() != Phase::Connect && !error.is_transient();
            Failure::from(error).and_lasting(is_lasting)
        })?;
        if reply != body {
            return Err(Failure::of(Fault::Peer, "the reply is not the request"));
        }
        *done += 1;
        if arguments.progress.is_some_and(|each| done.is_multiple_of(each)) {
            let mut output = standard_output();
            writeln!(output, "progress {done}")?;
            output.flush()?;
        }
    }
    Ok(())
}

/// The key daemon gives the other one eight seconds to connect, and as many to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
