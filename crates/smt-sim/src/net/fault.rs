// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of a network as rules: what, between which hosts, when, how often.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use bytes::Bytes;
use smt_proto::Time;
use smt_wire::{DataHeader, PacketType, VERSION};

use crate::net::adversary::Move;
use crate::net::network::LinkRule;
use crate::net::packet::{HostId, Packet, packets_of};
use crate::random::Random;

/// A kind of fault, on a cable or in a host.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FaultKind {
    /// An attacker on the path, see [`crate::net::Adversary`].
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
    /// DATA from an offset on is lost, in one direction or all: beginnings of messages arrive, and
    /// no more.
    EndLoss,
    /// Packets that nobody sent.
    Forge,
    /// Nothing gets through in one direction, and everything in the other.
    HalfPartition,
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
    /// A host takes no client and no request any more, and then begins anew; what it stored durably
    /// is there.
    ShutDown,
    /// Packets are cut.
    Truncate,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::Adversary,
        Self::BurstLoss,
        Self::ClockDrift,
        Self::ClockStep,
        Self::Corrupt,
        Self::CrashKeeping,
        Self::CrashLosing,
        Self::Delay,
        Self::Duplicate,
        Self::EndLoss,
        Self::Forge,
        Self::HalfPartition,
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
    /// Between these two only, in both directions; of those kinds that have one direction, from the
    /// first to the second.
    pub pair: Option<(HostId, HostId)>,
    /// How often, in millionths of the packets.
    pub chance: u32,
    /// How much: nanoseconds of delay, packets of a burst, bytes that still pass, an offset, or a
    /// packet type.
    pub extent: u64,
}

impl LinkFault {
    /// Whether it is there now, between the hosts of this packet.
    fn concerns(&self, now: Time, packet: &Packet) -> bool {
        let has_direction = matches!(self.kind, FaultKind::EndLoss | FaultKind::HalfPartition);
        let is_between = self.pair.is_none_or(|(a, b)| {
            (a, b) == (packet.from, packet.to)
                || (b, a) == (packet.from, packet.to) && !has_direction
        });
        self.from <= now && now < self.until && is_between
    }

    /// Whether this packet cannot pass now, whatever it is.
    fn cuts(&self, now: Time, packet: &Packet) -> bool {
        self.concerns(now, packet)
            && match self.kind {
                FaultKind::HalfPartition | FaultKind::Partition => true,
                FaultKind::EndLoss => has_data_from(self.extent, &packet.bytes),
                FaultKind::Shrink => packet.bytes.len() as u64 > self.extent,
                _ => false,
            }
    }
}

/// How often each kind has struck, and which moves an attacker has made.
#[derive(Clone, Debug, Default)]
pub struct Strikes {
    faults: [u64; FaultKind::ALL.len()],
    moves: BTreeSet<Move>,
}

impl Strikes {
    /// Notes a strike.
    pub fn note(&mut self, kind: FaultKind) {
        self.faults[kind as usize] += 1;
    }

    /// Notes a move of an attacker that has changed something.
    pub fn note_move(&mut self, made: Move) {
        self.note(FaultKind::Adversary);
        self.moves.insert(made);
    }

    /// How often this kind has struck.
    pub fn of(&self, kind: FaultKind) -> u64 {
        self.faults[kind as usize]
    }

    /// Whether an attacker has made this move.
    pub fn has(&self, made: Move) -> bool {
        self.moves.contains(&made)
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

/// Whether a datagram has DATA from this offset on.
fn has_data_from(offset: u64, datagram: &[u8]) -> bool {
    let data = packets_of(datagram).filter(|(of, _)| *of == PacketType::Data);
    let mut headers = data.filter_map(|(_, bytes)| DataHeader::of_trimmed(VERSION, bytes).ok());
    headers.any(|header| u64::from(header.offset) >= offset)
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
mod tests {
    use super::*;
    use smt_wire::{MessageId, SessionIndex, Unavailable};

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

    /// The packets that arrive of 200, one each microsecond, while a fault strikes half of them.
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
        assert!(arrivals(FaultKind::Shrink, 0, 99).0.is_empty());
        assert_eq!(arrivals(FaultKind::Shrink, 0, 100).0.len(), 200);
    }

    #[test]
    fn a_burst_takes_packets_in_a_row_and_ends() {
        let (left, struck) = arrivals(FaultKind::BurstLoss, 20_000, 30);
        assert_eq!(left.len() as u64, 200 - struck);
        let gaps: Vec<u8> = left
            .windows(2)
            .map(|pair| pair[1].0.bytes[0] - pair[0].0.bytes[0] - 1)
            .filter(|gap| *gap > 0)
            .collect();
        let longest = gaps.iter().max().unwrap();
        assert!(gaps.len() > 1 && (2..=30).contains(longest), "{gaps:?}");
    }

    #[test]
    fn a_packet_is_lost_if_one_of_the_type_is_in_it() {
        // Two of one type, in a row.
        let mut bytes = vec![0; 2 * Unavailable::LEN];
        for place in bytes.chunks_mut(Unavailable::LEN) {
            let unavailable = Unavailable {
                destination: SessionIndex(1),
                code: 1,
            };
            unavailable.emit(VERSION, place.try_into().unwrap());
        }
        let two = Packet {
            bytes: Bytes::from(bytes),
            ..packet(0)
        };
        let fault = |kind: PacketType| LinkFault {
            kind: FaultKind::OneTypeLoss,
            from: Time::default(),
            until: Time::from_nanos(1),
            pair: None,
            chance: 1_000_000,
            extent: kind as u64,
        };
        let passes = |of| {
            let mut links = FaultyLinks::new(vec![fault(of)], Random::new(7), Rc::default());
            let mut out = Vec::new();
            links.pass(Time::default(), two.clone(), &mut out);
            out.len() == 1
        };
        assert!(!passes(PacketType::Unavailable) && passes(PacketType::Reset));
    }

    /// DATA of this offset.
    fn data(offset: u32) -> Packet {
        let header = DataHeader {
            epoch: 0,
            retransmit: false,
            session: SessionIndex(1),
            id: MessageId(2),
            message_length: 10_000,
            offset,
        };
        let mut bytes = [0; DataHeader::LEN + 1];
        if let Some(place) = bytes.first_chunk_mut() {
            header.emit(VERSION, place);
        }
        Packet {
            bytes: Bytes::copy_from_slice(&bytes),
            ..packet(0)
        }
    }

    #[test]
    fn one_direction_is_lost_or_the_ends_of_messages_in_it() {
        let passes = |kind, packet: &Packet| {
            let fault = LinkFault {
                kind,
                from: Time::default(),
                until: Time::from_nanos(1),
                pair: Some((HostId(0), HostId(1))),
                chance: 1_000_000,
                extent: 1_200,
            };
            let mut links = FaultyLinks::new(vec![fault], Random::new(7), Rc::default());
            let mut out = Vec::new();
            links.pass(Time::default(), packet.clone(), &mut out);
            out.len() == 1
        };
        let back = |packet: Packet| Packet {
            from: packet.to,
            to: packet.from,
            ..packet
        };
        let kind = FaultKind::HalfPartition;
        assert!(!passes(kind, &packet(1)) && passes(kind, &back(packet(1))));
        let kind = FaultKind::EndLoss;
        assert!(passes(kind, &packet(1)) && passes(kind, &data(1_199)));
        assert!(!passes(kind, &data(1_200)) && passes(kind, &back(data(1_200))));
    }

    #[test]
    fn nothing_passes_a_partition_whatever_else_strikes() {
        let fault = |kind, extent| LinkFault {
            kind,
            from: Time::default(),
            until: Time::from_nanos(1),
            pair: None,
            chance: 1_000_000,
            extent,
        };
        let beside = [FaultKind::Duplicate, FaultKind::Forge, FaultKind::Replay];
        for cut in [(FaultKind::Partition, 0), (FaultKind::Shrink, 99)] {
            let faults = beside.map(|kind| fault(kind, 10));
            let faults = faults.into_iter().chain([fault(cut.0, cut.1)]).collect();
            let mut links = FaultyLinks::new(faults, Random::new(7), Rc::default());
            let mut out = Vec::new();
            (0..9).for_each(|number| links.pass(Time::default(), packet(number), &mut out));
            assert!(out.is_empty(), "{cut:?}");
        }
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
