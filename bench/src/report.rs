// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Results for readers: Markdown on standard output, JSON for programs, a page with plots.

mod page;
mod table;

pub(crate) use page::{html, place_of_round_trips, round_trips};

use crate::failure::Failure;
use crate::results::Results;
use crate::scenario::Scenario;
use crate::{checks, server};

/// Prints tables.
pub(crate) fn print(results: &Results) -> Result<(), Failure> {
    server::say(&heading(results))?;
    for place in &results.places {
        for view in VIEWS {
            if let Some(text) = table::markdown(results, &place.name, view) {
                server::say(&text)?;
            }
        }
    }
    server::say(&checks::markdown(results))
}

/// All figures.
pub(crate) fn json(results: &Results) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(results)? + "\n")
}

fn heading(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = format!(
        "# SMT and its peers\n{}, {} cores, Linux {}; commit {}, {} build; load average {}; {:.1} s a measurement, medians, ± half of \
         the range over the repetitions.\nAEAD {}; key exchange {}.\n\n    {}\n",
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.commit,
        machine.build,
        machine.load_average,
        results.duration_s,
        results.aead,
        results.key_exchange,
        machine.command,
    );
    for place in &results.places {
        text.push_str(&format!(
            "\n- {}: MTU {}; segmentation offload {}",
            place.name, place.mtu, place.segmentation_offload
        ));
    }
    text + "\n"
}

/// A figure of a scenario, as a table and a plot.
pub(crate) struct View {
    pub(crate) scenario: Scenario,
    pub(crate) figure: &'static str,
    pub(crate) title: &'static str,
    /// The plot's axis; `None`: bars.
    pub(crate) x: Option<&'static str>,
}

impl View {
    const fn new(
        scenario: Scenario,
        figure: &'static str,
        title: &'static str,
        x: Option<&'static str>,
    ) -> Self {
        Self { scenario, figure, title, x }
    }
}

/// The first of [`VIEWS`], and the plot of docs/PERFORMANCE.md.
const ROUND_TRIPS: View = View::new(
    Scenario::Unloaded,
    "p50_us",
    "Round trip, one call at a time: p50 in us",
    Some("bytes"),
);

/// The figures that are shown, in this order. JSON has more.
const VIEWS: &[View] = &[
    ROUND_TRIPS,
    View::new(Scenario::Unloaded, "p99_us", "Round trip, one call at a time: p99 in us", None),
    View::new(
        Scenario::Unloaded,
        "cpu_us",
        "One call at a time: CPU of both sides per RPC in us",
        None,
    ),
    View::new(Scenario::Load, "per_second", "Load: RPCs a second", Some("calls at once")),
    View::new(
        Scenario::Load,
        "cpu_us",
        "Load: CPU of both sides per RPC in us",
        Some("calls at once"),
    ),
    View::new(Scenario::Load, "p99_us", "Load: p99 in us", None),
    View::new(
        Scenario::Load,
        "bytes_per_packet",
        "Load: bytes per packet that left (above the MTU: segmentation was offloaded)",
        None,
    ),
    View::new(Scenario::Busy, "per_second", "Handlers that compute: RPCs a second", None),
    View::new(Scenario::Busy, "p50_us", "Handlers that compute: p50 in us", None),
    View::new(Scenario::Busy, "p99_us", "Handlers that compute: p99 in us", None),
    View::new(Scenario::Goodput, "gbit_per_s", "Messages of 1 MB, four at a time: Gbit/s", None),
    View::new(
        Scenario::Goodput,
        "cpu_us",
        "Messages of 1 MB, four at a time: CPU of both sides per message in us",
        None,
    ),
    View::new(Scenario::Beside, "p50_us", "64 B beside four transfers of 1 MB: p50 in us", None),
    View::new(Scenario::Beside, "p99_us", "64 B beside four transfers of 1 MB: p99 in us", None),
    View::new(Scenario::Beside, "gbit_per_s", "The transfers beside 64 B calls: Gbit/s", None),
    View::new(
        Scenario::Open,
        "p50_us",
        "Open loop: p50 in us from when the call should have begun",
        Some("calls a second"),
    ),
    View::new(
        Scenario::Open,
        "p99_us",
        "Open loop: p99 in us from when the call should have begun",
        Some("calls a second"),
    ),
    View::new(Scenario::Open, "per_second", "Open loop: RPCs a second that were finished", None),
    View::new(
        Scenario::Sessions,
        "cpu_us",
        "Many sessions, 100 calls at a time over them: CPU of both sides per RPC in us",
        None,
    ),
    View::new(Scenario::Sessions, "per_second", "Many sessions: RPCs a second", None),
    View::new(
        Scenario::Sessions,
        "bytes_per_session",
        "Memory of the server per session in bytes",
        None,
    ),
    View::new(Scenario::Fresh, "p50_us", "First reply on a new connection: p50 in us", None),
    View::new(Scenario::Fresh, "per_second", "New connections a second, one after the other", None),
    View::new(Scenario::Fresh, "cpu_us", "New connection: CPU of both sides in us", None),
    View::new(
        Scenario::Parts,
        "parts_per_second",
        "Replies in 64 parts: parts a second",
        Some("calls at once"),
    ),
    View::new(
        Scenario::Parts,
        "part_cpu_us",
        "Replies in 64 parts: CPU of both sides per part in us",
        Some("calls at once"),
    ),
    View::new(Scenario::Parts, "p50_us", "Replies in 64 parts: p50 of the whole call in us", None),
    View::new(Scenario::Parts, "p99_us", "Replies in 64 parts: p99 of the whole call in us", None),
    View::new(
        Scenario::Parts,
        "client_peak_mb",
        "Replies in 64 parts: most memory of the client in MB",
        None,
    ),
    View::new(
        Scenario::Parts,
        "server_peak_mb",
        "Replies in 64 parts: most memory of the server in MB",
        None,
    ),
    View::new(Scenario::Loss, "p50_us", "Loss: p50 in us", None),
    View::new(Scenario::Loss, "p99_us", "Loss: p99 in us", None),
    View::new(Scenario::Loss, "per_second", "Loss: RPCs a second", None),
];
