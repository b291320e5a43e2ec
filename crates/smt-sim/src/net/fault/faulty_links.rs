// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cables on which faults strike.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use smt_proto::Time;

use super::{FaultKind, LinkFault, Strikes};
use crate::net::network::LinkRule;
use crate::net::packet::{Packet, packets_of};
use crate::random::Random;

/// Cables with faults.
pub struct FaultyLinks {
    faults: Vec<LinkFault>,
    /// Packets that a burst will still take, for each fault.
    bursts: Vec<u64>,
    random: Random,
    strikes: Rc<RefCell<Strikes>>,
    past: VecDeque<Packet>,
}

impl FaultyLinks {
    /// These faults; what strikes is noted in `strikes`.
    pub fn new(faults: Vec<LinkFault>, random: Random, strikes: Rc<RefCell<Strikes>>) -> Self {
        Self { bursts: vec![0; faults.len()], faults, random, strikes, past: VecDeque::new() }
    }

    fn strikes(&mut self, at: usize, now: Time, packet: &Packet) -> bool {
        let fault = &self.faults[at];
        if !fault.concerns(now, packet) {
            return false;
        }
        match fault.kind {
            FaultKind::Shrink | FaultKind::HalfPartition | FaultKind::EndLoss => {
                fault.cuts(now, packet)
            }
            FaultKind::OneTypeLoss => {
                let mut packets = packets_of(&packet.bytes);
                packets.any(|(of, _)| of as u64 == fault.extent) && self.random.chance(fault.chance)
            }
            _ => self.bursts[at] > 0 || self.random.chance(fault.chance),
        }
    }

    /// Returns the packet as it passes, if it does, and how much later; packets that come beside it
    /// go to `out`.
    fn passed(
        &mut self,
        now: Time,
        packet: Packet,
        out: &mut Vec<(Packet, u64)>,
    ) -> Option<(Packet, u64)> {
        let (mut packet, mut later) = (packet, 0);
        let genuine = packet.clone();
        for at in 0..self.faults.len() {
            if !self.strikes(at, now, &packet) {
                continue;
            }
            match self.strike(at, packet, out) {
                Fate::Lost => return None,
                Fate::Goes(changed, more) => {
                    packet = changed;
                    later += more;
                }
            }
        }
        if self.past.len() == PAST {
            self.past.pop_front();
        }
        self.past.push_back(genuine);
        Some((packet, later))
    }

    /// Applies a fault to a packet.
    fn strike(&mut self, at: usize, packet: Packet, out: &mut Vec<(Packet, u64)>) -> Fate {
        let LinkFault { kind, extent, .. } = self.faults[at];
        self.strikes.borrow_mut().note(kind);
        match kind {
            FaultKind::BurstLoss => {
                // How many are lost after this one.
                self.bursts[at] = match self.bursts[at] {
                    0 => self.random.below(extent),
                    more => more - 1,
                };
                Fate::Lost
            }
            FaultKind::Delay => Fate::Goes(packet, extent),
            FaultKind::Reorder => Fate::Goes(packet, self.random.below(extent)),
            FaultKind::Duplicate => {
                out.push((packet.clone(), self.random.below(extent)));
                Fate::Goes(packet, 0)
            }
            FaultKind::Corrupt => {
                let bytes = self.corrupted(&packet.bytes);
                Fate::Goes(Packet { bytes, ..packet }, 0)
            }
            FaultKind::Truncate => {
                let length = self.random.below(packet.bytes.len() as u64) as usize;
                let bytes = packet.bytes.slice(..length);
                Fate::Goes(Packet { bytes, ..packet }, 0)
            }
            FaultKind::Replay => {
                if !self.past.is_empty() {
                    let old = self.random.below(self.past.len() as u64) as usize;
                    out.push((self.past[old].clone(), self.random.below(extent)));
                }
                Fate::Goes(packet, 0)
            }
            FaultKind::Forge => {
                let bytes = self.forged(&packet.bytes);
                let forged = Packet { bytes, ..packet.clone() };
                out.push((forged, self.random.below(extent)));
                Fate::Goes(packet, 0)
            }
            _ => Fate::Lost,
        }
    }

    fn corrupted(&mut self, bytes: &Bytes) -> Bytes {
        let mut bytes = bytes.to_vec();
        for _ in 0..self.random.between(1, 3) {
            let bit = self.random.below(bytes.len() as u64 * 8) as usize;
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
        Bytes::from(bytes)
    }

    /// A packet of the same kind with other content; or of another version; or nothing but noise.
    fn forged(&mut self, bytes: &Bytes) -> Bytes {
        let mut bytes = bytes.to_vec();
        let kept = match self.random.below(4) {
            0 => 0,
            1 => 12,
            _ => 36,
        };
        let kept = kept.min(bytes.len());
        self.random.fill(&mut bytes[kept..]);
        if self.random.chance(100_000) && !bytes.is_empty() {
            bytes[0] = self.random.any() as u8;
        }
        Bytes::from(bytes)
    }
}

enum Fate {
    Lost,
    Goes(Packet, u64),
}

impl LinkRule for FaultyLinks {
    fn pass(&mut self, now: Time, packet: Packet, out: &mut Vec<(Packet, u64)>) {
        let before = out.len();
        let passed = self.passed(now, packet, out);
        out.extend(passed);
        // Neither what came twice nor what was forged passes a cable that is cut.
        let mut place = 0;
        out.retain(|(packet, _)| {
            place += 1;
            place <= before || !self.faults.iter().any(|fault| fault.cuts(now, packet))
        });
    }
}

/// Packets that may come again.
const PAST: usize = 256;

#[cfg(test)]
mod tests;
