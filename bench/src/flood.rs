// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-bench flood`: first flights from addresses that the sender does not have, and an honest
//! client beside them.
//!
//! 1. A client of SMT makes first flights; a socket records them and answers nothing.
//! 2. They leave again at the wanted rate, each from one of many addresses of 127.0.0.0/8: to the
//!    server each pair of flight and address is a new client, which never answers a cookie.
//! 3. Meanwhile an honest client connects anew again and again, with one call each time. The same
//!    without a flood is measured before.
//!
//! The server is a process of its own, as users run it: its defaults, but for the algorithms of all
//! measurements here.

mod flights;
mod honest;
mod server;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

pub(crate) use server::run as run_server;

use crate::certificates::Directory;
use crate::failure::{Doing, Failure};
use crate::job::LISTENING;
use crate::process::Process;
use crate::server as process;
use flights::{Flights, Sent};
use honest::Connections;
use server::Use;

/// Send first flights from addresses that are not the sender's, and tell what the server does and
/// what an honest client beside sees
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Flights a second
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
    /// Seconds of the flood, and of the time before it
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Addresses that flights come from
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=4_096))]
    addresses: u16,
    /// Flights that differ
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    flights: u16,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    crate::cpu::raise_descriptor_limit()?;
    let directory = Directory::make()?;
    let path = directory.0.display().to_string();
    let mut server = Process::start(&[], &["flood-serve", &path])?;
    let line = server.hear(START).doing("the server")?;
    let address: SocketAddr = line
        .strip_prefix(LISTENING)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Failure::new(format!("the server said: {line}")))?;
    let flights = Flights::record(&directory.0, arguments.flights, arguments.addresses)?;
    let time = Duration::from_secs_f64(arguments.seconds);
    let first = Use::of(&mut server)?;
    let alone = honest::connect_for(&directory.0, address, time)?;
    let before = Use::of(&mut server)?;
    let (sent, beside) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| flights.send(address, arguments.rate, time));
        let beside = honest::connect_for(&directory.0, address, time);
        let failed = |_| Failure::new("the thread of the flood has failed");
        Ok::<_, Failure>((flood.join().map_err(failed)??, beside?))
    })?;
    let after = Use::of(&mut server)?;
    // The server is there after it as before.
    let later = honest::connect_for(&directory.0, address, time.min(LATER))?;
    report(&[(&alone, &first, &before), (&beside, &before, &after)], &sent, &later)?;
    match [&alone, &beside, &later].iter().all(|some| some.failed == 0) {
        true => Ok(()),
        false => Err(Failure::new("an honest client did not come through")),
    }
}

fn report(
    rows: &[(&Connections, &Use, &Use)],
    sent: &Sent,
    later: &Connections,
) -> Result<(), Failure> {
    process::say(HEADING)?;
    for ((honest, before, after), name) in rows.iter().zip(["no flood", "flood"]) {
        let seconds = honest.time.as_secs_f64();
        process::say(&format!(
            "| {name} | {} | {} | {:.0} | {:.0} | {:.1} | {:.1} | {} | {} | {} | {} |",
            honest.came(),
            honest.failed,
            honest.percentile(50),
            honest.percentile(99),
            (after.cpu - before.cpu).as_secs_f64() / seconds * 100.0,
            after.peak_bytes as f64 / 1e6,
            after.datagrams - before.datagrams,
            after.cookies - before.cookies,
            after.sessions - before.sessions,
            after.failures - before.failures,
        ))?;
    }
    process::say(&format!(
        "\n{:.0} flights of {} bytes a second were sent; after the flood {} of {} honest sessions came about",
        f64::from(sent.flights) / sent.time.as_secs_f64(),
        sent.flight_bytes,
        later.came(),
        later.came() + later.failed as usize,
    ))
}

const HEADING: &str = "| | honest sessions | failed | first reply p50, us | p99, us | server CPU, % of a core | most resident MB | datagrams in | cookies | sessions | failed attempts |\n\
    |---|---|---|---|---|---|---|---|---|---|---|";
const START: Duration = Duration::from_secs(20);
const LATER: Duration = Duration::from_secs(1);
