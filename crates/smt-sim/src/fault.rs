// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of a network as rules: what, between which hosts, when, how often.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use smt_proto::Time;

use crate::network::LinkRule;
use crate::packet::{HostId, Packet};
use crate::random::Random;

/// What can go wrong, on a cable or in a host.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FaultKind {
    /// An attacker on the path, see [`crate::Adversary`].
    Adversary,
    /// Several packets in a row are lost.
    BurstLoss,
    /// A host's clock runs fast or slow.
    ClockDrift,
    /// A host's clock jumps ahead.
    ClockStep,
    /// Bits flip.
    Corrupt,
    /// A host crashes; what it stored durably is there when it comes back.
    CrashKeeping,
    /// A host crashes and comes back with nothing.
    CrashLosing,
    /// Packets take longer.
    Delay,
    /// Packets come twice.
    Duplicate,
    /// Packets that nobody sent.
    Forge,
    /// Packets are lost.
    Loss,
    /// A host's limits of memory, sessions and ids are small enough to be reached.
    MemoryLimit,
    /// Packets of one type are lost.
    OneTypeLoss,
    /// Nothing gets through.
    Partition,
    /// A host does nothing for a while and then goes on.
    Pause,
    /// Packets overtake each other.
    Reorder,
    /// Old packets come again.
    Replay,
    /// A host's socket takes nothing for a while.
    SendRefused,
    /// A host's socket takes only a part of a batch.
    SendShort,
    /// The path carries only small packets from now on.
    Shrink,
    /// A host takes no client and no request any more, and then begins anew; what it stored durably is there.
    ShutDown,
    /// Packets are cut.
    Truncate,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Adversary,
        Self::BurstLoss,
        Self::ClockDrift,
        Self::ClockStep,
        Self::Corrupt,
        Self::CrashKeeping,
        Self::CrashLosing,
        Self::Delay,
        Self::Duplicate,
        Self::Forge,
        Self::Loss,
        Self::MemoryLimit,
        Self::OneTypeLoss,
        Self::Partition,
        Self::Pause,
        Self::Reorder,
        Self::Replay,
        Self::SendRefused,
        Self::SendShort,
        Self::Shrink,
        Self::ShutDown,
        Self::Truncate,
    ];
}

/// A fault of the cables.
#[derive(Clone, Debug)]
pub struct LinkFault {
    /// One of those that concern packets.
    pub kind: FaultKind,
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// Between these two only, in both directions.
    pub pair: Option<(HostId, HostId)>,
    /// How often, in millionths of the packets.
    pub chance: u32,
    /// How much: nanoseconds of delay, packets of a burst, bytes that still pass, or a packet type.
    pub extent: u64,
}

/// How often each kind has struck.
#[derive(Clone, Debug, Default)]
pub struct Strikes([u64; FaultKind::ALL.len()]);

impl Strikes {
    /// Notes a strike.
    pub fn note(&mut self, kind: FaultKind) {
        self.0[kind as usize] += 1;
    }

    /// How often this kind has struck.
    pub fn of(&self, kind: FaultKind) -> u64 {
        self.0[kind as usize]
    }
}

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
        Self {
            bursts: vec![0; faults.len()],
            faults,
            random,
            strikes,
            past: VecDeque::new(),
        }
    }

    fn strikes(&mut self, at: usize, now: Time, packet: &Packet) -> bool {
        let fault = &self.faults[at];
        let is_between = fault.pair.is_none_or(|(a, b)| {
            (a, b) == (packet.from, packet.to) || (b, a) == (packet.from, packet.to)
        });
        if now < fault.from || now >= fault.until || !is_between {
            return false;
        }
        match fault.kind {
            FaultKind::Shrink => packet.bytes.len() as u64 > fault.extent,
            FaultKind::OneTypeLoss => {
                let is_type = packet.bytes.get(1).map(|byte| u64::from(*byte));
                is_type == Some(fault.extent) && self.random.chance(fault.chance)
            }
            FaultKind::BurstLoss if self.bursts[at] > 0 => {
                self.bursts[at] -= 1;
                true
            }
            _ => self.random.chance(fault.chance),
        }
    }

    /// What a fault makes of a packet.
    fn strike(&mut self, at: usize, packet: Packet, out: &mut Vec<(Packet, u64)>) -> Fate {
        let LinkFault { kind, extent, .. } = self.faults[at];
        self.strikes.borrow_mut().note(kind);
        match kind {
            FaultKind::BurstLoss if self.bursts[at] == 0 => {
                self.bursts[at] = self.random.below(extent);
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
                let forged = Packet {
                    bytes,
                    ..packet.clone()
                };
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
        let (mut packet, mut later) = (packet, 0);
        let genuine = packet.clone();
        for at in 0..self.faults.len() {
            if !self.strikes(at, now, &packet) {
                continue;
            }
            match self.strike(at, packet, out) {
                Fate::Lost => return,
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
        out.push((packet, later));
    }
}

/// Packets that may come again.
const PAST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u8) -> Packet {
        Packet {
            from: HostId(0),
            to: HostId(1),
            bytes: Bytes::from(vec![number; 100]),
            priority: 0,
            is_marked: false,
            is_trimmed: false,
            entropy: 0,
        }
    }

    /// What arrives of 200 packets, one each microsecond, while a fault strikes half of them.
    fn arrivals(kind: FaultKind, chance: u32, extent: u64) -> (Vec<(Packet, u64)>, u64) {
        let strikes = Rc::new(RefCell::new(Strikes::default()));
        let fault = LinkFault {
            kind,
            from: Time::default(),
            until: Time::from_nanos(1_000_000),
            pair: None,
            chance,
            extent,
        };
        let mut links = FaultyLinks::new(vec![fault], Random::new(7), Rc::clone(&strikes));
        let mut out = Vec::new();
        for number in 0..200 {
            let now = Time::from_nanos(u64::from(number) * 1_000);
            links.pass(now, packet(number), &mut out);
        }
        let count = strikes.borrow().of(kind);
        (out, count)
    }

    const HALF: u32 = 500_000;

    #[test]
    fn loss_partition_and_types_take_packets() {
        let (left, struck) = arrivals(FaultKind::Loss, HALF, 0);
        assert!(left.len() as u64 == 200 - struck && (60..140).contains(&struck));
        assert!(arrivals(FaultKind::Partition, 1_000_000, 0).0.is_empty());
        assert_eq!(arrivals(FaultKind::OneTypeLoss, 1_000_000, 5).0.len(), 199);
        assert!(arrivals(FaultKind::Shrink, 0, 99).0.is_empty());
        assert_eq!(arrivals(FaultKind::Shrink, 0, 100).0.len(), 200);
    }

    #[test]
    fn a_burst_takes_packets_in_a_row() {
        let (left, struck) = arrivals(FaultKind::BurstLoss, 10_000, 30);
        assert_eq!(left.len() as u64, 200 - struck);
        let gaps = left
            .windows(2)
            .filter(|pair| pair[1].0.bytes[0] != pair[0].0.bytes[0] + 1);
        assert!(struck > 10 && gaps.count() < 6, "{struck} lost");
    }

    #[test]
    fn others_change_delay_or_add_packets() {
        let (all, struck) = arrivals(FaultKind::Corrupt, HALF, 0);
        let changed = all
            .iter()
            .filter(|(p, _)| p.bytes.iter().any(|b| *b != p.bytes[50]));
        assert!(all.len() == 200 && changed.count() as u64 >= struck - 2);
        let (all, _) = arrivals(FaultKind::Truncate, HALF, 0);
        assert!(all.iter().any(|(p, _)| p.bytes.len() < 100));
        let (all, struck) = arrivals(FaultKind::Delay, HALF, 777);
        assert_eq!(
            all.iter().filter(|(_, later)| *later == 777).count() as u64,
            struck
        );
        let (all, struck) = arrivals(FaultKind::Duplicate, HALF, 10);
        assert_eq!(all.len() as u64, 200 + struck);
        let (all, _) = arrivals(FaultKind::Replay, HALF, 10);
        assert!(all.len() > 240);
        let (all, struck) = arrivals(FaultKind::Forge, HALF, 10);
        assert_eq!(all.len() as u64, 200 + struck);
        let (all, _) = arrivals(FaultKind::Reorder, HALF, 5_000);
        assert!(all.iter().any(|(_, later)| *later > 1_000));
    }

    #[test]
    fn a_fault_strikes_in_its_time_and_between_its_hosts() {
        let strikes = Rc::new(RefCell::new(Strikes::default()));
        let fault = LinkFault {
            kind: FaultKind::Partition,
            from: Time::from_nanos(100),
            until: Time::from_nanos(200),
            pair: Some((HostId(1), HostId(0))),
            chance: 1_000_000,
            extent: 0,
        };
        let mut links = FaultyLinks::new(vec![fault], Random::new(7), strikes);
        let mut passes = |at, to| {
            let mut out = Vec::new();
            let to = HostId(to);
            links.pass(Time::from_nanos(at), Packet { to, ..packet(1) }, &mut out);
            !out.is_empty()
        };
        let passed = [
            passes(99, 1),
            passes(100, 1),
            passes(150, 2),
            passes(200, 1),
        ];
        assert_eq!(passed, [true, false, true, true]);
    }
}
