// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Figures 11 to 14 as tables and bars.

use smt_report::{Bar, Bars, Table};

use super::device::Attesting;
use super::instructions;
use super::over_smt::{Load, Measured, measure};
use super::system::{Kind, System};
use crate::systems::EMULATED;
use crate::times::told;
use crate::{Failure, Report};

/// Requests in progress.
pub(super) const IN_PROGRESS: u32 = 32;
/// Requests of a row.
const REQUESTS: u64 = 20_000;
/// Requests of a batch in figure 11.
pub(super) const BATCHES: [usize; 3] = [1, 8, 16];

const BFT: &str = "The replicated counter, three replicas of which one may lie, two clients with 16 \
                   requests in progress each. As many requests of a client as a batch has have \
                   one signature. (The paper: TNIC has 1/2.4 of the library's throughput, and \
                   four to six times that of SGX and SEV; batches of 8 and 16 have 7 and 15 \
                   times that of one.)";
const CHAIN: &str = "The key-value store, three nodes, two clients with 16 requests in progress \
                     each, which write values of 60 bytes and have one signature for up to 16. \
                     (The paper: TNIC has 1/4.6 of the library's throughput, 5 times that of SGX \
                     and 3.4 times that of SEV.)";
const PEER_REVIEW: &str = "A source that streams parts of 100 bytes to two nodes, 32 at once, and \
                           one witness for each node, which audits it each 20 ms or never. A part \
                           counts when both nodes have delivered it. (The paper: audits take 25 % \
                           of the latency; TNIC has three to five times the throughput of SEV and \
                           SGX.)";
const TEE: &str = "Crash-tolerant replication, failure-free, as if all of it were inside of a TEE: \
                   no attestation, requests without signatures. What a TEE itself costs is not in \
                   it. (The paper: both are quicker than the systems over TNIC, with 1,000 times \
                   the trusted code.)";

/// A measured row.
struct Row {
    name: String,
    measured: Measured,
    instructions: Option<f64>,
}

/// The names of a figure, and the text above it.
struct Heading {
    file: &'static str,
    text: &'static str,
    heading: &'static str,
}

/// Measures all four figures.
pub(crate) fn figures_11_to_14(report: &mut Report<'_>, less: usize) -> Result<(), Failure> {
    let load = Load { in_progress: IN_PROGRESS, requests: REQUESTS / less as u64 };
    let heading = Heading { file: "figure-11", heading: "Figure 11: BFT", text: BFT };
    report.begin(&heading);
    for batch in BATCHES {
        let rows = over_each_device(load, Kind::Bft { batch })?;
        report.rows(&heading, &format!("batch {batch}"), &rows)?;
    }
    let heading =
        Heading { file: "figure-12", heading: "Figure 12: chain replication", text: CHAIN };
    report.begin(&heading);
    report.rows(&heading, "chain", &over_each_device(load, Kind::Chain)?)?;
    let heading =
        Heading { file: "figure-13", heading: "Figure 13: PeerReview", text: PEER_REVIEW };
    report.begin(&heading);
    for (is_audited, of) in [(false, "without audits"), (true, "with audits")] {
        let rows = over_each_device(load, Kind::PeerReview { is_audited })?;
        report.rows(&heading, of, &rows)?;
    }
    figure_14(report, load)
}

/// The systems of the paper's last comparison, each beside its crash-tolerant twin.
fn figure_14(report: &mut Report<'_>, load: Load) -> Result<(), Failure> {
    let heading =
        Heading { file: "figure-14", heading: "Figure 14: replication inside of TEEs", text: TEE };
    report.begin(&heading);
    for batch in BATCHES {
        let pair = [("TEE-Raft", Kind::Raft { batch }), ("BFT", Kind::Bft { batch })];
        let rows = beside_each_other(load, pair)?;
        report.rows(&heading, &format!("broadcast, batch {batch}"), &rows)?;
    }
    let pair = [("TEE-CR", Kind::CrashTolerantChain), ("chain", Kind::Chain)];
    report.rows(&heading, "chain", &beside_each_other(load, pair)?)
}

/// A kind of system over each kind of device.
fn over_each_device(load: Load, kind: Kind) -> Result<Vec<Row>, Failure> {
    let emulated = EMULATED.into_iter().map(|(name, wait)| Attesting::Emulated(name, wait));
    let all = [Attesting::Library, Attesting::Process].into_iter().chain(emulated);
    all.map(|attesting| row(load, attesting.name(), System { kind, attesting })).collect()
}

/// A system without attestation, and one over the library and over device processes.
fn beside_each_other(
    load: Load,
    [(trusting, without), (name, with)]: [(&str, Kind); 2],
) -> Result<Vec<Row>, Failure> {
    // No device is asked for anything.
    let system = System { kind: without, attesting: Attesting::Library };
    let mut rows = vec![row(load, trusting, system)?];
    for attesting in [Attesting::Library, Attesting::Process] {
        let name = format!("{name}, {}", attesting.name());
        rows.push(row(load, &name, System { kind: with, attesting })?);
    }
    Ok(rows)
}

fn row(load: Load, name: &str, system: System) -> Result<Row, Failure> {
    println!("  {:?}, {name}", system.kind);
    let measured = measure(&system, load).map_err(|it| format!("{name}: {it}"))?;
    let instructions = instructions::per_request(&system)?;
    Ok(Row { name: name.to_owned(), measured, instructions })
}

impl Report<'_> {
    fn begin(&mut self, heading: &Heading) {
        self.section(heading.heading, heading.text);
    }

    /// A table whose first row is what the others are compared with, and its picture.
    fn rows(&mut self, heading: &Heading, of: &str, rows: &[Row]) -> Result<(), Failure> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let titles = [
            "requests/s",
            "of the first",
            "median, us",
            "99 %, us",
            "CPU, us",
            "instructions",
            "of the first",
        ];
        self.table(&Table {
            corner: of.to_owned(),
            columns: titles.map(str::to_owned).to_vec(),
            rows: rows.iter().map(|it| (it.name.clone(), it.columns(first))).collect(),
        });
        let bar = |row: &Row| Bar { name: row.name.clone(), color: 0, value: row.measured.rate };
        let title = format!("{}, {of}: requests in a second", heading.heading);
        let bars = rows.iter().map(bar).collect();
        let file = format!("{}-{}", heading.file, of.replace([' ', ','], "-"));
        self.picture(&file, &Bars { title, bars }.svg(), 1)
    }
}

impl Row {
    /// The row's texts, beside the row that the others are compared with.
    fn columns(&self, first: &Self) -> Vec<String> {
        let mut latency = self.measured.latency.clone();
        let share = |own: f64, of: f64| format!("{:.2}", own / of.max(f64::MIN_POSITIVE));
        let of_first = self.instructions.zip(first.instructions).map(|(own, of)| share(own, of));
        let unknown = || "-".to_owned();
        vec![
            told(self.measured.rate),
            share(self.measured.rate, first.measured.rate),
            told(latency.below(0.5)),
            told(latency.below(0.99)),
            told(self.measured.cpu),
            self.instructions.map_or_else(unknown, told),
            of_first.unwrap_or_else(unknown),
        ]
    }
}
