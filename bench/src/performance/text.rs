// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page as Markdown: for each run the machine, a table for each place and a plot; then the
//! texts that no run changes.

use smt_report::{Table, number};

use super::comparisons::{self, Comparison};
use crate::results::{Figure, Key, Results};

/// All of it.
pub(super) fn page(runs: &[Results]) -> String {
    let mut text = OPENING.to_owned();
    for (number, results) in runs.iter().enumerate() {
        add_machine(&mut text, results);
        for place in &results.places {
            let mtu = place.mtu;
            text.push_str(&format!("\n### {}, MTU {mtu}\n", place.name));
            text.push_str(&table(results, &place.name).markdown());
        }
        if let Some(place) = crate::report::place_of_round_trips(results) {
            let file = plot_name(number);
            text.push_str(&format!(
                "\n![p50 of one call alone by its size]({file})\n\nOne call alone on {place}: p50 in us, by the \
                 bytes of request and reply.\n"
            ));
        }
    }
    text + MEASURE_AGAIN + BY_DESIGN
}

/// The file of a run's plot, beside the page.
pub(super) fn plot_name(number: usize) -> String {
    match number {
        0 => "performance.svg".to_owned(),
        _ => format!("performance-{}.svg", number + 1),
    }
}

fn add_machine(text: &mut String, results: &Results) {
    let machine = &results.machine;
    text.push_str(&format!("\n## {}, {} cores\n", machine.cpu, machine.cores));
    let doubts = doubts(results);
    if !doubts.is_empty() {
        text.push_str(&format!(
            "**These figures are worth nothing** but to show the page: {}.\n\n",
            doubts.join(", ")
        ));
    }
    text.push_str(&format!(
        "Linux {}, {}, commit {}, {} build; load average at the start {}. Medians of {} x {} s, ± half of the \
         range. {}; {}.\n",
        machine.kernel,
        machine.date(),
        machine.commit,
        machine.build,
        machine.load_average,
        repetitions(results),
        results.duration_s,
        results.aead,
        results.key_exchange,
    ));
}

/// Why a reader should not believe the figures.
fn doubts(results: &Results) -> Vec<String> {
    let mut doubts = Vec::new();
    if !results.machine.is_release_build() {
        doubts.push(format!("a {} build", results.machine.build));
    }
    if results.duration_s < DURATION_LEAST_S {
        doubts.push(format!("measurements of {} s", results.duration_s));
    }
    if repetitions(results) < REPETITIONS_LEAST {
        doubts.push(format!("{} of each", repetitions(results)));
    }
    let busy = results.machine.load_average.split(' ').next();
    let busy = busy.and_then(|load| load.parse::<f64>().ok());
    if let Some(load) = busy.filter(|load| *load > LOAD_MOST) {
        doubts.push(format!("a busy machine (load average {load})"));
    }
    if results.failures() > 0 {
        doubts.push(format!("{} measurements failed", results.failures()));
    }
    doubts
}

/// Those of a row in which none failed.
fn repetitions(results: &Results) -> usize {
    let rows = results.rows.iter();
    rows.map(|row| row.repetitions).max().unwrap_or(0)
}

fn table(results: &Results, place: &str) -> Table {
    let columns = ["SMT", "best peer", "ratio", "SMT CPU an RPC, us", "peer CPU an RPC, us"];
    let rows = comparisons::all();
    Table {
        corner: "what".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.iter().filter_map(|comparison| row(results, place, comparison)).collect(),
    }
}

/// `None` if SMT was not measured.
fn row(results: &Results, place: &str, row: &Comparison) -> Option<(String, Vec<String>)> {
    let key = row.key(place);
    let ours = results.figure(&key, row.ours)?;
    let best = results.best(&key, row.theirs);
    let cpu = |peer: Option<&str>| {
        let figure = peer.zip(row.cpu_key(place));
        let figure = figure.and_then(|(peer, key)| results.figure(&key, peer));
        figure.map_or_else(none, |figure| number(figure.median))
    };
    let peer = best.and_then(|(name, _)| Some((name, results.figure(&key, name)?)));
    let cells = vec![
        with_spread(&key, ours),
        peer.map_or_else(none, |(name, figure)| format!("{} ({name})", with_spread(&key, figure))),
        best.map_or_else(none, |(_, theirs)| ratio(&key, ours.median, theirs)),
        cpu(Some(row.ours)),
        cpu(best.map(|(name, _)| name)),
    ];
    Some((row.what.clone(), cells))
}

/// SMT by its peer, in bold if SMT is better.
fn ratio(key: &Key<'_>, ours: f64, theirs: f64) -> String {
    if theirs <= 0.0 {
        return none();
    }
    let ratio = number(ours / theirs);
    match (ours < theirs) != key.is_more_better() && ours != theirs {
        true => format!("**{ratio}**"),
        false => ratio,
    }
}

/// Rates are told in thousands.
fn with_spread(key: &Key<'_>, figure: &Figure) -> String {
    let unit = if key.figure == "per_second" { 1e3 } else { 1.0 };
    let value = number(figure.median / unit);
    match figure.spread() * 100.0 {
        0.0 => value,
        spread => format!("{value} ±{spread:.0} %"),
    }
}

fn none() -> String {
    "–".to_owned()
}

/// Shorter measurements show that everything works, and no more.
const DURATION_LEAST_S: f64 = 0.2;
const REPETITIONS_LEAST: usize = 3;
/// Others used the machine when the run began.
const LOAD_MOST: f64 = 0.5;

const OPENING: &str = include_str!("opening.md");
const MEASURE_AGAIN: &str = include_str!("measure_again.md");
const BY_DESIGN: &str = include_str!("by_design.md");

#[cfg(test)]
mod tests;
