// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rows of the SMT paper (*Designing Transport-Level Encryption for Datacenter Networks*, §5), and
//! what the model says instead.
//!
//! Two Xeon Silver 4314 with ConnectX-7 at 100 Gb/s back to back, Linux 6.2, AES-128-GCM. The text
//! gives ranges over numbers of concurrent calls; absolute rates and latencies are in its plots.

use crate::model::{Fitted, HostModel};
use crate::work::{Offload, Setup};

/// A range of ratios that the paper gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Ratio {
    /// The one in the middle.
    #[must_use]
    pub fn middle(self) -> f64 {
        f64::midpoint(self.least, self.most)
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
    Fitted {
        length: 1_024,
        setups: [SOFTWARE, HARDWARE],
        ratio: Ratio {
            least: 1.05,
            most: 1.11,
        },
    },
    Fitted {
        length: 8_192,
        setups: [SOFTWARE, at(9_000, Offload::Segments)],
        ratio: Ratio {
            least: 1.16,
            most: 1.31,
        },
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
    fn new(
        name: &'static str,
        unit: &'static str,
        [least, most]: [f64; 2],
        predicted: f64,
    ) -> Self {
        let told = match (least.is_finite(), most.is_finite()) {
            (true, true) if least == most => format!("{least:.0}"),
            (true, true) => format!("{least:.0} to {most:.0}"),
            (true, false) => format!("at least {}", smt_report::number(least)),
            (false, _) => format!("at most {}", smt_report::number(most)),
        };
        Self {
            name,
            told,
            predicted,
            unit,
            error: predicted - predicted.clamp(least, most),
        }
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
            [13.0, 28.0],
            gain(model, 8_192, [HARDWARE, at(9_000, Offload::SegmentsAndTls)]),
        ),
        Row::new(
            "§5.2 the engine's gain of throughput is largest at 1 KB: at 64 B less",
            "% more",
            [f64::NEG_INFINITY, engine(1_024)],
            engine(64),
        ),
        Row::new(
            "§5.2 the same: at 8 KB less",
            "% more",
            [f64::NEG_INFINITY, engine(1_024)],
            engine(8_192),
        ),
        Row::new(
            "§5.2 1.2 million calls of 1 KB a second on 16 cores, by all systems",
            "million/s",
            [1.2, f64::INFINITY],
            rate,
        ),
        Row::new(
            "§5.2 a core of interrupts ends at 700,000 calls of 64 B a second: one for all",
            "thousand/s",
            [f64::NEG_INFINITY, 700.0],
            one_core,
        ),
        Row::new(
            "§5.1 round trip alone: saved by the engine, 64 B to 64 KB",
            "% of it",
            [f64::NEG_INFINITY, 7.0],
            most_saved,
        ),
        Row::new(
            "§5.1 round trip alone: saved by the engine at 500 KB",
            "% of it",
            [1.0, 1.0],
            saved(500_000),
        ),
    ]
}

/// Percent of throughput that the second of two setups has more, where the CPU bounds it.
#[must_use]
pub fn gain(model: &HostModel, length: usize, setups: [Setup; 2]) -> f64 {
    let [before, after] = setups.map(|setup| model.call(length, setup));
    (before / after - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_wrong_by_its_distance_from_the_range() {
        let row = |predicted| Row::new("", "", [13.0, 28.0], predicted).error;
        assert_eq!([row(20.0), row(10.0), row(30.5)], [0.0, -3.0, 2.5]);
        let most = Row::new("", "", [f64::NEG_INFINITY, 7.0], 8.0);
        assert_eq!((most.error, most.told.as_str()), (1.0, "at most 7"));
        assert!(!most.holds());
    }
}
