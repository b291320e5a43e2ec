// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that a session has received of messages whose record 0 has not opened (SPEC §5.4,
//! §9.10).
//!
//! Nothing of it has authenticated: packets are bounded over all sessions together, and ids whose
//! record 0 was trimmed are asked about at a bounded rate.

use alloc::vec::Vec;
use core::time::Duration;

use smt_wire::{DataHeader, MessageId};

use crate::collections::token_bucket::TokenBucket;
use crate::grant::ndp::trimmed::UnopenedIds;
use crate::limits::{REORDERED_BYTES_MAX, REORDERED_LIFE, UNOPENED_PER_SECOND};
use crate::message::reordered::{ReorderedPacket, ReorderedPackets};
use crate::time::Time;

/// Packets that wait for record 0 of their message, and ids whose record 0 was trimmed.
///
/// `all` is what the packets of all sessions take, in bytes.
#[derive(Debug)]
pub(super) struct Reordered {
    packets: ReorderedPackets,
    trimmed: UnopenedIds,
    /// How many more ids may be asked about.
    trimmed_rate: TokenBucket,
}

impl Default for Reordered {
    fn default() -> Self {
        Self {
            packets: ReorderedPackets::default(),
            trimmed: UnopenedIds::default(),
            trimmed_rate: TokenBucket::new(UNOPENED_PER_SECOND),
        }
    }
}

impl Reordered {
    /// Keeps a packet until its record 0 has opened. Older packets of this session give way.
    pub(super) fn keep(&mut self, packet: ReorderedPacket, all: &mut usize) {
        let room = REORDERED_BYTES_MAX.saturating_sub(*all);
        self.change(all, |packets| packets.keep(packet, room));
    }

    /// Takes out the packets of a message whose record 0 has opened.
    pub(super) fn take(&mut self, id: MessageId, all: &mut usize) -> Vec<ReorderedPacket> {
        self.change(all, |packets| packets.take(id))
    }

    /// Drops what came of a message that turned out to have no further records.
    pub(super) fn forget(&mut self, id: MessageId, all: &mut usize) {
        self.trimmed.remove(id);
        if self.packets.bytes() > 0 {
            drop(self.take(id, all));
        }
    }

    /// Drops all packets, since the session ends.
    pub(super) fn clear(&mut self, all: &mut usize) {
        self.change(all, |packets| *packets = ReorderedPackets::default());
    }

    /// Drops packets and ids that no record 0 has followed. Returns when others may be due.
    pub(super) fn expire(&mut self, now: Time, all: &mut usize) -> Option<Time> {
        self.change(all, |packets| packets.expire(now));
        self.trimmed.expire(now, REORDERED_LIFE);
        let trimmed_due = (!self.trimmed.is_empty()).then_some(now + REORDERED_LIFE);
        let dues = [self.packets.due(), trimmed_due];
        dues.into_iter().flatten().min()
    }

    /// Takes the header of a trimmed packet that had record 0. Returns whether the record is to be
    /// asked for: at most once in `interval`, and at the session's rate.
    pub(super) fn first_trimmed(
        &mut self,
        now: Time,
        interval: Duration,
        header: &DataHeader,
    ) -> bool {
        self.trimmed.note(now, header, interval, &mut self.trimmed_rate)
    }

    /// Whether record 0 of the id was trimmed, and has not opened since.
    pub(super) fn is_first_trimmed(&self, id: MessageId) -> bool {
        self.trimmed.contains(id)
    }

    /// Notes that record 0 of the id has opened. Returns whether it was trimmed before.
    pub(super) fn first_opened(&mut self, id: MessageId) -> bool {
        self.trimmed.remove(id)
    }

    fn change<T>(&mut self, all: &mut usize, change: impl FnOnce(&mut ReorderedPackets) -> T) -> T {
        *all -= self.packets.bytes();
        let outcome = change(&mut self.packets);
        *all += self.packets.bytes();
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_wire::SessionIndex;
    use std::vec;

    const INTERVAL: Duration = Duration::from_millis(5);

    fn header(id: u64, offset: u32) -> DataHeader {
        DataHeader {
            epoch: 0,
            retransmit: false,
            session: SessionIndex(1),
            id: MessageId(id),
            message_length: 100_000,
            offset,
        }
    }

    fn packet(id: u64) -> ReorderedPacket {
        ReorderedPacket {
            at: Time::default(),
            header: header(id, 1_200),
            payload: vec![0; 1_000],
            opened: Vec::new(),
        }
    }

    #[test]
    fn packets_of_all_sessions_together_are_bounded() {
        let (mut one, mut other, mut all) = (Reordered::default(), Reordered::default(), 0);
        all += REORDERED_BYTES_MAX - 2_000;
        one.keep(packet(1), &mut all);
        assert!(one.packets.bytes() > 0 && all <= REORDERED_BYTES_MAX);
        other.keep(packet(1), &mut all);
        assert_eq!(other.packets.bytes(), 0);
        one.keep(packet(2), &mut all);
        assert_eq!(one.take(MessageId(2), &mut all).len(), 1);
        assert!(one.take(MessageId(1), &mut all).is_empty());
        assert_eq!(all, REORDERED_BYTES_MAX - 2_000);
    }

    #[test]
    fn dropped_packets_are_given_back_to_all() {
        let drops: [fn(&mut Reordered, &mut usize); 3] = [
            |reordered, all| reordered.clear(all),
            |reordered, all| reordered.forget(MessageId(1), all),
            |reordered, all| {
                let due = reordered.expire(Time::default() + REORDERED_LIFE, all);
                assert_eq!(due, None);
            },
        ];
        for drop_packets in drops {
            let (mut reordered, mut all) = (Reordered::default(), 0);
            reordered.keep(packet(1), &mut all);
            assert!(all > 1_000);
            drop_packets(&mut reordered, &mut all);
            assert_eq!((all, reordered.packets.bytes()), (0, 0));
        }
    }

    #[test]
    fn a_trimmed_record_0_is_asked_for_once_in_an_interval_until_it_opens() {
        let (mut reordered, now) = (Reordered::default(), Time::default());
        let (id, header) = (MessageId(1), header(1, 0));
        assert!(reordered.first_trimmed(now, INTERVAL, &header));
        assert!(!reordered.first_trimmed(now, INTERVAL, &header));
        assert!(reordered.first_trimmed(now + INTERVAL, INTERVAL, &header));
        assert!(reordered.is_first_trimmed(id) && reordered.first_opened(id));
        assert!(!reordered.is_first_trimmed(id) && !reordered.first_opened(id));
    }

    #[test]
    fn the_next_moment_is_that_of_the_oldest_packet_or_of_a_trimmed_id() {
        let (mut reordered, mut all, now) = (Reordered::default(), 0, Time::default());
        assert_eq!(reordered.expire(now, &mut all), None);
        reordered.keep(packet(1), &mut all);
        let later = now + INTERVAL;
        reordered.first_trimmed(later, INTERVAL, &header(2, 0));
        assert_eq!(reordered.expire(later, &mut all), Some(now + REORDERED_LIFE));
        reordered.clear(&mut all);
        assert_eq!(reordered.expire(later, &mut all), Some(later + REORDERED_LIFE));
    }
}
