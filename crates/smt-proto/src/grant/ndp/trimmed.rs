// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ranges that the network has trimmed on the way, and that are to be asked for again at the pace
//! of pulls (SPEC §9.10).
//!
//! 1. A trimmed DATA packet is a hint that anybody can forge. [`TrimmedRanges`] of its message, or
//!    [`UnopenedIds`] of its session if record 0 has not opened, lets each range through once in a
//!    resend interval, and again if the answer seems to have been trimmed too: three times in all.
//! 2. A range that got through waits in [`TrimmedQueue`] of the endpoint until the policy's pacer
//!    permits a question.
//!
//! Everything is bounded; a range that finds no room is asked for by the timers, like any loss. Not
//! here: what a header may claim (`session::receive::trimmed`).

use alloc::collections::BTreeMap;
use core::time::Duration;

use smt_wire::{DataHeader, MessageId};

use crate::collections::byte_ranges::{ByteRange, ByteRanges};
use crate::collections::token_bucket::TokenBucket;
use crate::event::RpcId;
use crate::limits::{TRIMMED_QUEUE_MAX, TRIMMED_RANGES_MAX, TRIMMED_TRIES, UNOPENED_MAX};
use crate::time::Time;

/// A question for a trimmed range that waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TrimmedPart {
    pub(crate) rpc: RpcId,
    pub(crate) missing: Missing,
}

/// The missing part of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Missing {
    /// Record 0, which has not opened here.
    FirstRecord,
    Range(ByteRange),
}

/// All questions that wait, over all sessions: lowest rank first, and in order.
#[derive(Debug, Default)]
pub(crate) struct TrimmedQueue {
    waiting: BTreeMap<(u32, u64), TrimmedPart>,
    serial: u64,
}

impl TrimmedQueue {
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= TRIMMED_QUEUE_MAX
    }

    pub(crate) fn push(&mut self, rank: u32, part: TrimmedPart) {
        self.serial += 1;
        self.waiting.insert((rank, self.serial), part);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn first(&self) -> Option<TrimmedPart> {
        self.waiting.first_key_value().map(|(_, part)| *part)
    }

    pub(crate) fn pop(&mut self) {
        self.waiting.pop_first();
    }
}

/// Ranges of a message that were trimmed in the present interval.
#[derive(Debug, Default)]
pub(crate) struct TrimmedRanges {
    /// The ranges asked for once, twice, and so on.
    noted: [ByteRanges; TRIMMED_TRIES],
    count: usize,
    since: Time,
    /// Questions of the message that wait in [`TrimmedQueue`].
    pub(crate) waiting: u32,
    /// Bytes asked for that have not come: the pacer has counted them already.
    pub(crate) owed: u32,
}

impl TrimmedRanges {
    /// Notes a range that is missing; `is_again` tells that the trimmed packet was a repetition.
    /// Returns the part that is to be asked for: it was not noted within the interval (or not so
    /// often), and is at least a quarter of the packet. The length of a packet is guessed, so two
    /// packets may seem to overlap.
    pub(crate) fn note(
        &mut self,
        now: Time,
        part: ByteRange,
        is_again: bool,
        interval: Duration,
    ) -> Option<ByteRange> {
        if now.since(self.since) >= interval {
            self.noted.iter_mut().for_each(ByteRanges::clear);
            self.count = 0;
            self.since = now;
        }
        if self.count >= TRIMMED_RANGES_MAX {
            return None;
        }
        let tries = if is_again { TRIMMED_TRIES } else { 1 };
        let range = self.noted[..tries].iter_mut().find_map(|noted| note_new(noted, part))?;
        self.count += 1;
        Some(range)
    }

    /// Takes the arrival of `bytes` bytes, and returns how many of them were not asked for again.
    pub(crate) fn came(&mut self, bytes: u32) -> u32 {
        let asked = bytes.min(self.owed);
        self.owed -= asked;
        bytes - asked
    }
}

/// Adds the first new part of a range, if it is at least a quarter of the packet, or all of it.
fn note_new(noted: &mut ByteRanges, part: ByteRange) -> Option<ByteRange> {
    let gap = noted.gaps(u32::MAX).find(|gap| gap.end > part.start)?;
    let range = ByteRange { start: part.start.max(gap.start), end: part.end.min(gap.end) };
    let least = (part.end - part.start) / 4;
    let is_new = range.start < range.end && (range == part || range.end - range.start >= least);
    is_new.then(|| {
        noted.insert(range);
        range
    })
}

/// Ids whose record 0 was trimmed, with the time and how often since.
#[derive(Debug, Default)]
pub(crate) struct UnopenedIds(BTreeMap<MessageId, (Time, usize)>);

impl UnopenedIds {
    /// Notes the id of a trimmed packet. Returns whether the id is to be asked about: as seldom as
    /// a range, not if there are too many ids, and at their rate.
    pub(crate) fn note(
        &mut self,
        now: Time,
        header: &DataHeader,
        interval: Duration,
        rate: &mut TokenBucket,
    ) -> bool {
        let (id, is_again) = (header.id, header.retransmit);
        let before = self.0.get(&id).copied();
        let (at, tries) = before.filter(|(at, _)| now.since(*at) < interval).unwrap_or((now, 0));
        let most = if is_again { TRIMMED_TRIES } else { 1 };
        if tries >= most || !rate.take(now) {
            return false;
        }
        if before.is_none() && self.0.len() >= UNOPENED_MAX {
            self.expire(now, interval);
        }
        let has_room = before.is_some() || self.0.len() < UNOPENED_MAX;
        if has_room {
            self.0.insert(id, (at, tries + 1));
        }
        has_room
    }

    /// Takes out an id whose record 0 has opened. Returns whether it was noted.
    pub(crate) fn remove(&mut self, id: MessageId) -> bool {
        self.0.remove(&id).is_some()
    }

    pub(crate) fn contains(&self, id: MessageId) -> bool {
        self.0.contains_key(&id)
    }

    /// Forgets ids that were noted longer ago than this.
    pub(crate) fn expire(&mut self, now: Time, life: Duration) {
        self.0.retain(|_, (at, _)| now.since(*at) < life);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The place of a packet of which only the header is left: its message, the claimed padded length,
/// and the bytes that it may have had.
#[derive(Clone, Copy)]
pub(crate) struct Trimmed {
    pub(crate) id: MessageId,
    pub(crate) message_length: u32,
    pub(crate) range: ByteRange,
    /// Whether the packet was a repetition.
    pub(crate) is_again: bool,
}

impl Trimmed {
    /// The place by the packet's header; its length is not known, but at most this.
    pub(crate) fn new(header: &DataHeader, most: u32) -> Self {
        let range = ByteRange { start: header.offset, end: header.offset.saturating_add(most) };
        Self {
            id: header.id,
            message_length: header.message_length,
            range,
            is_again: header.retransmit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    const INTERVAL: Duration = Duration::from_millis(5);
    const NOW: Time = Time::from_nanos(1_000_000_000);

    fn range(start: u32, end: u32) -> ByteRange {
        ByteRange { start, end }
    }

    mod note {
        use super::*;

        #[test]
        fn a_range_is_asked_for_once_in_an_interval() {
            let mut ranges = TrimmedRanges::default();
            let part = range(1_000, 2_400);
            assert_eq!(ranges.note(NOW, part, false, INTERVAL), Some(part));
            assert_eq!(ranges.note(NOW, part, false, INTERVAL), None);
            let within = range(1_500, 2_400);
            assert_eq!(ranges.note(NOW, within, false, INTERVAL), None);
            assert_eq!(ranges.note(NOW + INTERVAL, part, false, INTERVAL), Some(part));
        }

        #[test]
        fn a_repetition_that_is_cut_is_asked_for_again_a_few_times() {
            let mut ranges = TrimmedRanges::default();
            let part = range(1_000, 2_400);
            let again = |ranges: &mut TrimmedRanges, now| {
                let asked = (0..10).filter(|_| ranges.note(now, part, true, INTERVAL).is_some());
                asked.count()
            };
            assert_eq!(again(&mut ranges, NOW), TRIMMED_TRIES);
            assert_eq!(again(&mut ranges, NOW + INTERVAL), TRIMMED_TRIES);
            let mut first = TrimmedRanges::default();
            first.note(NOW, part, false, INTERVAL);
            assert_eq!(again(&mut first, NOW), TRIMMED_TRIES - 1);
        }

        #[test]
        fn of_what_overlaps_the_rest_is_asked_for() {
            let mut ranges = TrimmedRanges::default();
            ranges.note(NOW, range(2_000, 3_400), false, INTERVAL);
            let shortened = ranges.note(NOW, range(1_000, 2_400), false, INTERVAL);
            assert_eq!(shortened, Some(range(1_000, 2_000)));
            let behind = ranges.note(NOW, range(2_900, 4_300), false, INTERVAL);
            assert_eq!(behind, Some(range(3_400, 4_300)));
        }

        #[test]
        fn new_parts_of_less_than_a_quarter_of_a_packet_are_not_asked_for() {
            let mut ranges = TrimmedRanges::default();
            let asked = (1_000..10_000u32).rev().filter(|start| {
                let part = range(*start, start + 1_400);
                ranges.note(NOW, part, false, INTERVAL).is_some()
            });
            assert!(asked.count() <= 1 + 9_000 / 350);
        }

        #[test]
        fn many_ranges_are_left_to_the_timers() {
            let mut ranges = TrimmedRanges::default();
            let noted = (0..10_000).filter(|at| {
                let part = range(at * 2_000, at * 2_000 + 1_400);
                ranges.note(NOW, part, false, INTERVAL).is_some()
            });
            assert_eq!(noted.count(), TRIMMED_RANGES_MAX);
        }
    }

    mod came {
        use super::*;

        #[test]
        fn what_was_asked_for_again_is_not_unasked() {
            let mut ranges = TrimmedRanges { owed: 1_000, ..TrimmedRanges::default() };
            assert_eq!((ranges.came(700), ranges.came(700), ranges.came(700)), (0, 400, 700));
        }
    }

    mod unopened_ids {
        use super::*;

        /// The header of a packet with record 0, which was trimmed.
        fn header(id: MessageId, retransmit: bool) -> DataHeader {
            DataHeader {
                epoch: 0,
                retransmit,
                session: smt_wire::SessionIndex(1),
                id,
                message_length: 100_000,
                offset: 0,
            }
        }

        #[test]
        fn an_id_is_asked_about_once_in_an_interval_and_they_are_bounded() {
            let mut ids = UnopenedIds::default();
            let mut rate = TokenBucket::new(1_000_000);
            let asked = (0..10 * UNOPENED_MAX as u64).filter(|number| {
                let number = number % (2 * UNOPENED_MAX as u64);
                ids.note(NOW, &header(MessageId(number), false), INTERVAL, &mut rate)
            });
            assert_eq!(asked.count(), UNOPENED_MAX);
            assert!(ids.note(NOW + INTERVAL, &header(MessageId(0), false), INTERVAL, &mut rate));
            // The others are old enough to make room.
            assert!(ids.note(
                NOW + INTERVAL,
                &header(MessageId(u64::MAX), false),
                INTERVAL,
                &mut rate
            ));
            assert!(ids.remove(MessageId(0)) && !ids.remove(MessageId(0)));
            ids.expire(NOW + 3 * INTERVAL, INTERVAL);
            assert!(ids.is_empty());
        }

        #[test]
        fn ids_are_asked_about_at_their_rate() {
            let mut ids = UnopenedIds::default();
            let mut rate = TokenBucket::new(100);
            let mut asked = 0;
            for millis in 0..1_000 {
                let now = NOW + Duration::from_millis(millis);
                for id in (0..1_000).map(MessageId) {
                    asked += u32::from(ids.note(now, &header(id, true), INTERVAL, &mut rate));
                }
            }
            assert!((90..=120).contains(&asked), "{asked}");
        }
    }

    #[test]
    fn the_lowest_rank_comes_first_and_equals_in_order() {
        let part = |id| TrimmedPart {
            rpc: RpcId { session: smt_wire::SessionIndex(1), id: MessageId(id) },
            missing: Missing::FirstRecord,
        };
        let mut queue = TrimmedQueue::default();
        for (rank, id) in [(5, 1), (0, 2), (5, 3), (0, 4)] {
            queue.push(rank, part(id));
        }
        let mut order = Vec::new();
        while let Some(first) = queue.first() {
            order.push(first.rpc.id.0);
            queue.pop();
        }
        assert_eq!(order, [2, 4, 1, 3]);
    }
}
