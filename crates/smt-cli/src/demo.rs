// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt demo`: everything at once, on this host, without preparation.
//!
//! 1. Ephemeral certificates are made in a temporary directory.
//! 2. This program is started once more as a server that demands a client certificate.
//! 3. This process is the client: it sends messages of several sizes and compares the replies.
//! 4. A client without a certificate must be refused.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use smt::blocking::Client;
use smt::{Builder, Group, Identity, KeyLog, KeyLogEntry, Suite, TlsClient, Trust};

use crate::failure::Failure;
use crate::own_process::OwnProcess;
use crate::scratch::{EphemeralFiles, Scratch};
use crate::size::Size;
use crate::standard_output::standard_output;
use crate::time_span;

/// Start a server and a client on this host, and exchange encrypted messages
#[derive(Args, Debug)]
pub(crate) struct Arguments {}

/// Runs the subcommand.
pub(crate) fn run(_: &Arguments) -> Result<(), Failure> {
    let scratch = Scratch::new()?;
    let files = scratch.ephemeral()?;
    say(&format!(
        "certificates  throw-away authority, server and client in {}",
        scratch.path().display()
    ))?;
    let server = start_server(&files)?;
    say(&format!(
        "server        process {}: smt serve --echo, at {} (UDP)",
        server.id(),
        server.address()
    ))?;
    let seen = Arc::new(SuiteSeen::default());
    let began = Instant::now();
    let client = builder(&files)?
        .identity(Identity::from_pem_files(&files.client.cert, &files.client.key)?)
        .key_log(Arc::clone(&seen) as Arc<dyn KeyLog>)
        .connect_blocking(server.address())?;
    say(&format!(
        "client        process {}, at {}; connected in {}",
        std::process::id(),
        client.local_address(),
        time_span::display(began.elapsed())
    ))?;
    say(&format!(
        "session       TLS 1.3 handshake, both sides with certificates; key exchange X25519MLKEM768 (post-quantum \
         hybrid); {}",
        seen.suite().map(|suite| suite.to_string()).unwrap_or_default()
    ))?;
    say("\nmessage     calls     p50 round trip   reply")?;
    for size in SIZES {
        exchange(&client, size)?;
    }
    drop(client);
    say(&format!(
        "\nwithout a certificate, the server's answer is:\n  {}",
        refusal(&files, &server)?
    ))?;
    let summary = server.end();
    say(&format!("\nthe server says (that client has tried three times):\n  {summary}"))?;
    say("\nserver ended, temporary directory removed")
}

fn start_server(files: &EphemeralFiles) -> Result<OwnProcess, Failure> {
    let mut words =
        vec!["serve".into(), "127.0.0.1:0".into(), "--echo".into(), "--until-input-ends".into()];
    for (option, path) in [
        ("--cert", &files.server.cert),
        ("--key", &files.server.key),
        ("--client-ca", &files.authority),
    ] {
        words.push(option.into());
        words.push(path.clone().into_os_string());
    }
    OwnProcess::start(words)
}

/// Offers one key exchange alone, so that a session that is live has used it.
fn builder(files: &EphemeralFiles) -> Result<Builder<TlsClient>, Failure> {
    let trust = Trust::roots_from_pem_files(&[&files.authority])?;
    Ok(smt::client(trust).server_name("localhost").groups([Group::X25519MlKem768]))
}

/// Calls with this size for a while; every reply must be the request.
fn exchange(client: &Client, size: Size) -> Result<(), Failure> {
    let message: Bytes = (0..size.0).map(|place| (place * 31 + place / 251) as u8).collect();
    let end = Instant::now() + TIME_PER_SIZE;
    let mut times = Vec::new();
    while times.len() < CALLS_MIN || (Instant::now() < end && times.len() < CALLS_MAX) {
        let began = Instant::now();
        let reply = client.call(message.clone()).deadline(DEADLINE).wait()?;
        times.push(began.elapsed());
        if reply != message {
            return Err(Failure::of(
                smt::Fault::Peer,
                format!("a reply of {size} differs from its request"),
            ));
        }
    }
    times.sort_unstable();
    say(&format!(
        "{:<9} {:>7}   {:>16}   equal",
        size.to_string(),
        times.len(),
        time_span::display(times[times.len() / 2])
    ))
}

/// The error that a client without a certificate gets; it is a failure if the client is let in.
fn refusal(files: &EphemeralFiles, server: &OwnProcess) -> Result<String, Failure> {
    match builder(files)?.connect_blocking(server.address()) {
        Err(error) => Ok(Failure::from(error).text().to_owned()),
        Ok(_) => {
            Err(Failure::of(smt::Fault::Peer, "the server let a client without a certificate in"))
        }
    }
}

/// Learns the suite from the key log, and keeps no secret.
#[derive(Debug, Default)]
struct SuiteSeen(Mutex<Option<Suite>>);

impl SuiteSeen {
    fn suite(&self) -> Option<Suite> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyLog for SuiteSeen {
    fn log(&self, line: &KeyLogEntry<'_>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.suite);
    }
}

fn say(line: &str) -> Result<(), Failure> {
    Ok(writeln!(standard_output(), "{line}")?)
}

const SIZES: [Size; 5] = [Size(0), Size(64), Size(1 << 10), Size(64 << 10), Size(1 << 20)];
const TIME_PER_SIZE: Duration = Duration::from_millis(300);
const CALLS_MIN: usize = 10;
const CALLS_MAX: usize = 2_000;
/// Far above what a loaded machine needs.
const DEADLINE: Duration = Duration::from_secs(10);
