// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The outcome of a scenario, for people: a few lines and a table of slowdowns.

use std::time::Duration;

use super::outcome::{LoneTold, Outcome, Row};
use crate::time_span;

/// All of it.
pub(super) fn text(outcome: &Outcome) -> String {
    let figures = &outcome.figures;
    let mut lines = vec![
        format!("{}: {}", outcome.name, outcome.about),
        format!(
            "{} messages of {} over {}{} in {} ({} unfinished, {} refused), seed {}",
            figures.messages,
            outcome.workload,
            outcome.transport,
            outcome.load.map_or_else(String::new, |load| format!(" at load {load}")),
            time_span::display(Duration::from_nanos(outcome.duration_ns)),
            figures.unfinished,
            figures.refused,
            outcome.seed
        ),
        format!(
            "links used {:.1} %, goodput {:.2} Gb/s {}, longest queue {} KB, {} dropped, {} trimmed, {} marked, \
             {} packets over {} hops",
            100.0 * figures.links_used,
            figures.goodput_bits_per_s / 1e9,
            goodput_of(outcome),
            figures.queue_bytes_max / 1_000,
            figures.dropped,
            figures.trimmed,
            figures.marked,
            figures.packets,
            figures.hops
        ),
    ];
    lines.push(arrivals(outcome));
    lines.extend(rounds(outcome));
    lines.extend(outcome.percentiles_invalid.clone());
    lines.extend(outcome.load_missed.clone());
    lines.push(format!(
        "{:>12} {:>9} {:>8} {:>8} {:>8}   slowdown",
        "bytes up to", "messages", "p50", "p99", "max"
    ));
    lines.extend(outcome.rows.iter().map(|each| row(&each.bytes_max.to_string(), each)));
    lines.extend(outcome.shorter_half.iter().map(|each| row("shorter half", each)));
    lines.extend(outcome.all.iter().map(|each| row("all", each)));
    lines.extend(alone(outcome).map(|alone| format!("slowdown 1 is a message alone: {alone}")));
    lines.join("\n")
}

/// Whose goodput is told.
pub(super) fn goodput_of(outcome: &Outcome) -> &'static str {
    let has_whole = outcome.rounds.iter().any(|round| round.unfinished == 0);
    match (outcome.rounds.is_empty(), has_whole) {
        (true, _) => "a host",
        (false, true) => "at the receiver in a round",
        (false, false) => "at the receiver until the last arrival",
    }
}

/// The time of the last arrival, and the bytes that had to be asked for again.
fn arrivals(outcome: &Outcome) -> String {
    let figures = &outcome.figures;
    let asked = match asked(outcome) {
        Some(asked) => format!("; missing bytes asked for {asked}"),
        None => String::new(),
    };
    format!("last arrival after {}{asked}", time(figures.lasted_ns))
}

/// How often missing bytes were asked for, if they were.
pub(super) fn asked(outcome: &Outcome) -> Option<String> {
    let (by_trimmed, by_timer) = (outcome.figures.asked_by_trimmed, outcome.figures.asked_by_timer);
    (by_trimmed + by_timer > 0)
        .then(|| format!("{by_trimmed} times after trimmed packets, {by_timer} times by timers"))
}

/// The divisors of slowdowns, for some messages.
pub(super) fn alone(outcome: &Outcome) -> Option<String> {
    let told = |alone: &LoneTold| format!("{} B {}", alone.bytes, time(alone.took_ns));
    let all: Vec<String> = outcome.alone.iter().map(told).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// How long the rounds of an incast took, in one line.
pub(super) fn rounds(outcome: &Outcome) -> Option<String> {
    let first = outcome.rounds.first()?;
    let ratios = outcome.ratios();
    let whole = outcome.rounds.iter().filter(|round| round.unfinished == 0);
    let mut took: Vec<u64> = whole.map(|round| round.took_ns).collect();
    took.sort_unstable();
    let whole = match (took.first(), ratios.get(ratios.len() / 2), took.last()) {
        (Some(least), Some(ratio), Some(most)) => {
            let [least, median, most] = [*least, took[took.len() / 2], *most].map(time);
            format!("took {least} to {most}, median {median}; {ratio:.2} times the best")
        }
        _ => "none of them ended".to_owned(),
    };
    let lame = outcome.rounds.len() - ratios.len();
    let lame = match lame {
        0 => String::new(),
        _ => format!("; {lame} did not end"),
    };
    let told = outcome.rounds.len();
    let rounds = match outcome.rounds_all > told {
        true => format!("the first {told} of {} rounds", outcome.rounds_all),
        false => format!("{told} rounds"),
    };
    Some(format!("{rounds} of {} B, {} at best; {whole}{lame}", first.bytes, time(first.best_ns)))
}

fn time(ns: u64) -> String {
    time_span::display(Duration::from_nanos(ns))
}

fn row(name: &str, row: &Row) -> String {
    let Row { messages, p50, p99, max, .. } = row;
    format!("{name:>12} {messages:>9} {p50:>8.2} {p99:>8.2} {max:>8.2}")
}
