// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts by message, in bounded memory: the message that was seen least recently gives up its
//! place, and what it had is counted as forgotten. No sum is ever wrong by that.

use alloc::collections::BTreeMap;

use crate::data_header::DataHeader;
use crate::ip_packet::{IpPacket, MessageName, Recognition};

/// The counts of a message.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MessageCounts {
    /// Packets.
    pub packets: u64,
    /// Bytes of those packets, IP's header included.
    pub bytes: u64,
    /// Packets whose bytes were sent before.
    pub retransmissions: u64,
}

/// Counters of messages.
#[derive(Clone, Debug)]
pub struct MessageCounters {
    messages_max: usize,
    messages: BTreeMap<MessageName, Slot>,
    /// Messages by the last time that one was seen.
    by_use: BTreeMap<u64, MessageName>,
    uses: u64,
    forgotten: MessageCounts,
    others: MessageCounts,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    counts: MessageCounts,
    used_at: u64,
}

impl MessageCounters {
    /// Counters of so many messages at most.
    ///
    /// # Panics
    /// If that is none.
    #[must_use]
    pub fn new(messages_max: usize) -> Self {
        assert!(messages_max > 0, "there is no place for a message");
        Self {
            messages_max,
            messages: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            forgotten: MessageCounts::default(),
            others: MessageCounts::default(),
        }
    }

    /// Counts a packet, from its IP header on.
    pub fn count(&mut self, packet: &[u8], recognition: &Recognition) {
        let read = IpPacket::read(packet, recognition);
        let named = read.and_then(|read| {
            let header = read.data_header(packet)?;
            Some((read.message_name(packet)?, header))
        });
        match named {
            Some((name, header)) => self.count_data(name, &header, packet.len()),
            None => self.others.add(false, packet.len()),
        }
    }

    /// Counts a DATA packet of so many bytes.
    pub fn count_data(&mut self, name: MessageName, header: &DataHeader, bytes: usize) {
        self.uses += 1;
        let mut counts = match self.messages.get(&name) {
            Some(slot) => {
                self.by_use.remove(&slot.used_at);
                slot.counts
            }
            None => MessageCounts::default(),
        };
        counts.add(header.is_retransmission, bytes);
        let slot = Slot { counts, used_at: self.uses };
        self.messages.insert(name, slot);
        self.by_use.insert(self.uses, name);
        self.forget();
    }

    /// The counts of a message that is known.
    #[must_use]
    pub fn of(&self, name: &MessageName) -> Option<MessageCounts> {
        self.messages.get(name).map(|slot| slot.counts)
    }

    /// All messages that are known, by name.
    pub fn messages(&self) -> impl Iterator<Item = (&MessageName, MessageCounts)> {
        self.messages.iter().map(|(name, slot)| (name, slot.counts))
    }

    /// The counts of messages that gave up their places.
    #[must_use]
    pub fn forgotten(&self) -> MessageCounts {
        self.forgotten
    }

    /// The counts of packets without a message: control packets, and other protocols.
    #[must_use]
    pub fn others(&self) -> MessageCounts {
        self.others
    }

    fn forget(&mut self) {
        while self.messages.len() > self.messages_max {
            let Some((_, name)) = self.by_use.pop_first() else {
                return;
            };
            if let Some(slot) = self.messages.remove(&name) {
                self.forgotten.packets += slot.counts.packets;
                self.forgotten.bytes += slot.counts.bytes;
                self.forgotten.retransmissions += slot.counts.retransmissions;
            }
        }
    }
}

impl MessageCounts {
    fn add(&mut self, is_retransmission: bool, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
        self.retransmissions += u64::from(is_retransmission);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::samples::{Carrier, data, packet};

    fn name_of(bytes: &[u8]) -> MessageName {
        let read = IpPacket::read(bytes, &Recognition::default()).unwrap();
        read.message_name(bytes).unwrap()
    }

    #[test]
    fn counts_are_those_of_the_packets_that_passed() {
        let mut counters = MessageCounters::new(10);
        let mut expected = MessageCounts::default();
        for number in 0..9 {
            let mut data = data(4, 100 + number);
            data[3] = (number % 3 == 0).into();
            let bytes = packet(Carrier::Udp6, &data);
            counters.count(&bytes, &Recognition::default());
            expected.packets += 1;
            expected.bytes += bytes.len() as u64;
        }
        expected.retransmissions = 3;
        let one = packet(Carrier::Udp6, &data(4, 1));
        assert_eq!(counters.of(&name_of(&one)), Some(expected));
        counters.count(&[0; 30], &Recognition::default());
        assert_eq!((counters.others().packets, counters.others().bytes), (1, 30));
    }

    #[test]
    fn memory_is_bounded_and_no_packet_is_lost_from_the_sums() {
        let mut counters = MessageCounters::new(8);
        let keeps = packet(Carrier::Native4, &data(0, 10));
        for id in 1..100 {
            counters.count(&packet(Carrier::Native4, &data(id, 10)), &Recognition::default());
            counters.count(&keeps, &Recognition::default());
        }
        assert_eq!(counters.messages().count(), 8);
        let known: u64 = counters.messages().map(|(_, counts)| counts.packets).sum();
        assert_eq!(known + counters.forgotten().packets, 2 * 99);
        assert_eq!(counters.of(&name_of(&keeps)).unwrap().packets, 99);
    }
}
