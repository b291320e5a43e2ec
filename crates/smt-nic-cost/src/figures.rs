// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables and plots of the model.

mod transport;

use smt_report::{Axis, Line, Plot, Table, number};

use crate::model::{DESCRIPTOR_CYCLES, HostModel};
use crate::paper::{self, HARDWARE, Row, gain};
use crate::work::{Offload, Sessions, Setup, of_message, of_sessions};

pub use transport::Transport;

/// Lengths of messages in the tables of work.
const LENGTHS: [usize; 8] = [64, 256, 1_024, 4_096, 8_192, 65_536, 262_144, 1_048_576];
/// MTUs in them.
const MTUS: [usize; 2] = [1_500, 9_000];

/// The work of a message, by MTU, length and offload: counts of the model alone.
#[must_use]
pub fn work(mtu: usize) -> Table {
    let columns = ["descriptors", "PCIe bytes", "segments", "packets", "resyncs", "context hits"];
    let mut rows = Vec::new();
    for length in LENGTHS {
        for offload in Offload::ALL {
            let work = of_message(length, Setup { mtu, offload });
            let values = [
                work.descriptors,
                work.pcie_bytes,
                work.segments,
                work.packets,
                work.resyncs,
                work.context_hits,
            ];
            rows.push((format!("{length} B, {}", offload.name()), values.map(number).to_vec()));
        }
    }
    table("a message", &columns, rows)
}

/// Uses of contexts by the number of sessions that take turns.
#[must_use]
pub fn contexts() -> Table {
    let columns = ["hits a message", "misses a message", "PCIe bytes a message"];
    let row = |count| {
        let work = of_sessions(1_024, HARDWARE, Sessions { count, cached: CACHED });
        let values = [work.context_hits, work.context_misses, work.pcie_bytes];
        (number(count as f64), values.map(number).to_vec())
    };
    let rows = [1, 64, 128, 129, 256, 1_024].map(row).to_vec();
    table("sessions", &columns, rows)
}

/// The costs that were measured and fitted.
#[must_use]
pub fn costs(model: &HostModel) -> Table {
    let HostModel { machine, per_call, per_packet } = model;
    let row = |name: &str, value: f64, origin: &str| {
        (name.to_owned(), vec![number(value), origin.to_owned()])
    };
    let rows = vec![
        row("to seal a record", machine.seal.fixed, "measured here"),
        row("to seal a byte", machine.seal.per_byte, "measured here"),
        row("to open a record", machine.open.fixed, "measured here"),
        row("to open a byte", machine.open.per_byte, "measured here"),
        row("to copy a byte", machine.copy_per_byte, "measured here"),
        row("a descriptor", DESCRIPTOR_CYCLES, "assumed"),
        row("a segment or packet", *per_packet, "fitted"),
        row("a call, beside all this", *per_call, "fitted"),
    ];
    table("cycles", &["", "origin"], rows)
}

/// The rows of the paper that the model predicts.
#[must_use]
pub fn rows(rows: &[Row]) -> Table {
    let row = |row: &Row| {
        let verdict = match row.holds() {
            true => "holds".to_owned(),
            false => format!("off by {}", number(row.error)),
        };
        let predicted = format!("{} {}", number(row.predicted), row.unit);
        (row.name.to_owned(), vec![row.told.clone(), predicted, verdict])
    };
    let rows = rows.iter().map(row).collect();
    table("row", &["paper", "model", "outcome"], rows)
}

/// The paper's Figure 13 without its numbers: a call alone, by segmentation and MTU.
#[must_use]
pub fn segmentation(model: &HostModel) -> Table {
    let columns = ["none, us", "pairs, us", "TSO, us", "TSO, TLS, us", "none by TSO"];
    let mut rows = Vec::new();
    for mtu in MTUS {
        for length in [64, 1_024, 8_192, 65_536, 262_144] {
            let times =
                Offload::ALL.map(|offload| model.round_trip(length, Setup { mtu, offload }) * 1e6);
            let mut values = times.map(number).to_vec();
            values.push(number(times[0] / times[2]));
            rows.push((format!("MTU {mtu}, {length} B"), values));
        }
    }
    table("round trip", &columns, rows)
}

/// The cycles of a call that each step of offload saves at one end, as shares of the cycles without
/// any.
#[must_use]
pub fn saved(model: &HostModel, mtu: usize) -> Table {
    let columns = ["cycles, no offload", "pairs", "TSO", "TSO, TLS", "TLS's gain of throughput"];
    let row = |length: usize| {
        let cycles = Offload::ALL.map(|offload| model.call(length, Setup { mtu, offload }));
        let share = |at: usize| format!("{:.1} %", (1.0 - cycles[at] / cycles[0]) * 100.0);
        let setups = [Offload::Segments, Offload::SegmentsAndTls];
        let setups = setups.map(|offload| Setup { mtu, offload });
        let gained = format!("{:.1} %", gain(model, length, setups));
        let values = vec![number(cycles[0]), share(1), share(2), share(3), gained];
        (length.to_string(), values)
    };
    table("bytes", &columns, LENGTHS.map(row).to_vec())
}

/// The same as a plot.
#[must_use]
pub fn saved_plot(model: &HostModel, mtu: usize) -> String {
    let line = |(color, offload): (usize, Offload)| {
        let point = |length: usize| {
            let of = |offload| model.call(length, Setup { mtu, offload });
            let share = 1.0 - of(offload) / of(Offload::Packets);
            (length as f64, share * 100.0)
        };
        Line { name: offload.name().to_owned(), color, points: LENGTHS.map(point).to_vec() }
    };
    let plot = Plot {
        title: format!("What a NIC saves of a call's cycles at one end, MTU {mtu}"),
        x: Axis::logarithmic("bytes of a message", 64.0, 1e6),
        y: Axis::linear("% of the host's cycles", 60.0),
        lines: (0..).zip(Offload::ALL.into_iter().skip(1)).map(line).collect(),
    };
    plot.svg()
}

/// All tables in Markdown, with a heading each.
#[must_use]
pub fn page(model: &HostModel, transport: &Transport) -> String {
    let mut page = String::new();
    let mut add = |heading: &str, table: &Table| {
        page.push_str(&format!("## {heading}\n\n{}\n", table.markdown()));
    };
    for mtu in MTUS {
        add(&format!("Work of a message, MTU {mtu}: counted"), &work(mtu));
    }
    add("Contexts, 256 of them in the device's memory, two queues: counted", &contexts());
    add("Costs in cycles", &costs(model));
    add("Rows of the paper that were predicted", &rows(&paper::predicted(model)));
    add("Round trip of a call alone, by segmentation: predicted", &segmentation(model));
    for mtu in MTUS {
        add(&format!("What the NIC saves of a call at one end, MTU {mtu}"), &saved(model, mtu));
    }
    add(
        "Transport in the host and in the device: cycles of the host, measured",
        &transport.table(&model.machine),
    );
    page
}

fn table(corner: &str, columns: &[&str], rows: Vec<(String, Vec<String>)>) -> Table {
    Table {
        corner: corner.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        rows,
    }
}

/// Contexts in the device's own memory.
const CACHED: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_that_is_wrong_is_told_with_its_distance() {
        let row = |predicted: f64, error: f64| Row {
            name: "a row",
            told: "13 to 28".to_owned(),
            predicted,
            unit: "%",
            error,
        };
        let table = rows(&[row(20.0, 0.0), row(30.5, 2.5)]).markdown();
        assert!(table.contains("| a row | 13 to 28 | 20 % | holds |"), "{table}");
        assert!(table.contains("| a row | 13 to 28 | 30.5 % | off by 2.50 |"), "{table}");
    }
}
