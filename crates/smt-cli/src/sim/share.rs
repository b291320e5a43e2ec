// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim share`: SMT beside TCP on shared links, as tables.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use clap::Args;
use smt_sim::lab::{Bottleneck, CannotRun, Senders, Share, Shares, Sharing};
use smt_sim::net::{Protocol, Scheduler, Spreading};

use crate::failure::Failure;
use crate::standard_output::standard_output;
use crate::time_span;

/// Let SMT and TCP share links, and print the share of each, by scheduler and priority
///
/// Four hosts send by both transports to one receiver, and then to four hosts in another rack by
/// two paths. The tables are Markdown.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The time during which messages are sent, of virtual time
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = duration)]
    duration: Duration,
    /// The seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let told = tables(arguments).map_err(|why| Failure::new(format!("cannot run: {why}")))?;
    Ok(write!(standard_output(), "{told}")?)
}

fn tables(arguments: &Arguments) -> Result<String, CannotRun> {
    let plan = Sharing { duration: arguments.duration, seed: arguments.seed, ..Sharing::default() };
    let mut text = String::new();
    for (title, bottleneck) in
        [("One receiver", Bottleneck::Receiver), ("Two paths between racks", Bottleneck::Paths(2))]
    {
        _ = writeln!(text, "{title}:\n\n{HEAD}");
        let plan = Sharing { bottleneck, ..plan };
        for (name, sharing) in rows(plan) {
            text += &row(&name, &sharing.run()?);
        }
        text.push('\n');
    }
    _ = writeln!(text, "SMT alone on two paths:\n\n{PATHS_HEAD}");
    for (name, spreading) in [("message", Spreading::ByEntropy), ("packet", Spreading::ByPacket)] {
        let shares = Sharing {
            bottleneck: Bottleneck::Paths(2),
            senders: Senders::Alone(Protocol::Smt),
            spreading,
            ..plan
        };
        text += &paths_row(name, &shares.run()?);
    }
    Ok(text)
}

/// The rows of a table.
fn rows(plan: Sharing) -> Vec<(String, Sharing)> {
    let mut rows = Vec::new();
    for (name, protocol) in [("SMT", Protocol::Smt), ("TCP", Protocol::Tcp)] {
        let senders = Senders::Alone(protocol);
        rows.push((format!("{name} alone"), Sharing { senders, ..plan }));
    }
    let mut both = |name: String, scheduler, tcp_priority, trims| {
        let sharing = Sharing { scheduler, tcp_priority, trims, ..plan };
        rows.push((name, sharing));
    };
    both("in order".to_owned(), Scheduler::Fifo, 0, false);
    both("in order, SMT trimmed".to_owned(), Scheduler::Fifo, 0, true);
    for priority in [0, 3, 6, 7] {
        let name = format!("priority, TCP at {priority}");
        both(name, Scheduler::Priority, priority, false);
    }
    both("halves".to_owned(), Scheduler::Fair, 0, false);
    both("halves, SMT trimmed".to_owned(), Scheduler::Fair, 0, true);
    rows
}

const HEAD: &str = "\
| scheduler | SMT, Gb/s | TCP, Gb/s | short of SMT, median, p99 | short of TCP, median, p99 | marked | trimmed | dropped | longest queue, KB |
|:--|--:|--:|--:|--:|--:|--:|--:|--:|";

fn row(name: &str, shares: &Shares) -> String {
    format!(
        "| {name} | {:.2} | {:.2} | {} | {} | {} | {} | {} | {} |\n",
        shares.smt.goodput / 1e9,
        shares.tcp.goodput / 1e9,
        short(&shares.smt),
        short(&shares.tcp),
        shares.marked,
        shares.trimmed,
        shares.dropped,
        shares.queue_max / 1_000,
    )
}

const PATHS_HEAD: &str = "\
| a path for each | SMT, Gb/s | short, median, p99 | messages begun on each path | messages on several paths | asked again by timers |
|:--|--:|--:|--:|--:|--:|";

fn paths_row(name: &str, shares: &Shares) -> String {
    let begun: Vec<_> = shares.begun_on_paths.iter().map(u64::to_string).collect();
    format!(
        "| {name} | {:.2} | {} | {} | {} | {} |\n",
        shares.smt.goodput / 1e9,
        short(&shares.smt),
        begun.join(", "),
        shares.changed_paths,
        shares.asked[1],
    )
}

/// Times of short messages; those that did not end are told.
fn short(share: &Share) -> String {
    let micros = |percent| {
        let time = share.percentile(percent)?;
        Some(format!("{:.1}", time.as_secs_f64() * 1e6))
    };
    match (micros(50), micros(99), share.short_unfinished) {
        (Some(median), Some(p99), 0) => format!("{median}, {p99} us"),
        (Some(median), Some(p99), left) => format!("{median}, {p99} us; {left} not whole"),
        (_, _, 0) => "-".to_owned(),
        (_, _, left) => format!("{left} not whole"),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = time_span::parse(text)?;
    let range = Duration::from_millis(1)..=Duration::from_secs(1);
    match range.contains(&duration) {
        true => Ok(duration),
        false => Err("from 1ms to 1s".to_owned()),
    }
}
