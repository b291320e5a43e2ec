// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The goals of SMT, as ratios of medians of the same run. Rows whose figures were not measured are
//! left out.

use smt_report::number;

use crate::results::{Key, Results};
use crate::scenario::Scenario;

/// A ratio that is wanted: SMT's figure by a peer's.
struct Check {
    key: Key<'static>,
    /// The best of these counts for SMT.
    ours: &'static [&'static str],
    /// SMT is compared with the best of these.
    theirs: &'static [&'static str],
    wanted: f64,
}

/// The rows as Markdown.
pub(crate) fn markdown(results: &Results) -> String {
    let mut text =
        "## Ratios: SMT by its peer\n| what | of | by | wanted | is |\n|---|---|---|---:|---:|\n"
            .to_owned();
    for check in all() {
        let Some((name, ratio)) = check.ratio(results) else {
            continue;
        };
        let (sign, is_reached) = match check.key.is_more_better() {
            true => ("≥", ratio >= check.wanted),
            false => ("≤", ratio <= check.wanted),
        };
        let mark = if is_reached { "" } else { " ✗" };
        text.push_str(&format!(
            "| {} | {name} | {} | {sign} {} | {}{mark} |\n",
            check.words(),
            check.theirs.join(" or "),
            number(check.wanted),
            number(ratio),
        ));
    }
    text
}

impl Check {
    /// Our peer that is compared, and the ratio; `None` if a figure was not measured.
    fn ratio(&self, results: &Results) -> Option<(&'static str, f64)> {
        let best = |peers| results.best(&self.key, peers);
        let ((name, ours), (_, theirs)) = (best(self.ours)?, best(self.theirs)?);
        (theirs > 0.0).then_some((name, ours / theirs))
    }

    fn words(&self) -> String {
        let Key { place, size, callers, figure, .. } = self.key;
        let scenario = match self.key.scenario {
            Scenario::Unloaded => format!("unloaded, {size} B"),
            Scenario::Load => format!("load, {size} B x{callers}"),
            Scenario::Busy => format!("handlers that compute, {size} B x{callers}"),
            Scenario::Goodput => "1 MB messages".to_owned(),
            Scenario::Beside => "64 B beside 1 MB".to_owned(),
            Scenario::Open => "open loop".to_owned(),
            Scenario::Sessions => "many sessions".to_owned(),
            Scenario::Fresh => "new connection".to_owned(),
            Scenario::Parts => format!("64 parts of {size} B x{callers}"),
            Scenario::Loss if callers == 0 => "loss, open loop".to_owned(),
            Scenario::Loss => format!("loss, 64 B x{callers}"),
        };
        format!("{scenario}: {figure} ({})", if place == "veth" { "lossy veth" } else { place })
    }
}

fn all() -> Vec<Check> {
    let parts = [unloaded(), load(), tokio(), bulk(), in_parts(), loss(), sessions()];
    parts.into_iter().flatten().collect()
}

const fn check(
    key: Key<'static>,
    ours: &'static [&'static str],
    theirs: &'static [&'static str],
    wanted: f64,
) -> Check {
    Check { key, ours, theirs, wanted }
}

const fn key(
    place: &'static str,
    scenario: Scenario,
    size: u32,
    callers: usize,
    figure: &'static str,
) -> Key<'static> {
    Key { place, scenario, size, callers, figure }
}

fn unloaded() -> Vec<Check> {
    let rows = [(64, 0.6, 0.38), (1_024, 0.6, 0.5), (8_192, 0.7, 0.66), (65_536, 0.85, 0.8)];
    let of = |(size, adaptive, busy)| {
        let key = key("loopback", Scenario::Unloaded, size, 1, "p50_us");
        [check(key, &["smt"], TLS, adaptive), check(key, &["smt-busy"], TLS, busy)]
    };
    rows.into_iter().flat_map(of).collect()
}

fn load() -> Vec<Check> {
    let cpu = |place, size| key(place, Scenario::Load, size, 100, "cpu_us");
    let rows = [
        (cpu("loopback", 64), [1.0 / 25.0, 0.5, 1.0, 1.0 / 12.0, 1.0 / 60.0]),
        (cpu("veth 9000", 1_024), [1.0 / 9.0, 0.75, 1.0, 1.0 / 6.0, 1.0 / 20.0]),
        (cpu("veth 1500", 1_024), [1.0 / 8.0, 0.9, 1.2, 1.0 / 5.0, 1.0 / 18.0]),
    ];
    let of = |(key, wanted): (Key<'static>, [f64; 5])| {
        let pairs = FIVE.iter().zip(wanted);
        pairs.map(move |(peer, wanted)| check(key, LOADED, std::slice::from_ref(peer), wanted))
    };
    let mut checks: Vec<Check> = rows.into_iter().flat_map(of).collect();
    for (place, wanted) in [("veth 1500", 0.95), ("veth 9000", 0.8)] {
        checks.push(check(cpu(place, 8_192), LOADED, &["tls-one-thread"], wanted));
    }
    checks
}

/// Goals for the setting that users of tokio run: two workers, handlers as tasks.
fn tokio() -> Vec<Check> {
    let cpu = |place, size, callers| key(place, Scenario::Load, size, callers, "cpu_us");
    let mut checks = Vec::new();
    for (place, spawned) in [("loopback", 0.5), ("loopback unpinned", 1.0)] {
        let key = cpu(place, 64, 100);
        checks.extend([
            check(key, &["smt-tokio-mt"], &["tls-multiplexed-mt"], 0.5),
            check(key, &["smt-tokio-mt"], &["quinn-mt"], 0.15),
            check(key, &["smt-tokio-mt"], &["grpc-mt"], 0.05),
            check(key, &["smt-tokio-mt-spawn"], &["tls-multiplexed-mt-spawn"], spawned),
        ]);
    }
    let key_64 = cpu("loopback", 64, 100);
    checks.extend([
        check(key_64, &["smt-tokio"], &["tls-multiplexed"], 1.0),
        check(key_64, &["smt-tokio-spawn"], &["tls-multiplexed-spawn"], 1.0),
    ]);
    let rows = [(1_024, 100, 0.6), (1_024, 1_000, 1.0), (8_192, 100, 0.8)];
    checks.extend(rows.map(|(size, callers, wanted)| {
        let key = cpu("loopback", size, callers);
        check(key, &["smt-tokio-mt"], &["tls-multiplexed-mt"], wanted)
    }));
    let unloaded = [(64, 0.4), (1_024, 0.4), (8_192, 0.5), (65_536, 0.8)];
    checks.extend(unloaded.map(|(size, wanted)| {
        let key = key("loopback", Scenario::Unloaded, size, 1, "p50_us");
        check(key, &["smt-tokio-mt"], &["tls-tokio-mt"], wanted)
    }));
    let goodput = key("loopback", Scenario::Goodput, 1 << 20, 4, "gbit_per_s");
    let beside = key("loopback", Scenario::Beside, 64, 1, "p99_us");
    checks.extend([
        check(goodput, &["smt-tokio-mt"], &["tls-multiplexed-mt"], 1.2),
        check(beside, &["smt-tokio-mt"], &["tls-multiplexed-mt"], 0.1),
    ]);
    for place in ["loopback", "loopback unpinned"] {
        let of = |figure| key(place, Scenario::Busy, 64, 1_000, figure);
        let (ours, theirs) = (&["smt-tokio-mt-spawn"], &["tls-multiplexed-mt-spawn"]);
        checks.extend([
            check(of("p99_us"), ours, theirs, 1.0),
            check(of("per_second"), ours, theirs, 1.0),
        ]);
    }
    checks
}

fn bulk() -> Vec<Check> {
    let goodput = |place| key(place, Scenario::Goodput, 1 << 20, 4, "gbit_per_s");
    let goodput = [("veth 1500", 1.0), ("veth 9000", 1.15)]
        .map(|(place, wanted)| check(goodput(place), LOADED, TLS, wanted));
    let beside = ["loopback", "veth 1500", "veth 9000"].map(|place| {
        let key = key(place, Scenario::Beside, 64, 1, "p99_us");
        check(key, LOADED, MULTIPLEXED, 1.0 / 15.0)
    });
    goodput.into_iter().chain(beside).collect()
}

/// Replies in parts beside server streams, in rate, CPU and memory of both processes.
fn in_parts() -> Vec<Check> {
    let mut checks = Vec::new();
    for (size, callers) in
        [64, 1_024].into_iter().flat_map(|size| [1, 64, 8_192].map(|callers| (size, callers)))
    {
        for (ours, theirs) in [(ONE_WORKER, GRPC), (TWO_WORKERS, GRPC_ON_TWO_WORKERS)] {
            let of = |figure| key("loopback", Scenario::Parts, size, callers, figure);
            checks.extend([
                check(of("parts_per_second"), ours, theirs, 1.0),
                check(of("part_cpu_us"), ours, theirs, 1.0),
                check(of("p99_us"), ours, theirs, 1.0),
                check(of("peak_mb"), ours, theirs, 1.0),
            ]);
        }
    }
    checks
}

fn loss() -> Vec<Check> {
    let of = |callers| {
        let key = key("veth", Scenario::Loss, 64, callers, "p99_us");
        [TLS, MULTIPLEXED, &["quinn"]].map(|theirs| check(key, LOADED, theirs, 1.0 / 3.0))
    };
    [0, 1, 10, 100].into_iter().flat_map(of).collect()
}

fn sessions() -> Vec<Check> {
    let of = |theirs| {
        let key = |figure| key("loopback", Scenario::Sessions, 64, 100, figure);
        [
            check(key("cpu_us"), LOADED, theirs, 1.0 / 3.0),
            check(key("bytes_per_session"), LOADED, theirs, 0.2),
        ]
    };
    let peers: [&[&str]; 3] = [TLS, &["tls-tokio"], &["tls-one-thread"]];
    peers.into_iter().flat_map(of).collect()
}

const ONE_WORKER: &[&str] = &["smt-tokio"];
const TWO_WORKERS: &[&str] = &["smt-tokio-mt"];
/// The better of one connection and of four.
const GRPC: &[&str] = &["grpc", "grpc-4"];
const GRPC_ON_TWO_WORKERS: &[&str] = &["grpc-mt", "grpc-4-mt"];
/// SMT's ways to have many calls in progress.
const LOADED: &[&str] = &["smt-tokio", "smt-polled"];
const TLS: &[&str] = &["tls-blocking"];
const MULTIPLEXED: &[&str] = &["tls-multiplexed", "tls-one-thread"];
const FIVE: &[&str; 5] = &["tls-tokio", "tls-multiplexed", "tls-one-thread", "quinn", "grpc"];
