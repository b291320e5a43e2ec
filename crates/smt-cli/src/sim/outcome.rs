// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The outcome of a scenario, as a JSON object: it is enough to make a report, and to repeat the
//! run.

use serde::{Deserialize, Serialize};
use smt_sim::lab::{LoneTime, Pattern, Results, Round, Sample, Scenario, SlowdownRow, Transport};
use smt_sim::net::{SwitchPolicy, Topology};

use super::SCHEMA;
use crate::time_span;

/// The outcome of a scenario.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Outcome {
    pub(super) schema: u32,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) about: String,
    /// The command that gives the same again.
    pub(super) command: String,
    pub(super) version: String,
    pub(super) seed: u64,
    pub(super) workload: String,
    pub(super) transport: String,
    /// `None` of an incast.
    pub(super) load: Option<f64>,
    pub(super) hosts: u32,
    /// Bit rate of a host's link.
    pub(super) link_bits_per_s: u64,
    pub(super) duration_ns: u64,
    /// All of the scenario in words: names and values.
    pub(super) parameters: Vec<(String, String)>,
    pub(super) figures: Figures,
    /// Why percentiles are not valid; `None` if they are. Files that were written before do not
    /// tell.
    #[serde(default)]
    pub(super) percentiles_invalid: Option<String>,
    /// Why what is told is of less load than was asked for; `None` if it is not.
    #[serde(default)]
    pub(super) load_missed: Option<String>,
    /// Slowdown of tenths of the messages, by size.
    pub(super) rows: Vec<Row>,
    /// `None` if there is no such half: messages of one length have none.
    pub(super) shorter_half: Option<Row>,
    pub(super) all: Option<Row>,
    /// The divisors of slowdowns: this transport's times of the shortest, the median and the
    /// longest message, each alone. Files that were written before have none.
    #[serde(default)]
    pub(super) alone: Vec<LoneTold>,
    /// As `rows`, finer.
    pub(super) curve: Vec<Row>,
    /// The rounds of an incast; at most [`ROUNDS_MAX`].
    pub(super) rounds: Vec<RoundTold>,
    /// How many there were. Files that were written before do not tell.
    #[serde(default)]
    pub(super) rounds_all: usize,
    pub(super) samples: Vec<SampleTold>,
}

/// Single numbers.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Figures {
    pub(super) messages: u64,
    pub(super) unfinished: u64,
    pub(super) refused: u64,
    /// Share of the hosts' links.
    pub(super) links_used: f64,
    /// Goodput of each host; in an incast, of the receiver while a round lasts, or until the last
    /// arrival if no round has ended.
    pub(super) goodput_bits_per_s: f64,
    pub(super) queue_bytes_max: u64,
    pub(super) dropped: u64,
    pub(super) trimmed: u64,
    pub(super) marked: u64,
    pub(super) packets: u64,
    pub(super) hops: u64,
    /// Questions for missing bytes (SMT), after a trimmed packet and by a timer. Files that were
    /// written before had none of these three.
    #[serde(default)]
    pub(super) asked_by_trimmed: u64,
    #[serde(default)]
    pub(super) asked_by_timer: u64,
    /// From the beginning to the last arrival.
    #[serde(default)]
    pub(super) lasted_ns: u64,
}

/// Messages of similar size.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) bytes_max: u32,
    pub(super) messages: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// A message that is alone in the network.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct LoneTold {
    pub(super) bytes: u32,
    pub(super) took_ns: u64,
}

/// A round of an incast.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct RoundTold {
    pub(super) began_ns: u64,
    pub(super) bytes: u64,
    pub(super) best_ns: u64,
    pub(super) took_ns: u64,
    pub(super) unfinished: u32,
}

/// Events since the sample before.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct SampleTold {
    pub(super) at_ns: u64,
    pub(super) queue_longest_bytes: u64,
    pub(super) queued_bytes: u64,
    pub(super) arrived_bytes: u64,
    pub(super) carried_bytes: u64,
}

impl Outcome {
    /// The outcome of the scenario of this name.
    pub(super) fn new(name: String, about: String, scenario: &Scenario, results: &Results) -> Self {
        let load = match scenario.pattern {
            Pattern::Uniform { load } => Some(load),
            Pattern::Incast { .. } => None,
        };
        let row = |row: &SlowdownRow| Row::from(row);
        let rounds = results.rounds.iter().take(ROUNDS_MAX);
        Self {
            schema: SCHEMA,
            kind: KIND.to_owned(),
            name,
            about,
            command: command(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: scenario.seed,
            workload: scenario.workload.name(),
            transport: scenario.transport.to_string(),
            load,
            hosts: scenario.topology.hosts(),
            link_bits_per_s: scenario.topology.edge.rate,
            duration_ns: scenario.duration.as_nanos() as u64,
            parameters: parameters(scenario),
            figures: Figures::of(results),
            percentiles_invalid: percentiles_invalid(results),
            load_missed: load_missed(scenario, results),
            rows: results.rows().iter().map(row).collect(),
            shorter_half: results.shorter_half().as_ref().map(row),
            all: results.all().as_ref().map(row),
            alone: results.alone.iter().map(LoneTold::from).collect(),
            curve: results.curve().iter().map(row).collect(),
            rounds: rounds.map(RoundTold::from).collect(),
            rounds_all: results.rounds.len(),
            samples: results.samples.iter().map(SampleTold::from).collect(),
        }
    }

    /// In a few words: which one it is beside others.
    pub(super) fn title(&self) -> String {
        let load = self.load.map(|load| format!(", load {load}"));
        format!("{}, {}{}", self.name, self.transport, load.unwrap_or_default())
    }

    /// Rounds in the order of how long they took over the best possible: the median is in the
    /// middle.
    pub(super) fn ratios(&self) -> Vec<f64> {
        ratios(self.rounds.iter().filter(|round| round.unfinished == 0))
    }
}

impl Figures {
    fn of(results: &Results) -> Self {
        let rounds: Vec<_> = results.rounds.iter().map(RoundTold::from).collect();
        let whole = || rounds.iter().filter(|round| round.unfinished == 0);
        // The receiver's goodput in the round of the median: the bytes over the time.
        let ratios = ratios(whole());
        let of_incast = whole().next().zip(ratios.get(ratios.len() / 2));
        let of_incast = of_incast.map(|(round, ratio)| {
            let best = round.bytes as f64 * 8e9 / round.best_ns as f64;
            best / ratio
        });
        let until_last = || results.payload() as f64 * 8.0 / results.lasted.as_secs_f64();
        let of_lame = (!rounds.is_empty() && results.count() > 0).then(until_last);
        Self {
            messages: results.count() as u64,
            unfinished: results.unfinished,
            refused: results.refused,
            links_used: results.used,
            goodput_bits_per_s: of_incast.or(of_lame).unwrap_or(results.goodput),
            queue_bytes_max: results.queue_max,
            dropped: results.dropped,
            trimmed: results.trimmed,
            marked: results.marked,
            packets: results.counts.delivered,
            hops: results.counts.hops,
            asked_by_trimmed: results.asked_by_trimmed,
            asked_by_timer: results.asked_by_timer,
            lasted_ns: results.lasted.as_nanos() as u64,
        }
    }
}

fn ratios<'a>(rounds: impl Iterator<Item = &'a RoundTold>) -> Vec<f64> {
    let ratio = |round: &RoundTold| round.took_ns as f64 / round.best_ns as f64;
    let mut ratios: Vec<f64> = rounds.map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

impl From<&SlowdownRow> for Row {
    fn from(row: &SlowdownRow) -> Self {
        Self {
            bytes_max: row.up_to,
            messages: row.count as u64,
            p50: row.p50.into(),
            p99: row.p99.into(),
            max: row.max.into(),
        }
    }
}

impl From<&LoneTime> for LoneTold {
    fn from(alone: &LoneTime) -> Self {
        Self { bytes: alone.length, took_ns: alone.took.as_nanos() as u64 }
    }
}

impl From<&Round> for RoundTold {
    fn from(round: &Round) -> Self {
        Self {
            began_ns: round.began.as_nanos() as u64,
            bytes: round.bytes,
            best_ns: round.best.as_nanos() as u64,
            took_ns: round.took.as_nanos() as u64,
            unfinished: round.unfinished,
        }
    }
}

impl From<&Sample> for SampleTold {
    fn from(sample: &Sample) -> Self {
        Self {
            at_ns: sample.at.as_nanos() as u64,
            queue_longest_bytes: sample.queue_longest,
            queued_bytes: sample.queued,
            arrived_bytes: sample.arrived,
            carried_bytes: sample.carried,
        }
    }
}

/// Why percentiles are not valid, if they are not. A hundredth is all that lies beyond a 99th
/// percentile.
fn percentiles_invalid(results: &Results) -> Option<String> {
    let missing = results.missing();
    (missing > MISSING_MAX).then(|| {
        format!(
            "percentiles are not valid: {:.1} % of the messages were refused or did not arrive in time, and count with the \
             time until the run has ended, so that slowdowns are at least what is told",
            100.0 * missing
        )
    })
}

/// Whether links have carried less than messages take: then the longest, which carry most, were
/// still too few. Streams take less than the load says, which is told in bytes as SMT sends them.
fn load_missed(scenario: &Scenario, results: &Results) -> Option<String> {
    let Pattern::Uniform { load } = scenario.pattern else {
        return None;
    };
    let is_stream = matches!(scenario.transport, Transport::Stream(_));
    (!is_stream && results.used < LOAD_LEAST * load).then(|| {
        format!(
            "the load was not reached: links carried {:.1} % where messages take {:.1} %, so what is told is of less load; \
             count later (warm_up_us) and run longer",
            100.0 * results.used,
            100.0 * load
        )
    })
}

fn parameters(scenario: &Scenario) -> Vec<(String, String)> {
    let Scenario { topology, workload, pattern, transport, duration, warm_up, peers, seed } =
        scenario;
    let pattern = match pattern {
        Pattern::Uniform { load } => format!("uniform, load {load}, to {peers} others"),
        Pattern::Incast { senders, every } => {
            format!("incast of {senders} every {}", time_span::display(*every))
        }
    };
    let rows = [
        ("messages", workload.name()),
        ("transport", transport.to_string()),
        ("pattern", pattern),
        ("duration", time_span::display(*duration)),
        ("warm-up", time_span::display(*warm_up)),
        ("hosts", wiring(topology)),
        ("links", links(topology)),
        ("switches", switches(&topology.switch)),
        ("seed", seed.to_string()),
    ];
    rows.map(|(name, value)| (name.to_owned(), value)).into()
}

fn wiring(topology: &Topology) -> String {
    let Topology { racks, hosts_per_rack, spines, .. } = topology;
    match racks {
        1 => format!("{hosts_per_rack} at one switch"),
        _ => format!("{} in {racks} racks, {spines} spines", topology.hosts()),
    }
}

fn links(topology: &Topology) -> String {
    let Topology { edge, core, host_delay: [out, into], .. } = topology;
    let giga = |rate: u64| rate / 1_000_000_000;
    let core = match topology.racks {
        1 => String::new(),
        _ => format!(" and {} Gb/s, {} ns", giga(core.rate), core.delay.as_nanos()),
    };
    format!(
        "{} Gb/s, {} ns{core}; hosts {} ns out, {} ns in; datagrams up to {} B",
        giga(edge.rate),
        edge.delay.as_nanos(),
        out.as_nanos(),
        into.as_nanos(),
        edge.payload_max,
    )
}

fn switches(policy: &SwitchPolicy) -> String {
    let buffer = match policy.buffer {
        // The parser's word for a value that is never reached.
        0..=1_000_000_000 => format!("buffer {} B", policy.buffer),
        _ => "unlimited buffer".to_owned(),
    };
    let above = |what: &str, limit: Option<u64>| match limit {
        Some(limit) => format!("{what} above {limit} B"),
        None => format!("no {what}"),
    };
    format!(
        "{} ns, {buffer}, {}, {}, paths {:?}",
        policy.delay.as_nanos(),
        above("marks", policy.mark_above),
        above("trimming", policy.trim_above),
        policy.spreading,
    )
}

/// As it was typed, without the program's own path.
fn command() -> String {
    let words = std::env::args().skip(1);
    let words = words.map(|word| match word.contains([' ', '\'', '"']) {
        true => format!("{word:?}"),
        false => word,
    });
    std::iter::once("smt".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The value of an outcome's `kind` field.
pub(super) const KIND: &str = "scenario";
/// Share of the messages that may be missing in percentiles.
const MISSING_MAX: f64 = 0.01;
/// Share of the load that is as good as all of it: chance takes some, and acknowledgements that
/// share a packet.
const LOAD_LEAST: f64 = 0.9;
/// More rounds than a report can show.
const ROUNDS_MAX: usize = 1_000;
