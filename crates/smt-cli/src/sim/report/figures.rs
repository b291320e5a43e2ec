// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The plots of a report: the figures drawn of each outcome, and the scale that all of a row share.

use smt_report::{Axis, Line, Plot};

use crate::sim::outcome::{Outcome, Row, SampleTold};

/// Plots side by side, one for each outcome.
pub(super) struct PlotRow {
    pub(super) title: &'static str,
    /// How to read it.
    pub(super) caption: &'static str,
    pub(super) plots: Vec<Plot>,
}

impl PlotRow {
    /// All rows of a page.
    pub(super) fn all(outcomes: &[Outcome]) -> [Self; 3] {
        [slowdown(outcomes), queues(outcomes), goodput(outcomes)]
    }
}

/// Steps over the messages from the shortest to the longest, as in the Homa papers.
fn slowdown(outcomes: &[Outcome]) -> PlotRow {
    let worst = |outcome: &Outcome| most(outcome.curve.iter().map(|row| row.p99));
    // A message on a stream that knows its path can be faster than the first message, sent alone.
    let medians = outcomes.iter().flat_map(|outcome| &outcome.curve);
    let least = medians.map(|row| row.p50).fold(1.0, f64::min);
    let y = Axis::logarithmic("slowdown", least, most(outcomes.iter().map(worst)));
    let plot = |outcome: &Outcome| Plot {
        title: format!("slowdown by message size: {}", outcome.title()),
        x: Axis::shares("message size in bytes, each tick a tenth of the messages", sizes(outcome)),
        y: y.clone(),
        lines: vec![
            steps(0, "p99", &outcome.curve, |row| row.p99),
            steps(1, "p50", &outcome.curve, |row| row.p50),
        ],
    };
    PlotRow {
        title: "Slowdown by message size",
        caption: "Time of a message over that of the same message alone; the 99th percentile and the median. From left to \
                  right all messages by size: each takes the same room.",
        plots: outcomes.iter().map(plot).collect(),
    }
}

fn queues(outcomes: &[Outcome]) -> PlotRow {
    let longest =
        |outcome: &Outcome| kilobytes(most_of(outcome, |sample| sample.queue_longest_bytes));
    let total = |outcome: &Outcome| kilobytes(most_of(outcome, |sample| sample.queued_bytes));
    let highest = outcomes.iter().map(|outcome| longest(outcome).max(total(outcome)));
    let y = Axis::linear("KB", most(highest));
    let plot = |outcome: &Outcome| {
        let line = |color, name: &str, of: fn(&SampleTold) -> u64| Line {
            name: name.to_owned(),
            color,
            points: outcome
                .samples
                .iter()
                .map(|sample| (millis(sample.at_ns), kilobytes(of(sample))))
                .collect(),
        };
        Plot {
            title: format!("queues over time: {}", outcome.title()),
            x: time(outcome),
            y: y.clone(),
            lines: vec![
                line(0, "longest", |sample| sample.queue_longest_bytes),
                line(1, "all", |sample| sample.queued_bytes),
            ],
        }
    };
    PlotRow {
        title: "Queues over time",
        caption: "The longest queue that any port of a switch has had since the sample before, and the bytes in all queues of \
                  all switches at that time.",
        plots: outcomes.iter().map(plot).collect(),
    }
}

fn goodput(outcomes: &[Outcome]) -> PlotRow {
    let link = |outcome: &Outcome| outcome.link_bits_per_s as f64 / 1e9;
    let y = Axis::linear("Gb/s", most(outcomes.iter().map(link)));
    let plot = |outcome: &Outcome| Plot {
        title: format!("goodput over time: {}", outcome.title()),
        x: time(outcome),
        y: y.clone(),
        lines: vec![
            rates(0, "messages", outcome, |sample| sample.arrived_bytes),
            rates(1, "links", outcome, |sample| sample.carried_bytes),
        ],
    };
    PlotRow {
        title: "Goodput over time",
        caption: "What arrives at a host on average, or at the receiver of an incast: payload of messages, and all that \
                  its link carries. A message counts when its last byte is there, so there are peaks; they are cut at \
                  the link's rate.",
        plots: outcomes.iter().map(plot).collect(),
    }
}

/// Times in milliseconds and Gb/s of a host.
fn rates(color: usize, name: &str, outcome: &Outcome, of: fn(&SampleTold) -> u64) -> Line {
    // All messages of an incast go to one host, and are of like size.
    let (hosts, together) = match outcome.rounds.is_empty() {
        true => (outcome.hosts.max(1), SAMPLES_TOGETHER),
        false => (1, 1),
    };
    let mut before = 0;
    let rate = |samples: &[SampleTold]| {
        let end = samples.last().map_or(before, |sample| sample.at_ns);
        let ns = end.saturating_sub(before).max(1);
        before = end;
        let bytes: u64 = samples.iter().map(of).sum();
        (millis(end), bytes as f64 * 8.0 / ns as f64 / f64::from(hosts))
    };
    Line {
        name: name.to_owned(),
        color,
        points: outcome.samples.chunks(together).map(rate).collect(),
    }
}

/// A level for each row, as wide as the row has messages.
fn steps(color: usize, name: &str, rows: &[Row], of: fn(&Row) -> f64) -> Line {
    let total: u64 = rows.iter().map(|row| row.messages).sum();
    let mut before = 0;
    let mut points = Vec::new();
    for row in rows {
        let share = |messages: u64| messages as f64 / total.max(1) as f64;
        points.push((share(before), of(row)));
        before += row.messages;
        points.push((share(before), of(row)));
    }
    Line { name: name.to_owned(), color, points }
}

/// The size up to which each tenth of the messages goes.
fn sizes(outcome: &Outcome) -> Vec<(f64, String)> {
    let total: u64 = outcome.rows.iter().map(|row| row.messages).sum();
    let mut before = 0;
    let tick = |row: &Row| {
        before += row.messages;
        (before as f64 / total.max(1) as f64, short(row.bytes_max))
    };
    outcome.rows.iter().map(tick).collect()
}

/// A size in at most four characters.
fn short(bytes: u32) -> String {
    match bytes {
        0..1_000 => bytes.to_string(),
        1_000..9_950 => format!("{:.1}k", f64::from(bytes) / 1e3),
        9_950..999_500 => format!("{:.0}k", f64::from(bytes) / 1e3),
        999_500..9_950_000 => format!("{:.1}M", f64::from(bytes) / 1e6),
        _ => format!("{:.0}M", f64::from(bytes) / 1e6),
    }
}

fn time(outcome: &Outcome) -> Axis {
    Axis::linear("ms", millis(outcome.duration_ns))
}

fn most_of(outcome: &Outcome, of: fn(&SampleTold) -> u64) -> u64 {
    outcome.samples.iter().map(of).max().unwrap_or_default()
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

fn millis(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1e3
}

/// Lines of a plot, each with a colour of its own.
pub(super) const COLORS: usize = 2;
/// Long messages arrive all at once: a tenth of the samples shows more.
const SAMPLES_TOGETHER: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes_max: u32, messages: u64, p99: f64) -> Row {
        Row { bytes_max, messages, p50: 1.0, p99, max: p99 }
    }

    #[test]
    fn a_row_is_as_wide_as_it_has_messages() {
        let line = steps(0, "", &[row(1, 30, 2.0), row(9, 10, 5.0)], |row| row.p99);
        assert_eq!(line.points, [(0.0, 2.0), (0.75, 2.0), (0.75, 5.0), (1.0, 5.0)]);
        assert!(steps(0, "", &[], |row| row.p99).points.is_empty());
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (7, "7"),
            (999, "999"),
            (1_000, "1.0k"),
            (9_949, "9.9k"),
            (9_950, "10k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
            (28_840_000, "29M"),
        ] {
            assert_eq!(short(bytes), text);
        }
    }
}
