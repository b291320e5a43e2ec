// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that came before record 0 of their message (SPEC §5.4).
//!
//! Nothing in them has authenticated, so they live in a pool of their own: bounded, each packet on
//! its own merit, the oldest evicted first, and never at the cost of a message that has opened.
//! When record 0 opens, the message takes its packets out; those that contradict it are dropped
//! there. A packet that was not taken for [`REORDERED_LIFE`] is dropped: its message has ended, or
//! it was forged.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use smt_carrier::Opened;
use smt_wire::{DataHeader, MessageId};

use crate::limits::{REORDERED_BYTES_PER_SESSION, REORDERED_LIFE};
use crate::time::Time;

/// One packet that waits for record 0 of its message.
#[derive(Debug)]
pub(crate) struct ReorderedPacket {
    /// When the packet came.
    pub(crate) at: Time,
    pub(crate) header: DataHeader,
    pub(crate) payload: Vec<u8>,
    /// Its records that the carrier has opened, by their places in the payload.
    pub(crate) opened: Vec<Opened>,
}

/// The reordered packets of one session, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ReorderedPackets {
    packets: VecDeque<ReorderedPacket>,
    bytes: usize,
}

impl ReorderedPackets {
    /// Keeps a packet; evicts older ones to stay within `room` and the session's bound.
    pub(crate) fn keep(&mut self, packet: ReorderedPacket, room: usize) {
        let size = cost(&packet);
        let bound = REORDERED_BYTES_PER_SESSION.min(room + self.bytes);
        while self.bytes + size > bound {
            let Some(oldest) = self.packets.pop_front() else {
                return;
            };
            self.bytes -= cost(&oldest);
        }
        self.bytes += size;
        self.packets.push_back(packet);
    }

    /// Takes out the packets of a message whose record 0 has opened.
    pub(crate) fn take(&mut self, id: MessageId) -> Vec<ReorderedPacket> {
        if self.packets.iter().all(|packet| packet.header.id != id) {
            return Vec::new();
        }
        let (taken, kept): (VecDeque<_>, VecDeque<_>) =
            self.packets.drain(..).partition(|packet| packet.header.id == id);
        self.packets = kept;
        self.bytes = self.packets.iter().map(cost).sum();
        taken.into()
    }

    /// Drops packets that have waited too long.
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some(oldest) = self.packets.front() {
            if now < oldest.at + REORDERED_LIFE {
                return;
            }
            self.bytes -= cost(oldest);
            self.packets.pop_front();
        }
    }

    /// When the oldest packet has waited too long.
    pub(crate) fn due(&self) -> Option<Time> {
        self.packets.front().map(|oldest| oldest.at + REORDERED_LIFE)
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn cost(packet: &ReorderedPacket) -> usize {
    packet.payload.len() + packet.opened.len() * size_of::<Opened>() + OVERHEAD
}

/// Bytes that a packet counts beside its payload. They are more than it takes: each message that
/// opens looks at all packets that wait, and there are thus at most a thousand, however short
/// forged ones are.
const OVERHEAD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use smt_wire::SessionIndex;

    fn packet(id: u64, offset: u32) -> ReorderedPacket {
        let header = DataHeader {
            epoch: 0,
            retransmit: false,
            session: SessionIndex(1),
            id: MessageId(id),
            message_length: 100_000,
            offset,
        };
        ReorderedPacket { at: Time::default(), header, payload: vec![0; 1_000], opened: Vec::new() }
    }

    #[test]
    fn packets_that_no_message_takes_are_dropped() {
        let mut reordered = ReorderedPackets::default();
        reordered.keep(packet(1, 1_200), usize::MAX / 2);
        let due = reordered.due().unwrap();
        reordered.expire(Time::from_nanos(due.as_nanos() - 1));
        assert!(reordered.bytes() > 0);
        reordered.expire(due);
        assert_eq!((reordered.bytes(), reordered.due()), (0, None));
    }

    #[test]
    fn the_oldest_is_evicted_and_the_bound_holds() {
        let mut reordered = ReorderedPackets::default();
        for offset in 0..1_000 {
            reordered.keep(packet(7, offset), usize::MAX / 2);
            assert!(reordered.bytes() <= REORDERED_BYTES_PER_SESSION);
        }
        let taken = reordered.take(MessageId(7));
        assert!(taken.len() > 200);
        assert_eq!(taken.last().unwrap().header.offset, 999);
        assert_eq!(reordered.bytes(), 0);
    }

    #[test]
    fn a_packet_can_only_replace_others_without_room() {
        let mut reordered = ReorderedPackets::default();
        reordered.keep(packet(1, 0), 5_000);
        reordered.keep(packet(2, 0), 0);
        assert!(reordered.take(MessageId(1)).is_empty());
        assert_eq!(reordered.take(MessageId(2)).len(), 1);
    }

    #[test]
    fn the_shortest_are_few() {
        let mut reordered = ReorderedPackets::default();
        for offset in 0..5_000 {
            let tiny = ReorderedPacket { payload: vec![0], ..packet(7, offset) };
            reordered.keep(tiny, usize::MAX / 2);
        }
        assert!(reordered.take(MessageId(7)).len() <= 1_024);
    }
}
