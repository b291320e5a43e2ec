// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host's work by the place of the transport, as a table and a plot.

use smt_report::{Axis, Line, Plot, Table, number};

use super::table;
use crate::host_work::{HostWork, TransportPlace, measured};
use crate::machine::Machine;

/// A host's work at the calling end, measured here, by the place of the transport.
#[derive(Clone, Debug)]
pub struct Transport {
    rows: Vec<Row>,
}

/// The work for calls of one length.
#[derive(Clone, Copy, Debug)]
struct Row {
    length: usize,
    host: HostWork,
    host_behind_cipher: HostWork,
    device: HostWork,
}

impl Row {
    /// The cycles by place, in the order of [`PLACES`].
    fn cycles(&self, machine: &Machine) -> [f64; 3] {
        let works = [self.host, self.host_behind_cipher, self.device];
        works.map(|work| machine.cycles(work.seconds))
    }
}

impl Transport {
    /// Measures it; `rounds` of calls for each length and place.
    #[must_use]
    pub fn measured(rounds: u32) -> Self {
        let row = |length: usize| Row {
            length,
            host: measured(length, rounds, TransportPlace::Host),
            host_behind_cipher: measured(length, rounds, TransportPlace::HostBehindCipher),
            device: measured(length, rounds, TransportPlace::Device),
        };
        Self { rows: [64, 256, 1_024, 4_096, 8_192, 65_536].map(row).to_vec() }
    }

    /// The table, in cycles of this machine.
    #[must_use]
    pub fn table(&self, machine: &Machine) -> Table {
        let [host, behind_cipher, device] = PLACES;
        let columns = [host, behind_cipher, device, "datagrams", "PCIe bytes of the rings"];
        let row = |row: &Row| {
            let cycles = row.cycles(machine);
            let mut values = cycles.map(|cycles| number(cycles.round())).to_vec();
            values.push(number(row.host.datagrams));
            values.push(row.device.rings.pcie_bytes.to_string());
            (row.length.to_string(), values)
        };
        table("bytes", &columns, self.rows.iter().map(row).collect())
    }

    /// The plot, in cycles of this machine.
    #[must_use]
    pub fn plot(&self, machine: &Machine) -> String {
        let line = |(at, name): (usize, &str)| {
            let point = |row: &Row| (row.length as f64, row.cycles(machine)[at]);
            Line { name: name.to_owned(), color: at, points: self.rows.iter().map(point).collect() }
        };
        let plot = Plot {
            title: "A host's cycles for a call, by the place of the transport".to_owned(),
            x: Axis::logarithmic("bytes of a message", 64.0, 65_536.0),
            y: Axis::logarithmic("cycles at the calling end", 10.0, 1e5),
            lines: (0..).zip(PLACES).map(line).collect(),
        };
        plot.svg()
    }
}

/// The places, by what is told of them.
const PLACES: [&str; 3] = ["host does all", "NIC seals and opens", "transport in the NIC"];
