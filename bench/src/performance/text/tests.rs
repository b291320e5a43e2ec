// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page of a run that was never made.

use serde_json::{Value, json};

use super::{BY_DESIGN, MEASURE_AGAIN, OPENING, page};
use crate::results::Results;

/// A measurement of a peer: the figure that decides, its value, and CPU per RPC.
struct Measured {
    case: (&'static str, u32, usize),
    peer: &'static str,
    figure: (&'static str, f64),
    cpu_us: f64,
}

impl Measured {
    fn json(&self) -> Value {
        let (scenario, size, callers) = self.case;
        let (figure, value) = self.figure;
        let of = |value: f64| json!({"median": value, "least": value * 0.9, "most": value * 1.1});
        json!({
            "place": "loopback", "mtu": 65_536, "scenario": scenario, "label": "", "size": size,
            "callers": callers, "x": f64::from(size), "work": "Fresh", "peer": self.peer,
            "repetitions": 5, "calls": 9, "refused": null, "failed": null,
            "figures": {figure: of(value), "cpu_us": of(self.cpu_us)},
        })
    }
}

fn run(measured: &[Measured]) -> Value {
    let names: Vec<&str> = measured.iter().map(|measured| measured.peer).collect();
    json!({
        "schema": 3, "aead": "AES", "key_exchange": "X25519", "duration_s": 0.5,
        "peers": {}, "order": names,
        "machine": {
            "cpu": "A CPU", "cores": 2, "kernel": "6.1", "commit": "abc", "build": "release",
            "load_average": "0.10 0.20 0.30 1/2 3", "started_unix_s": 0, "command": "smt-bench run",
        },
        "places": [{"name": "loopback", "mtu": 65_536, "segmentation_offload": "on"}],
        "rows": measured.iter().map(Measured::json).collect::<Vec<_>>(),
    })
}

fn page_of(run: Value) -> String {
    page(&[serde_json::from_value::<Results>(run).unwrap()])
}

fn row_of<'a>(page: &'a str, what: &str) -> &'a str {
    let begins = format!("| {what}");
    let line = page.lines().find(|line| line.starts_with(&begins));
    line.unwrap_or_default()
}

const ALONE: (&str, u32, usize) = ("unloaded", 64, 1);
const LOADED: (&str, u32, usize) = ("load", 64, 100);
const BESIDE: (&str, u32, usize) = ("beside", 64, 1);

const RUN: &[Measured] = &[
    measured(ALONE, "smt", ("p50_us", 20.0), 15.0),
    measured(ALONE, "tls-blocking", ("p50_us", 40.0), 25.0),
    // The shortest time counts, and TLS that blocks is no peer of tokio.
    measured(ALONE, "smt-tokio-mt", ("p50_us", 60.0), 33.0),
    measured(ALONE, "quinn-mt", ("p50_us", 80.0), 5.0),
    measured(ALONE, "tls-tokio-mt", ("p50_us", 50.0), 44.0),
    // The highest rate counts.
    measured(LOADED, "smt-tokio-mt", ("per_second", 300_000.0), 2.0),
    measured(LOADED, "grpc-mt", ("per_second", 50_000.0), 1.0),
    measured(LOADED, "tls-multiplexed-mt", ("per_second", 200_000.0), 9.5),
    measured(LOADED, "smt-tokio", ("per_second", 100_000.0), 3.0),
    measured(LOADED, "tls-multiplexed", ("per_second", 400_000.0), 1.5),
    // No peer was measured.
    measured(BESIDE, "smt-tokio-mt", ("p99_us", 100.0), 7.0),
];

const fn measured(
    case: (&'static str, u32, usize),
    peer: &'static str,
    figure: (&'static str, f64),
    cpu_us: f64,
) -> Measured {
    Measured { case, peer, figure, cpu_us }
}

#[test]
fn a_row_compares_with_the_best_peer_of_its_kind() {
    let page = page_of(run(RUN));
    for (what, cells) in [
        (
            "one call alone, 64 B, blocking: p50, us",
            "20 ±10 % | 40 ±10 % (tls-blocking) | **0.500** | 15 | 25",
        ),
        (
            "one call alone, 64 B, tokio: p50, us",
            "60 ±10 % | 50 ±10 % (tls-tokio-mt) | 1.20 | 33 | 44",
        ),
        (
            "100 calls at once, 64 B, tokio: thousand RPCs a second",
            "300 ±10 % | 200 ±10 % (tls-multiplexed-mt) | **1.50** | 2 | 9.50",
        ),
        (
            "100 calls at once, 64 B, tokio, current thread: thousand RPCs a second",
            "100 ±10 % | 400 ±10 % (tls-multiplexed) | 0.250 | 3 | 1.50",
        ),
    ] {
        assert_eq!(row_of(&page, what), format!("| {what} | {cells} |"));
    }
}

#[test]
fn a_row_without_a_peer_has_dashes_and_one_without_smt_is_left_out() {
    let page = page_of(run(RUN));
    let beside = row_of(&page, "64 B beside these four");
    assert!(beside.ends_with(" | 100 ±10 % | – | – | – | – |"), "{beside}");
    assert_eq!(row_of(&page, "1 MB"), "");
}

#[test]
fn the_machine_is_named_and_its_plot_shown() {
    let page = page_of(run(RUN));
    let facts = "## A CPU, 2 cores\nLinux 6.1, 1970-01-01, commit abc, release build; load average \
                 at the start 0.10 0.20 0.30 1/2 3. Medians of 5 x 0.5 s,";
    for part in [facts, "### loopback, MTU 65536\n", "](performance.svg)"] {
        assert!(page.contains(part), "{part} is not in:\n{page}");
    }
    assert!(!page.contains("worth nothing"), "{page}");
}

#[test]
fn a_run_in_a_hurry_says_that_its_figures_are_worth_nothing() {
    let changes: [(&str, Value, &str); 4] = [
        ("/duration_s", json!(0.04), "measurements of 0.04 s"),
        ("/machine/build", json!("debug"), "a debug build"),
        ("/machine/load_average", json!("3.50 1 1 1/2 3"), "a busy machine (load average 3.5)"),
        ("/rows/0/failed", json!("why"), "1 measurements failed"),
    ];
    for (field, value, words) in changes {
        let mut run = run(RUN);
        *run.pointer_mut(field).unwrap() = value;
        let page = page_of(run);
        let doubt = format!("**These figures are worth nothing** but to show the page: {words}.");
        assert!(page.contains(&doubt), "{doubt} is not in:\n{page}");
    }
}

#[test]
fn the_committed_page_has_the_texts_of_today() {
    let committed = include_str!("../../../../docs/PERFORMANCE.md");
    assert!(committed.starts_with(OPENING));
    assert!(committed.ends_with(&(MEASURE_AGAIN.to_owned() + BY_DESIGN)));
}
