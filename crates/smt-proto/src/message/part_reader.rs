// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a call that its reader gets: put in order, and bounded by a window (SPEC §5.9).
//!
//! ```text
//!   arrives in any order ──▶ waits by its number ── all before it are taken ──▶ taken
//! ```
//! A part counts in the window with its length and an overhead, so that many empty parts take no
//! more memory than few long ones. Not here: ids, acknowledgements, and when the window is told.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;
use smt_wire::PART_OVERHEAD;

use crate::error::PartViolation;

/// The parts of a call on their way to the application of this side.
#[derive(Debug)]
pub(crate) struct PartReader {
    of: PartsOf,
    /// Parts that have come and are not taken.
    waiting: BTreeMap<u32, Bytes>,
    /// The window that the parts that wait take.
    waiting_cost: u64,
    /// The number of the part that is taken next.
    next: u32,
    /// The window that all parts have taken which the application has.
    taken_cost: u64,
    /// Bytes that the window has at most.
    width: u32,
    /// The end of what the peer may send; 0 before the window opens.
    limit: u64,
    /// How many parts there are, once that is known.
    count: Option<u32>,
    /// The reply that came before the last part was taken.
    reply: Option<Box<HeldReply>>,
}

/// The direction of parts: it says how the window begins, and what ends the parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PartsOf {
    /// The window opens when the application begins to read; the last part ends them.
    Request,
    /// The window is open from the beginning; the reply ends them.
    Reply,
}

/// The rest of a reply in parts, when its call ends before all was taken.
#[derive(Debug, Default)]
pub(crate) struct UntakenParts {
    /// The parts that have come and were not taken, in order, up to the first that is missing.
    pub(crate) parts: Vec<Bytes>,
    /// The reply, if nothing is missing before it.
    pub(crate) reply: Option<HeldReply>,
}

/// A reply whose parts have not all been taken.
#[derive(Debug)]
pub(crate) struct HeldReply {
    pub(crate) body: Bytes,
    pub(crate) failure: Option<smt_wire::FailureMark>,
    pub(crate) has_metadata: bool,
}

/// A part, as its message says.
#[derive(Clone, Debug)]
pub(crate) struct NumberedPart {
    pub(crate) number: u32,
    /// Whether parts follow.
    pub(crate) more: bool,
    pub(crate) body: Bytes,
}

/// The next thing that the reader of a call's parts gets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TakenPart {
    /// The next part's bytes.
    Part(Bytes),
    /// All parts of the request were taken. The end of a reply in parts is the reply.
    End,
}

impl PartReader {
    /// A reader with a window of `width` bytes.
    pub(crate) fn new(width: u32, of: PartsOf) -> Self {
        let limit = match of {
            PartsOf::Request => 0,
            PartsOf::Reply => u64::from(width),
        };
        Self {
            of,
            waiting: BTreeMap::new(),
            waiting_cost: 0,
            next: 0,
            taken_cost: 0,
            width,
            limit,
            count: None,
            reply: None,
        }
    }

    /// Takes a part that has come. Returns whether the application can take one now, and could not
    /// before.
    ///
    /// # Errors
    /// The part has the number of another, is beyond the window, lies behind the end, or ends what
    /// only the reply ends.
    pub(crate) fn accept(&mut self, part: NumberedPart) -> Result<bool, PartViolation> {
        let NumberedPart { number, more, body } = part;
        if !more && self.of == PartsOf::Reply {
            return Err(PartViolation::EndsReply);
        }
        if !more && body.is_empty() {
            // It says that there are no more, and is none itself.
            self.end_at(number)?;
            return Ok(self.is_read());
        }
        let cost = part_cost(body.len());
        if number < self.next || self.waiting.contains_key(&number) {
            return Err(PartViolation::Repeated);
        }
        if self.taken_cost + self.waiting_cost + cost > self.limit {
            return Err(PartViolation::BeyondWindow);
        }
        if self.count.is_some_and(|count| number >= count) {
            return Err(PartViolation::BehindEnd);
        }
        if !more {
            let count = number.checked_add(1).ok_or(PartViolation::Count)?;
            self.end_at(count)?;
        }
        self.waiting.insert(number, body);
        self.waiting_cost += cost;
        Ok(number == self.next)
    }

    /// Whether all parts before this one were taken and it has not come: the application can take
    /// nothing before it.
    pub(crate) fn is_starved_of(&self, number: u32) -> bool {
        number == self.next && !self.waiting.contains_key(&number)
    }

    /// Notes how many parts the peer says there are.
    ///
    /// # Errors
    /// There are more, or another number was said before.
    pub(crate) fn end_at(&mut self, count: u32) -> Result<(), PartViolation> {
        let last = self.waiting.last_key_value().map(|(number, _)| *number);
        let is_same = self.count.is_none_or(|known| known == count);
        let has_all = count >= self.next && last.is_none_or(|last| last < count);
        if !is_same || !has_all {
            return Err(PartViolation::Count);
        }
        self.count = Some(count);
        Ok(())
    }

    /// The next part, if it has come; or the end.
    pub(crate) fn take(&mut self) -> Option<TakenPart> {
        let Some(body) = self.waiting.remove(&self.next) else {
            return self.is_read().then_some(TakenPart::End);
        };
        let cost = part_cost(body.len());
        self.waiting_cost -= cost;
        self.taken_cost += cost;
        // Numbers are below a count of 32 bits.
        self.next = self.next.saturating_add(1);
        Some(TakenPart::Part(body))
    }

    /// Whether all parts were taken.
    pub(crate) fn is_read(&self) -> bool {
        self.count == Some(self.next)
    }

    /// Opens the window, if it is closed. Returns the limit to be told to the peer, if it is due:
    /// at the beginning, and whenever half of the window was taken.
    pub(crate) fn limit_to_tell(&mut self) -> Option<u64> {
        let limit = self.taken_cost + u64::from(self.width);
        let is_due = self.count.is_none() && limit - self.limit >= u64::from(self.width / 2);
        if is_due {
            self.limit = limit;
        }
        is_due.then_some(limit)
    }

    /// The limit that a peer is told that asks for it; `None` before the window opens. It is as
    /// large as it can be: the part that the peer wants to send may take more than half of the
    /// window.
    pub(crate) fn limit_asked(&mut self) -> Option<u64> {
        let is_open = self.limit > 0;
        if is_open {
            self.limit = self.taken_cost + u64::from(self.width);
        }
        is_open.then_some(self.limit)
    }

    /// Keeps the reply until all parts are taken.
    pub(crate) fn hold_reply(&mut self, reply: HeldReply) {
        self.reply = Some(Box::new(reply));
    }

    /// Whether the reply has come.
    pub(crate) fn has_reply(&self) -> bool {
        self.reply.is_some()
    }

    /// The reply, if it has come and all parts are taken.
    pub(crate) fn take_reply(&mut self) -> Option<HeldReply> {
        match self.is_read() {
            true => self.reply.take().map(|reply| *reply),
            false => None,
        }
    }

    /// Whether the reply and all parts before it have come, taken or not.
    pub(crate) fn is_whole(&self) -> bool {
        let missing = self.count.map(|count| count - self.next);
        self.has_reply() && missing.is_some_and(|missing| missing as usize == self.waiting.len())
    }

    /// Ends the reading: what the application can still get.
    pub(crate) fn into_untaken(mut self) -> UntakenParts {
        let mut parts = Vec::new();
        while let Some(TakenPart::Part(body)) = self.take() {
            parts.push(body);
        }
        UntakenParts { parts, reply: self.take_reply() }
    }

    /// Bytes of memory that parts take which wait.
    pub(crate) fn memory(&self) -> usize {
        let reply = self.reply.as_ref().map_or(0, |reply| reply.body.len());
        self.waiting_cost as usize + reply
    }
}

/// The bytes that a part of this length counts in a window.
pub(crate) fn part_cost(length: usize) -> u64 {
    length as u64 + u64::from(PART_OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    const WIDTH: u32 = 4_096;

    fn part(number: u32, more: bool, length: usize) -> NumberedPart {
        NumberedPart { number, more, body: Bytes::from(vec![number as u8; length]) }
    }

    /// A reader of a request's parts whose application reads.
    fn reads_request() -> PartReader {
        let mut reader = PartReader::new(WIDTH, PartsOf::Request);
        assert_eq!(reader.limit_to_tell(), Some(u64::from(WIDTH)));
        reader
    }

    fn taken(reader: &mut PartReader) -> Option<u8> {
        match reader.take()? {
            TakenPart::Part(body) => Some(body[0]),
            TakenPart::End => None,
        }
    }

    // SMT [5.9-9]
    #[test]
    fn parts_are_taken_in_the_order_of_their_numbers() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        assert_eq!(reader.accept(part(1, true, 1)), Ok(false));
        assert_eq!(reader.take(), None);
        assert_eq!(reader.accept(part(0, true, 1)), Ok(true));
        assert_eq!(reader.accept(part(2, true, 1)), Ok(false));
        let all: Vec<_> = core::iter::from_fn(|| taken(&mut reader)).collect();
        assert_eq!(all, [0, 1, 2]);
        assert_eq!(reader.take(), None);
    }

    // SMT [5.9-10]
    #[test]
    fn a_number_is_taken_once() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        reader.accept(part(0, true, 1)).unwrap();
        assert_eq!(reader.accept(part(0, true, 1)), Err(PartViolation::Repeated));
        taken(&mut reader);
        assert_eq!(reader.accept(part(0, true, 1)), Err(PartViolation::Repeated));
    }

    // SMT [5.9-12]
    #[test]
    fn a_part_beyond_the_window_is_refused_whatever_its_number() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        let most = (WIDTH - PART_OVERHEAD) as usize;
        assert_eq!(reader.accept(part(0, true, most + 1)), Err(PartViolation::BeyondWindow));
        assert_eq!(reader.accept(part(7, true, most)), Ok(false));
        assert_eq!(reader.accept(part(0, true, 0)), Err(PartViolation::BeyondWindow));
    }

    // SMT [5.9-11]
    #[test]
    fn an_empty_part_counts_as_much_as_what_is_kept_for_it() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        for number in 0..WIDTH / PART_OVERHEAD {
            reader.accept(part(number, true, 0)).unwrap();
        }
        let next = WIDTH / PART_OVERHEAD;
        assert_eq!(reader.accept(part(next, true, 0)), Err(PartViolation::BeyondWindow));
        assert_eq!(reader.memory(), WIDTH as usize);
    }

    // SMT [5.9-13]
    #[test]
    fn the_limit_is_told_when_half_of_the_window_was_taken() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        assert_eq!(reader.limit_to_tell(), None);
        let quarter = (WIDTH / 4 - PART_OVERHEAD) as usize;
        for number in 0..4 {
            reader.accept(part(number, true, quarter)).unwrap();
        }
        taken(&mut reader);
        assert_eq!(reader.limit_to_tell(), None);
        taken(&mut reader);
        assert_eq!(reader.limit_to_tell(), Some(u64::from(WIDTH + WIDTH / 2)));
        assert_eq!(reader.limit_to_tell(), None);
        assert_eq!(reader.limit_asked(), Some(u64::from(WIDTH + WIDTH / 2)));
    }

    // SMT [5.9-14]
    #[test]
    fn a_peer_that_asks_is_told_all_that_it_may_send() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        reader.accept(part(0, true, 100)).unwrap();
        taken(&mut reader);
        assert_eq!(reader.limit_to_tell(), None);
        let limit = u64::from(WIDTH) + part_cost(100);
        assert_eq!(reader.limit_asked(), Some(limit));
        let most = (WIDTH - PART_OVERHEAD) as usize;
        assert_eq!(reader.accept(part(1, true, most)), Ok(true));
    }

    // SMT [5.9-8]
    #[test]
    fn a_window_that_opens_later_permits_nothing_before() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Request);
        assert_eq!(reader.limit_asked(), None);
        assert_eq!(reader.accept(part(0, true, 0)), Err(PartViolation::BeyondWindow));
        assert_eq!(reader.limit_to_tell(), Some(u64::from(WIDTH)));
        assert_eq!(reader.accept(part(0, true, 0)), Ok(true));
    }

    // SMT [5.9-6]
    #[test]
    fn the_last_part_ends_the_parts() {
        let mut reader = reads_request();
        reader.accept(part(1, false, 1)).unwrap();
        assert_eq!(reader.accept(part(2, true, 1)), Err(PartViolation::BehindEnd));
        reader.accept(part(0, true, 1)).unwrap();
        assert_eq!(taken(&mut reader), Some(0));
        assert!(!reader.is_read());
        assert_eq!(taken(&mut reader), Some(1));
        assert_eq!(reader.take(), Some(TakenPart::End));
        assert_eq!(reader.take(), Some(TakenPart::End));
    }

    // SMT [5.9-6]
    #[test]
    fn an_empty_last_part_is_an_end_and_no_part() {
        let mut reader = reads_request();
        assert_eq!(reader.accept(part(1, false, 0)), Ok(false));
        assert_eq!(reader.accept(part(1, true, 1)), Err(PartViolation::BehindEnd));
        assert_eq!(reader.accept(part(0, true, 1)), Ok(true));
        assert_eq!(taken(&mut reader), Some(0));
        assert_eq!(reader.take(), Some(TakenPart::End));
        let mut nothing = reads_request();
        assert_eq!(nothing.accept(part(0, false, 0)), Ok(true));
        assert_eq!(nothing.take(), Some(TakenPart::End));
    }

    // SMT [5.9-6]
    #[test]
    fn a_part_of_a_reply_without_more_is_refused() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        for length in [0, 1] {
            assert_eq!(reader.accept(part(0, false, length)), Err(PartViolation::EndsReply));
        }
        assert_eq!(reader.accept(part(0, true, 1)), Ok(true));
    }

    // SMT [5.9-6]
    #[test]
    fn a_last_part_before_others_that_have_come_is_refused() {
        let mut reader = reads_request();
        reader.accept(part(3, true, 1)).unwrap();
        assert_eq!(reader.accept(part(2, false, 1)), Err(PartViolation::Count));
        assert_eq!(reader.accept(part(u32::MAX, false, 1)), Err(PartViolation::Count));
    }

    // SMT [5.9-7]
    #[test]
    fn a_count_below_what_has_come_is_refused() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        reader.accept(part(2, true, 1)).unwrap();
        assert_eq!(reader.end_at(2), Err(PartViolation::Count));
        assert_eq!(reader.end_at(4), Ok(()));
        assert_eq!(reader.end_at(5), Err(PartViolation::Count));
        assert_eq!(reader.accept(part(4, true, 1)), Err(PartViolation::BehindEnd));
        assert_eq!(reader.accept(part(3, true, 1)), Ok(false));
    }

    #[test]
    fn a_count_below_what_was_taken_is_refused() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        reader.accept(part(0, true, 1)).unwrap();
        taken(&mut reader);
        assert_eq!(reader.end_at(0), Err(PartViolation::Count));
        assert_eq!(reader.end_at(1), Ok(()));
        assert!(reader.is_read());
    }

    // SMT [5.9-7]
    #[test]
    fn a_reply_waits_until_all_its_parts_are_taken() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        reader.accept(part(0, true, 1)).unwrap();
        reader.end_at(2).unwrap();
        reader.hold_reply(HeldReply {
            body: Bytes::from_static(b"end"),
            failure: None,
            has_metadata: false,
        });
        taken(&mut reader);
        assert!(reader.take_reply().is_none());
        reader.accept(part(1, true, 1)).unwrap();
        assert!(reader.take_reply().is_none(), "it has come and is not taken");
        taken(&mut reader);
        assert_eq!(reader.take_reply().unwrap().body, b"end"[..]);
        assert!(!reader.has_reply());
    }

    #[test]
    fn a_reader_is_starved_of_the_next_part_until_it_comes() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        assert!(reader.is_starved_of(0) && !reader.is_starved_of(1));
        reader.accept(part(1, true, 1)).unwrap();
        assert!(reader.is_starved_of(0), "part 1 cannot be taken before");
        reader.accept(part(0, true, 1)).unwrap();
        assert!(!reader.is_starved_of(0));
    }

    #[test]
    fn memory_follows_what_waits() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        reader.accept(part(0, true, 100)).unwrap();
        assert_eq!(reader.memory(), 612);
        taken(&mut reader);
        assert_eq!(reader.memory(), 0);
    }

    // SMT [5.9-20]
    #[test]
    fn parts_that_have_come_in_order_are_left_when_the_reading_ends() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        for number in [0, 1, 2, 4] {
            reader.accept(part(number, true, 1)).unwrap();
        }
        taken(&mut reader);
        reader.end_at(5).unwrap();
        reader.hold_reply(HeldReply { body: Bytes::new(), failure: None, has_metadata: false });
        assert!(!reader.is_whole(), "part 3 is missing");
        let left = reader.into_untaken();
        assert_eq!(left.parts, [&[1][..], &[2]]);
        assert!(left.reply.is_none());
    }

    // SMT [5.9-20]
    #[test]
    fn a_reply_of_which_nothing_is_missing_is_left_too() {
        let mut reader = PartReader::new(WIDTH, PartsOf::Reply);
        reader.accept(part(1, true, 1)).unwrap();
        reader.end_at(2).unwrap();
        reader.hold_reply(HeldReply { body: Bytes::new(), failure: None, has_metadata: false });
        assert!(!reader.is_whole());
        reader.accept(part(0, true, 1)).unwrap();
        assert!(reader.is_whole());
        taken(&mut reader);
        assert!(reader.is_whole());
        let left = reader.into_untaken();
        assert_eq!(left.parts.len(), 1);
        assert!(left.reply.is_some());
    }
}
