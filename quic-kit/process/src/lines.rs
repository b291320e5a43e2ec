// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines between a process of the kit and the one that measures.

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::time::Duration;

use crate::failure::Failure;
use crate::usage::{Counts, Usage};

/// An order of the measuring process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Order {
    /// Transfer.
    Go,
    /// Print a report.
    Report,
    /// End: there is no more input.
    End,
}

/// Waits for the next order.
///
/// # Errors
/// The input cannot be read, or says something else.
pub fn next_order() -> Result<Order, Failure> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let read = read.map_err(|error| Failure::new(format!("reading an order: {error}")))?;
    match line.trim_end() {
        "" if read == 0 => Ok(Order::End),
        "go" => Ok(Order::Go),
        "report" => Ok(Order::Report),
        other => Err(Failure::new(format!("no order is called {other:?}"))),
    }
}

/// Tells the address that a server listens at.
pub fn listening(address: SocketAddr) {
    say(&format!("listening {address}"));
}

/// Tells that a client waits for its order.
pub fn ready() {
    say("ready");
}

/// One transfer of a client.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Bytes received and sent.
    pub bytes: u64,
    /// Until the connection was there.
    pub handshake: Duration,
    /// From the request to the last byte.
    pub transfer: Duration,
}

/// Tells a transfer that has ended.
pub fn connection(transfer: &Transfer) {
    say(&format!(
        "connection bytes={} handshake_us={} transfer_us={}",
        transfer.bytes,
        transfer.handshake.as_micros(),
        transfer.transfer.as_micros()
    ));
}

/// Tells that all transfers have ended.
pub fn done() {
    say("done");
}

/// Tells what was used and counted.
pub fn report(since: &Usage, counts: &Counts) {
    say(&format!("report {} {}", Usage::now().since(since), counts.fields()));
}

/// Reports as often as asked, and ends the process with its input: for servers, whose work goes on
/// in other threads.
pub fn report_until_end(since: &Usage, counts: impl Fn() -> Counts) {
    loop {
        match next_order() {
            Ok(Order::Report) => report(since, &counts()),
            Ok(Order::Go) => {}
            Ok(Order::End) => std::process::exit(0),
            Err(failure) => {
                eprintln!("{failure}");
                std::process::exit(1);
            }
        }
    }
}

/// Runs a client: `transfer` does all connections. Then reports until the input ends.
///
/// # Errors
/// The failure of `transfer`.
pub fn client(
    mut transfer: impl FnMut() -> Result<Vec<Transfer>, Failure>,
    counts: impl Fn() -> Counts,
) -> Result<(), Failure> {
    ready();
    let since = Usage::now();
    loop {
        match next_order()? {
            Order::Go => {
                for ended in transfer()? {
                    connection(&ended);
                }
                done();
            }
            Order::Report => report(&since, &counts()),
            Order::End => return Ok(()),
        }
    }
}

fn say(line: &str) {
    let mut output = io::stdout().lock();
    // A reader that has gone wants to hear nothing more.
    if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
        std::process::exit(0);
    }
}
