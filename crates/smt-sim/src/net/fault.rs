// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Faults of a network as rules: what, between which hosts, when, how often.

mod faulty_links;
mod strikes;

use smt_proto::Time;
use smt_wire::{DataHeader, PacketType, VERSION};

use crate::net::packet::{HostId, Packet, packets_of};

pub use faulty_links::FaultyLinks;
pub use strikes::Strikes;

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
    /// A NIC replaces one of its keys of PSP.
    DeviceKey,
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
    /// A standby takes over a host's address, with nothing of that host's. The host that had it
    /// hears nothing more and goes on to send.
    TakeOver,
    /// Packets are cut.
    Truncate,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 26] = [
        Self::Adversary,
        Self::BurstLoss,
        Self::ClockDrift,
        Self::ClockStep,
        Self::Corrupt,
        Self::CrashKeeping,
        Self::CrashLosing,
        Self::Delay,
        Self::DeviceKey,
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
        Self::TakeOver,
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

/// Whether a datagram has DATA from this offset on.
fn has_data_from(offset: u64, datagram: &[u8]) -> bool {
    let data = packets_of(datagram).filter(|(of, _)| *of == PacketType::Data);
    let mut headers = data.filter_map(|(_, bytes)| DataHeader::of_trimmed(VERSION, bytes).ok());
    headers.any(|header| u64::from(header.offset) >= offset)
}
