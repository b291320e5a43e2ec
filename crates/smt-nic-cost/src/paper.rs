// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of the SMT paper (*Designing Transport-Level Encryption for Datacenter Networks*, §5), and
//! what the model says instead.
//!
//! Two Xeon Silver 4314 with ConnectX-7 at 100 Gb/s back to back, Linux 6.2, AES-128-GCM. The text
//! gives ranges over numbers of concurrent calls; absolute rates and latencies are in its plots.

use crate::model::{Fitted, HostModel};
use crate::work::{Offload, Setup};

/// A range of values that the paper gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Range {
    const fn of(least: f64, most: f64) -> Self {
        Self { least, most }
    }

    const fn at_least(least: f64) -> Self {
        Self::of(least, f64::INFINITY)
    }

    const fn at_most(most: f64) -> Self {
        Self::of(f64::NEG_INFINITY, most)
    }

    /// The value in the middle.
    #[must_use]
    pub fn middle(self) -> f64 {
        f64::midpoint(self.least, self.most)
    }

    /// How far a value is beyond; 0 within.
    fn beyond(self, value: f64) -> f64 {
        value - value.clamp(self.least, self.most)
    }

    fn text(self) -> String {
        let Self { least, most } = self;
        match (least.is_finite(), most.is_finite()) {
            (true, true) => format!("{least:.0} to {most:.0}"),
            (true, false) => format!("at least {}", smt_report::number(least)),
            (false, _) => format!("at most {}", smt_report::number(most)),
        }
    }
}

/// Cycles a second of the paper's hosts: their processor's base clock.
pub const CLOCK_HZ: f64 = 2.4e9;
/// Bits a second of the paper's link.
pub const LINK_BITS: f64 = 100e9;
/// Cores at each end: twelve for applications, four for the stack.
pub const CORES: f64 = 16.0;
/// Seconds of a short call alone, beyond what the model counts. The paper has it in a plot; 15 us
/// is assumed, of the order that Homa's authors give for their module in Linux.
pub const SHORT_ROUND_TRIP: f64 = 15e-6;

const fn at(mtu: usize, offload: Offload) -> Setup {
    Setup { mtu, offload }
}

/// SMT-sw at an Ethernet's MTU.
pub const SOFTWARE: Setup = at(1_500, Offload::Segments);
/// SMT-hw at an Ethernet's MTU.
pub const HARDWARE: Setup = at(1_500, Offload::SegmentsAndTls);

/// The rows that the model is fitted to: what the TLS engine gains at 1 KB (§5.2: 5 to 11 %), and
/// what a large MTU gains without that engine at 8 KB (16 to 31 %).
pub const FITTED: [Fitted; 2] = [
    Fitted { length: 1_024, setups: [SOFTWARE, HARDWARE], ratio: Range::of(1.05, 1.11) },
    Fitted {
        length: 8_192,
        setups: [SOFTWARE, at(9_000, Offload::Segments)],
        ratio: Range::of(1.16, 1.31),
    },
];

/// A row that the model was not fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its place in the paper, and what it says.
    pub name: &'static str,
    /// The paper's value, as told.
    pub told: String,
    /// The model's, in the same unit.
    pub predicted: f64,
    /// The unit.
    pub unit: &'static str,
    /// How far the model is beyond the paper's range; 0 within.
    pub error: f64,
}

impl Row {
    fn new(name: &'static str, unit: &'static str, range: Range, predicted: f64) -> Self {
        Self { name, told: range.text(), predicted, unit, error: range.beyond(predicted) }
    }

    /// The same where the paper has other words than its range.
    fn told(self, told: &str) -> Self {
        Self { told: told.to_owned(), ..self }
    }

    /// Whether the model is within the paper's range.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.error == 0.0
    }
}

/// The rows that the model was not fitted to, with its word on each.
#[must_use]
pub fn predicted(model: &HostModel) -> Vec<Row> {
    let engine = |length| gain(model, length, [SOFTWARE, HARDWARE]);
    let saved = |length| {
        let [software, hardware] = [SOFTWARE, HARDWARE].map(|at| model.round_trip(length, at));
        (1.0 - hardware / software) * 100.0
    };
    let sizes = [64, 256, 1_024, 4_096, 8_192, 16_384, 65_536];
    let most_saved = sizes.map(saved).into_iter().fold(f64::MIN, f64::max);
    let rate = CORES * CLOCK_HZ / model.call(1_024, SOFTWARE) / 1e6;
    let one_core = CLOCK_HZ / model.call(64, SOFTWARE) / 1e3;
    vec![
        Row::new(
            "§5.2 throughput at 8 KB with the engine: MTU 9000 over 1500",
            "% more",
            Range::of(13.0, 28.0),
            gain(model, 8_192, [HARDWARE, at(9_000, Offload::SegmentsAndTls)]),
        ),
        Row::new(
            "§5.2 the engine's gain of throughput is largest at 1 KB: at 64 B less",
            "% more",
            Range::at_most(engine(1_024)),
            engine(64),
        )
        .told(LESS),
        Row::new(
            "§5.2 the same: at 8 KB less",
            "% more",
            Range::at_most(engine(1_024)),
            engine(8_192),
        )
        .told(LESS),
        Row::new(
            "§5.2 1.2 million calls of 1 KB a second on 16 cores, by all systems",
            "million/s",
            Range::at_least(1.2),
            rate,
        ),
        Row::new(
            "§5.2 a core of interrupts ends at 700,000 calls of 64 B a second: one for all",
            "thousand/s",
            Range::at_most(700.0),
            one_core,
        ),
        Row::new(
            "§5.1 round trip alone: saved by the engine, 64 B to 64 KB",
            "% of it",
            Range::at_most(7.0),
            most_saved,
        ),
        Row::new(
            "§5.1 round trip alone: saved by the engine at 500 KB",
            "% of it",
            Range::of(0.5, 1.5),
            saved(500_000),
        )
        .told("1"),
    ]
}

/// The paper's word on gains whose numbers are in its plots alone.
const LESS: &str = "less than at 1 KB";

/// Percent of throughput that the second of two setups has more, where the CPU bounds it.
#[must_use]
pub fn gain(model: &HostModel, length: usize, setups: [Setup; 2]) -> f64 {
    let [before, after] = setups.map(|setup| model.call(length, setup));
    (before / after - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Linear, Machine};

    #[test]
    fn a_row_is_wrong_by_its_distance_from_the_range() {
        let row = |predicted| Row::new("", "", Range::of(13.0, 28.0), predicted).error;
        assert_eq!([row(20.0), row(10.0), row(30.5)], [0.0, -3.0, 2.5]);
        let most = Row::new("", "", Range::at_most(7.0), 8.0);
        assert_eq!((most.error, most.told.as_str()), (1.0, "at most 7"));
        assert!(!most.holds());
    }
    #[test]
    fn the_papers_word_is_no_value_of_the_model() {
        let machine = Machine { clock_hz: CLOCK_HZ, seal: LINE, open: LINE, copy_per_byte: 0.15 };
        let model = HostModel::fitted(machine, &FITTED).expect("positive costs");
        let rows = predicted(&model);
        let told: Vec<_> = rows.iter().map(|row| row.told.as_str()).collect();
        let expected = [
            "13 to 28",
            "less than at 1 KB",
            "less than at 1 KB",
            "at least 1.20",
            "at most 700",
            "at most 7",
            "1",
        ];
        assert_eq!(told, expected);
        // The paper's 1 % is rounded.
        let last = Range::of(0.5, 1.5).beyond(rows[6].predicted);
        assert_eq!(rows[6].error, last);
    }

    const LINE: Linear = Linear { fixed: 400.0, per_byte: 0.7 };
}
