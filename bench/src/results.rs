// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All that was measured, as medians with their spread.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Doing, Failure};
use crate::job::{Findings, Work};
use crate::load::Group;
use crate::machine::Machine;
use crate::namespaces::Place;
use crate::peers::Peer;
use crate::scenario::{Case, Scenario};

/// The resources that a server process had used at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerUse {
    pub(crate) cpu_s: f64,
    pub(crate) resident_bytes: f64,
    pub(crate) peak_bytes: f64,
}

impl ServerUse {
    /// Reads the server's answer.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').map(str::parse::<f64>);
        let mut next = || words.next()?.ok();
        Some(Self { cpu_s: next()? / 1e9, resident_bytes: next()?, peak_bytes: next()? })
    }
}

/// One repetition.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) findings: Findings,
    /// The server before the client came.
    pub(crate) unused: ServerUse,
    /// The server before the measurement, with all connections open.
    pub(crate) before: ServerUse,
    pub(crate) after: ServerUse,
}

/// A figure over its repetitions.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    #[serde(skip)]
    values: Vec<f64>,
}

impl Figure {
    pub(crate) fn add(&mut self, value: f64) {
        let place = self.values.partition_point(|other| *other < value);
        self.values.insert(place, value);
        let count = self.values.len();
        self.median = f64::midpoint(self.values[(count - 1) / 2], self.values[count / 2]);
        self.least = self.values[0];
        self.most = self.values[count - 1];
    }

    /// Half of the way from the least to the most, of the median.
    pub(crate) fn spread(&self) -> f64 {
        if self.median == 0.0 {
            return 0.0;
        }
        (self.most - self.least) / 2.0 / self.median
    }
}

impl Default for Figure {
    fn default() -> Self {
        Self { median: 0.0, least: 0.0, most: 0.0, values: Vec::new() }
    }
}

/// A peer in a case.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) place: String,
    pub(crate) mtu: u32,
    #[serde(flatten)]
    pub(crate) case: Case,
    pub(crate) peer: String,
    pub(crate) repetitions: usize,
    /// Calls of all repetitions.
    pub(crate) calls: u64,
    pub(crate) figures: BTreeMap<String, Figure>,
    /// The reason why the case cannot be measured, or of a repetition that failed.
    pub(crate) refused: Option<String>,
    pub(crate) failed: Option<String>,
}

/// A place, for readers.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PlaceFacts {
    pub(crate) name: String,
    pub(crate) mtu: u32,
    pub(crate) segmentation_offload: String,
}

/// All of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Results {
    pub(crate) schema: u32,
    pub(crate) machine: Machine,
    pub(crate) aead: String,
    pub(crate) key_exchange: String,
    pub(crate) duration_s: f64,
    pub(crate) peers: BTreeMap<String, String>,
    pub(crate) places: Vec<PlaceFacts>,
    pub(crate) rows: Vec<Row>,
    /// The peers' names in the order of tables.
    pub(crate) order: Vec<String>,
}

impl Results {
    /// A table without any figures yet.
    pub(crate) fn new(machine: Machine, peers: &[Box<dyn Peer>], duration: Duration) -> Self {
        Self {
            schema: SCHEMA,
            machine,
            aead: "AES-128-GCM (none: smt-core-null, tcp-*, udp*)".to_owned(),
            key_exchange: "X25519, a P-256 certificate, verified".to_owned(),
            duration_s: duration.as_secs_f64(),
            peers: peers
                .iter()
                .map(|peer| (peer.name().to_owned(), peer.settings().to_owned()))
                .collect(),
            places: Vec::new(),
            rows: Vec::new(),
            order: peers.iter().map(|peer| peer.name().to_owned()).collect(),
        }
    }

    /// Measurements at `place` follow.
    pub(crate) fn add_place(&mut self, place: &Place) {
        self.places.push(PlaceFacts {
            name: place.name.clone(),
            mtu: place.mtu,
            segmentation_offload: place.offload.to_owned(),
        });
    }

    /// A repetition.
    pub(crate) fn add(
        &mut self,
        place: &Place,
        case: &Case,
        peer: &'static str,
        measured: &Measured,
    ) {
        let row = self.row(place, case, peer);
        row.repetitions += 1;
        row.calls += calls(measured);
        for (name, value) in figures(case, measured) {
            row.figures.entry(name.to_owned()).or_default().add(value);
        }
    }

    /// It cannot be measured.
    pub(crate) fn refuse(
        &mut self,
        place: &Place,
        case: &Case,
        peer: &'static str,
        reason: &'static str,
    ) {
        self.row(place, case, peer).refused = Some(reason.to_owned());
    }

    /// It should have been measured.
    pub(crate) fn fail(
        &mut self,
        place: &Place,
        case: &Case,
        peer: &'static str,
        failure: &Failure,
    ) {
        self.row(place, case, peer).failed = Some(failure.to_string());
    }

    /// Reads what a run has written.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let what = format!("reading {}", path.display());
        let text = std::fs::read_to_string(path).doing(&what)?;
        let results: Self = serde_json::from_str(&text).doing(&what)?;
        match results.schema {
            SCHEMA => Ok(results),
            other => Err(Failure::new(format!(
                "{what}: its schema is {other}, and this program knows {SCHEMA}"
            ))),
        }
    }

    /// Rows of which a repetition failed.
    pub(crate) fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.failed.is_some()).count()
    }

    /// The figure of a peer.
    pub(crate) fn figure(&self, key: &Key<'_>, peer: &str) -> Option<&Figure> {
        let is_it = |row: &&Row| {
            is_at(&row.place, key.place)
                && row.case.scenario == key.scenario
                && row.peer == peer
                && row.case.size == key.size
                && row.case.callers == key.callers
        };
        let row = self.rows.iter().find(is_it)?;
        row.figures.get(key.figure)
    }

    /// The best of these peers, and its median; `None` if none of them was measured.
    pub(crate) fn best<'p>(&self, key: &Key<'_>, peers: &[&'p str]) -> Option<(&'p str, f64)> {
        let values = peers.iter().filter_map(|peer| Some((*peer, self.figure(key, peer)?.median)));
        values.reduce(|best, other| match (other.1 < best.1) != key.is_more_better() {
            true => other,
            false => best,
        })
    }

    fn row(&mut self, place: &Place, case: &Case, peer: &'static str) -> &mut Row {
        let is_it = |row: &Row| row.place == place.name && row.case == *case && row.peer == peer;
        let number = self.rows.iter().position(is_it).unwrap_or_else(|| {
            self.rows.push(Row {
                place: place.name.clone(),
                mtu: place.mtu,
                case: case.clone(),
                peer: peer.to_owned(),
                repetitions: 0,
                calls: 0,
                figures: BTreeMap::new(),
                refused: None,
                failed: None,
            });
            self.rows.len() - 1
        });
        &mut self.rows[number]
    }
}

/// Names a figure of all peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    /// The place's name; `veth` for the one that loses packets.
    pub(crate) place: &'a str,
    pub(crate) scenario: Scenario,
    pub(crate) size: u32,
    pub(crate) callers: usize,
    pub(crate) figure: &'static str,
}

impl Key<'_> {
    /// Rates are good if they are high, times if they are short.
    pub(crate) fn is_more_better(&self) -> bool {
        ["gbit_per_s", "per_second", "parts_per_second"].contains(&self.figure)
    }
}

/// Whether a place is the one that is meant: by its name without a loss rate.
fn is_at(place: &str, wanted: &str) -> bool {
    match wanted {
        "veth" => place.starts_with("veth") && place.ends_with("loss"),
        _ => place == wanted,
    }
}

fn calls(measured: &Measured) -> u64 {
    measured.findings.groups.iter().map(|group| group.calls).sum()
}

/// All that one repetition says.
fn figures(case: &Case, measured: &Measured) -> Vec<(&'static str, f64)> {
    let Measured { findings, unused, before, after } = measured;
    let Some(first) = findings.groups.first() else {
        return Vec::new();
    };
    let per_call_us = 1e6 / calls(measured).max(1) as f64;
    let server_cpu_s = after.cpu_s - before.cpu_s;
    let mut figures = vec![
        ("p50_us", first.p50_us),
        ("p90_us", first.p90_us),
        ("p99_us", first.p99_us),
        ("p99.9_us", first.p999_us),
        ("max_us", first.max_us),
        ("per_second", first.per_second),
        ("unfinished", first.unfinished as f64),
        ("client_cpu_us", findings.client_cpu_s * per_call_us),
        ("server_cpu_us", server_cpu_s * per_call_us),
        ("cpu_us", (findings.client_cpu_s + server_cpu_s) * per_call_us),
        ("packets", findings.packets as f64),
        ("bytes_per_packet", findings.bytes_per_packet),
        ("client_peak_mb", findings.client_peak_bytes as f64 / 1e6),
        ("server_peak_mb", after.peak_bytes / 1e6),
        ("peak_mb", (findings.client_peak_bytes as f64 + after.peak_bytes) / 1e6),
    ];
    if let Work::Closed { groups, sessions } = &case.work {
        let mut pairs = groups.iter().zip(&findings.groups);
        if let Some((group, found)) =
            pairs.next_back().filter(|(group, _)| group.request >= 1 << 20)
        {
            let bits = f64::from(group.request) * 8.0 * found.per_second;
            figures.push(("gbit_per_s", bits / 1e9));
        }
        if let [Group { parts: parts @ 1.., .. }] = groups.as_slice() {
            let parts = f64::from(*parts);
            let cpu_s = findings.client_cpu_s + server_cpu_s;
            figures.push(("parts_per_second", first.per_second * parts));
            figures.push(("part_cpu_us", cpu_s * per_call_us / parts));
        }
        if *sessions > 0 {
            let bytes = before.resident_bytes - unused.resident_bytes;
            figures.push(("bytes_per_session", bytes / *sessions as f64));
        }
    }
    figures
}

/// Changed when a field changes its meaning or goes.
const SCHEMA: u32 = 3;

#[cfg(test)]
mod tests {
    use super::Figure;

    #[test]
    fn a_figure_is_the_median_with_its_extremes() {
        let mut figure = Figure::default();
        for value in [9.0, 1.0, 5.0, 4.0] {
            figure.add(value);
        }
        assert!((figure.median - 4.5).abs() < 1e-9);
        assert!((figure.least - 1.0).abs() < 1e-9 && (figure.most - 9.0).abs() < 1e-9);
    }
}
