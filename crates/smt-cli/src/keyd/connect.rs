// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keyd connect`: the end that asks for keys, and sees that there are some.

use std::time::{Duration, Instant};

use clap::Args;
use smt::blocking::Client;
use smt::{Builder, Fault, Session, TlsClient};
use smt_esp_io::agreement::{Answer, Message, Spis};
use smt_esp_io::{Direction, SuiteName, random_spi};

use super::agreement::{Way, key};
use super::tunnel::LocalTunnel;
use crate::credentials::ClientCredentials;
use crate::failure::Failure;
use crate::standard_error;
use crate::time_span;

/// Agree on keys with the other end's key daemon, again and again
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The address of the other end's key daemon, such as db7:17379
    #[arg(value_name = "ADDRESS")]
    address: String,
    #[command(flatten)]
    credentials: ClientCredentials,
    #[command(flatten)]
    peer: super::PeerArguments,
    /// The suite of the keys
    #[arg(long, value_name = "NAME", default_value = "aes-256-gcm")]
    suite: SuiteName,
    /// Replace the keys after this time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time_span::parse_nonzero)]
    every: Duration,
    /// Look this often whether both tunnels have their keys
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time_span::parse_nonzero)]
    look_every: Duration,
    /// After new keys, take packets under the old ones for this time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time_span::parse)]
    linger: Duration,
    /// Agree once, and end
    #[arg(long)]
    once: bool,
}

/// Keys that are in use.
struct Agreed {
    spis: Spis,
    /// The session by which the other end is asked; a new agreement has a new one.
    client: Client,
    since: Instant,
}

/// Agrees until the process is ended. Tunnels go on without it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (builder, tunnel) = (arguments.credentials.builder()?, arguments.peer.tunnel());
    let mut agreed = None;
    loop {
        let begun = match agreed.take() {
            Some(agreed) if is_good(arguments, &tunnel, &agreed) => Ok(agreed),
            _ => agree(arguments, &builder, &tunnel),
        };
        match begun {
            Ok(now) if arguments.once => {
                drop(now);
                return Ok(());
            }
            Ok(now) => agreed = Some(now),
            Err(failure) if arguments.once => return Err(failure),
            // The other end, or a tunnel, may come back.
            Err(failure) => {
                standard_error::complain(format_args!("smt: no new keys: {}", failure.text()));
            }
        }
        std::thread::sleep(arguments.look_every);
    }
}

/// Whether both tunnels have their keys, and the keys are young enough.
fn is_good(arguments: &Arguments, tunnel: &LocalTunnel, agreed: &Agreed) -> bool {
    let spis = agreed.spis;
    let here = tunnel.has(spis.to_listener, spis.to_connector);
    let there = || match agreed.client.connect() {
        Ok(session) => ask(&session, Message::Check { spis }),
        Err(error) => Err(error.into()),
    };
    agreed.since.elapsed() < arguments.every
        && matches!(here, Ok(true))
        // An end that cannot be asked now has its keys still: the tunnel goes on without it.
        && !matches!(there(), Ok(Answer::Unknown))
}

fn agree(
    arguments: &Arguments,
    builder: &Builder<TlsClient>,
    tunnel: &LocalTunnel,
) -> Result<Agreed, Failure> {
    // Before the other end is asked: a tunnel that is down makes no keys.
    tunnel.associations()?;
    let client = builder.clone().connect_blocking(&arguments.address)?;
    let session = client.connect()?;
    let (suite, own) = (arguments.suite, random_spi()?);
    let spis = match ask(&session, Message::Offer { suite, spi: own })? {
        Answer::Taken { spi } => Spis { to_listener: spi, to_connector: own },
        other => return Err(unexpected(other)),
    };
    let inbound = key(&session, suite, Way::ToConnector, spis)?;
    tunnel.add(Direction::In, spis.to_connector, suite, inbound)?;
    // The other end opens what comes under this key already.
    let outbound = key(&session, suite, Way::ToListener, spis)?;
    let added = tunnel.add(Direction::Out, spis.to_listener, suite, outbound);
    if let Err(error) = added {
        // The other end sends under its key after the switch. Else a failure would leave one
        // behind at each look.
        let _ = tunnel.remove_inbound(spis.to_connector);
        return Err(error.into());
    }
    done(ask(&session, Message::Switch { spis })?)?;
    standard_error::tell(format_args!("new keys, SPI {:#x}", spis.to_connector));
    // Packets under the old keys are on their way for a moment.
    std::thread::sleep(arguments.linger);
    done(ask(&session, Message::Retire { spis })?)?;
    tunnel.retire_others(spis.to_connector)?;
    Ok(Agreed { spis, client, since: Instant::now() })
}

fn ask(session: &Session, message: Message) -> Result<Answer, Failure> {
    let bytes = serde_json::to_vec(&message)?;
    let reply = session.call_blocking(bytes).deadline(ANSWER_LIMIT).wait()?;
    serde_json::from_slice(&reply)
        .map_err(|error| Failure::of(Fault::Peer, format!("this is no answer: {error}")))
}

fn done(answer: Answer) -> Result<(), Failure> {
    match answer {
        Answer::Done => Ok(()),
        other => Err(unexpected(other)),
    }
}

fn unexpected(answer: Answer) -> Failure {
    let text = match answer {
        Answer::Refused { reason } => format!("the other end refuses: {reason}"),
        Answer::Unknown => "the other end has begun anew".to_owned(),
        Answer::Done | Answer::Taken { .. } => {
            "the other end has answered something else".to_owned()
        }
    };
    Failure::of(Fault::Peer, text)
}

/// The other end asks its tunnel, which answers within ten seconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
