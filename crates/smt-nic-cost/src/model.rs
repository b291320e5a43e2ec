// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cycles of a host for a call, and the time of one alone, as the paper's implementation would take
//! them.
//!
//! A call has a request and a reply of the same length. At one end the host sends the one and
//! receives the other:
//!
//! ```text
//! cycles = per call + per packet x (segments out + packets in) + 72 x descriptors
//!          + copies + seals, unless the NIC does + openings
//! ```
//!
//! - **Measured here**: seals, openings and copies ([`Machine`]).
//! - **Counted by the model of the NIC**: segments, packets, descriptors ([`MessageWork`]).
//! - **Assumed**: a descriptor and its completion take 30 ns at 2.4 GHz; a segment on its way out
//!   costs a stack as much as a packet on its way in; cycles here are cycles there.
//! - **Fitted** to two rows of the paper: the cycles per call and per packet.

use thiserror::Error;

use crate::machine::Machine;
use crate::paper::{CLOCK_HZ, LINK_BITS, Range, SHORT_ROUND_TRIP};
use crate::work::{MessageWork, Offload, Setup, of_message, records};

/// The model, fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostModel {
    /// The costs of bytes.
    pub machine: Machine,
    /// Cycles of a call that depend on nothing: system calls, wake-ups, locks.
    pub per_call: f64,
    /// Cycles of a stack for a segment or a packet.
    pub per_packet: f64,
}

/// A ratio of two setups that the paper has measured: the cycles of the first by the second's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted {
    /// Bytes of requests and replies.
    pub length: usize,
    /// The setup that takes more cycles, and the one that takes fewer.
    pub setups: [Setup; 2],
    /// Their ratio.
    pub ratio: Range,
}

/// No constants give these rows.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[error(
    "no costs of a call and a packet give both rows that the model is fitted to: \
     {per_call:.0} cycles a call and {per_packet:.0} a packet would"
)]
pub struct NotFitted {
    /// The cycles of a call that the equations give.
    pub per_call: f64,
    /// The cycles of a packet that they give.
    pub per_packet: f64,
}

impl HostModel {
    /// The model whose ratios are the middles of these two.
    ///
    /// # Errors
    /// The equations ask for a negative cost, or for none that is finite.
    pub fn fitted(machine: Machine, rows: &[Fitted; 2]) -> Result<Self, NotFitted> {
        // (call + packet x many + rest) = ratio x (call + packet x few + less): linear in both.
        let equation = |row: &Fitted| {
            let ratio = row.ratio.middle();
            let [more, less] = row.setups.map(|setup| Parts::of(row.length, setup, &machine));
            let per_call = 1.0 - ratio;
            let per_packet = more.packets - ratio * less.packets;
            (per_call, per_packet, ratio * less.bytes - more.bytes)
        };
        let [(a, b, x), (c, d, y)] = [equation(&rows[0]), equation(&rows[1])];
        let determinant = a * d - b * c;
        let per_call = (x * d - b * y) / determinant;
        let per_packet = (a * y - x * c) / determinant;
        let is_cost = |value: f64| value.is_finite() && value >= 0.0;
        if !(is_cost(per_call) && is_cost(per_packet)) {
            return Err(NotFitted { per_call, per_packet });
        }
        Ok(Self { machine, per_call, per_packet })
    }

    /// Cycles of a call at one end.
    #[must_use]
    pub fn call(&self, length: usize, setup: Setup) -> f64 {
        let parts = Parts::of(length, setup, &self.machine);
        self.per_call + self.per_packet * parts.packets + parts.bytes
    }

    /// Seconds of a call alone on the paper's machines, from its beginning to its end.
    ///
    /// The stages of a direction work at the same time: the sender's host goes on segment by
    /// segment, the wire and the receiver's interrupts packet by packet, as soon as the first
    /// segment is with the NIC. The application gets a message when all of it is there, which is
    /// opened and copied then.
    #[must_use]
    pub fn round_trip(&self, length: usize, setup: Setup) -> f64 {
        let work = of_message(length, setup);
        let seal = sealing(length, setup, &self.machine);
        let copy = self.machine.copy_per_byte * length as f64;
        let stack = self.per_packet * work.segments;
        let sending = copy + seal + stack + DESCRIPTOR_CYCLES * work.descriptors;
        let sending = sending / CLOCK_HZ;
        let first = sending / work.segments.max(1.0);
        let wire = work.packet_bytes * 8.0 / LINK_BITS;
        let interrupts = self.per_packet * work.packets / CLOCK_HZ;
        let last = (wire + interrupts) / work.packets.max(1.0);
        let slowest = (sending - first).max(wire - last).max(interrupts - last);
        let arrived = first + slowest.max(0.0) + last;
        let taking = (opening(length, &self.machine) + copy) / CLOCK_HZ;
        SHORT_ROUND_TRIP + 2.0 * (arrived + taking)
    }
}

/// The parts of a call that are known before a model is fitted.
struct Parts {
    /// Segments out and packets in.
    packets: f64,
    /// Cycles for bytes and descriptors.
    bytes: f64,
}

impl Parts {
    fn of(length: usize, setup: Setup, machine: &Machine) -> Self {
        let MessageWork { segments, packets, descriptors, .. } = of_message(length, setup);
        let copies = 2.0 * machine.copy_per_byte * length as f64;
        let ciphers = sealing(length, setup, machine) + opening(length, machine);
        Self {
            packets: segments + packets,
            bytes: copies + ciphers + DESCRIPTOR_CYCLES * descriptors,
        }
    }
}

/// Cycles of the host for sealing a message.
fn sealing(length: usize, setup: Setup, machine: &Machine) -> f64 {
    if setup.offload == Offload::SegmentsAndTls {
        return 0.0;
    }
    let records = records(length).into_iter();
    records.map(|bytes| machine.seal.of(bytes)).sum()
}

/// Cycles of the host for opening one: no NIC of the paper opens.
fn opening(length: usize, machine: &Machine) -> f64 {
    let records = records(length).into_iter();
    records.map(|bytes| machine.open.of(bytes)).sum()
}

/// Cycles for a descriptor and its completion: 30 ns at 2.4 GHz, for 48 bytes written and 16 read.
pub const DESCRIPTOR_CYCLES: f64 = 72.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Linear;
    use crate::paper::FITTED;

    const MACHINE: Machine = Machine {
        clock_hz: 2.4e9,
        seal: Linear { fixed: 400.0, per_byte: 0.7 },
        open: Linear { fixed: 400.0, per_byte: 0.7 },
        copy_per_byte: 0.15,
    };

    #[test]
    fn a_fitted_model_gives_the_rows_that_it_was_fitted_to() {
        let model = HostModel::fitted(MACHINE, &FITTED).expect("positive costs");
        for row in FITTED {
            let [more, less] = row.setups.map(|setup| model.call(row.length, setup));
            assert!((more / less - row.ratio.middle()).abs() < 1e-9, "{row:?}");
        }
    }

    #[test]
    fn rows_that_no_costs_explain_are_refused() {
        let free = Machine { seal: Linear { fixed: 0.0, per_byte: 0.0 }, ..MACHINE };
        let refused = HostModel::fitted(free, &FITTED);
        assert!(refused.is_err(), "an engine that saves nothing saves 8 %: {refused:?}");
    }

    #[test]
    fn each_step_of_offload_saves_cycles_of_long_messages() {
        let model = HostModel::fitted(MACHINE, &FITTED).expect("positive costs");
        let cycles = Offload::ALL.map(|offload| model.call(65_536, Setup { mtu: 1_500, offload }));
        assert!(cycles.is_sorted_by(|more, less| more > less), "{cycles:?}");
    }
}
