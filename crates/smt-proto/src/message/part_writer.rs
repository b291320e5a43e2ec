// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a call that this side sends: their numbers, and the window of their reader (SPEC
//! §5.9).
//!
//! Not here: the parts themselves, which are messages of their own.

use alloc::boxed::Box;

use bytes::Bytes;
use smt_record::Body;
use smt_wire::MessageId;

use super::part_reader::part_cost;
use crate::recovery::retry_timer::RetryTimer;

/// The state of a side that sends parts of a call.
#[derive(Debug)]
pub(crate) struct PartWriter {
    /// The bytes with which each part begins: the id of the request.
    prefix: Bytes,
    /// The number of the next part, and so how many were sent.
    next: u32,
    /// The window that all parts take that were sent.
    sent_cost: u64,
    /// The end of what may be sent.
    limit: u64,
    /// Whether the last part was sent.
    has_ended: bool,
    /// The question for a larger limit, while the application waits for one.
    blocked: Option<Box<RetryTimer>>,
    /// Parts of a reply that the caller has not acknowledged.
    unacknowledged: u32,
    /// Whether the application waits until fewer are.
    waits_for_acks: bool,
}

/// Why a part cannot be sent now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NoPart {
    /// The reader's window is full.
    Full,
    /// The last part was sent, or the numbers are used up.
    Ended,
}

impl PartWriter {
    /// A writer of the parts of this request, or of its reply, that count up to `limit`.
    pub(crate) fn new(request: MessageId, limit: u64) -> Self {
        Self {
            prefix: Bytes::copy_from_slice(&request.0.to_be_bytes()),
            next: 0,
            sent_cost: 0,
            limit,
            has_ended: false,
            blocked: None,
            unacknowledged: 0,
            waits_for_acks: false,
        }
    }

    /// The application bytes of a part with this body.
    pub(crate) fn application_bytes(&self, body: Body) -> Body {
        body.behind(self.prefix.clone())
    }

    /// Whether a part of this length may be sent now.
    pub(crate) fn admits(&self, length: usize) -> Result<(), NoPart> {
        if self.has_ended || self.next == u32::MAX {
            return Err(NoPart::Ended);
        }
        match self.sent_cost + part_cost(length) <= self.limit {
            true => Ok(()),
            false => Err(NoPart::Full),
        }
    }

    /// Notes that a part is sent. Returns its number.
    pub(crate) fn sent(&mut self, length: usize, more: bool) -> u32 {
        let number = self.next;
        self.next = number.saturating_add(1);
        self.sent_cost += part_cost(length);
        self.has_ended = !more;
        number
    }

    /// How many parts were sent.
    pub(crate) fn count(&self) -> u32 {
        self.next
    }

    /// Notes that the application waits for the window. Returns whether it did not before.
    pub(crate) fn block(&mut self, retry: RetryTimer) -> bool {
        self.waits_for_acks = false;
        let is_first = self.blocked.is_none();
        if is_first {
            self.blocked = Some(Box::new(retry));
        }
        is_first
    }

    /// Notes that a part of a reply is kept until its caller acknowledges it.
    pub(crate) fn kept(&mut self) {
        self.unacknowledged += 1;
    }

    /// Whether a part is sent although this side keeps too much for the peer: one at a time, which
    /// the caller may need to get on.
    pub(crate) fn is_starved(&self) -> bool {
        self.unacknowledged == 0
    }

    /// Notes that the application waits until fewer parts are kept.
    pub(crate) fn wait_for_acks(&mut self) {
        self.waits_for_acks = true;
    }

    /// Notes that a part is kept no longer. Returns whether the application had waited for that and
    /// may go on, as it may if this side does not keep too much.
    pub(crate) fn acknowledged(&mut self, keeps_too_much: bool) -> bool {
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
        let may_go_on = !keeps_too_much || self.is_starved();
        may_go_on && core::mem::take(&mut self.waits_for_acks)
    }

    /// The question for a larger limit, if the application waits for one.
    pub(crate) fn blocked_mut(&mut self) -> Option<&mut RetryTimer> {
        self.blocked.as_deref_mut()
    }

    /// Takes a limit that the reader has told. Returns whether the application had waited for it.
    pub(crate) fn raise(&mut self, limit: u64) -> bool {
        let is_more = limit > self.limit;
        self.limit = self.limit.max(limit);
        is_more && self.blocked.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;
    use core::time::Duration;
    use smt_wire::PART_OVERHEAD;
    use std::prelude::v1::*;

    const COST: u64 = 100 + PART_OVERHEAD as u64;

    fn writer(limit: u64) -> PartWriter {
        PartWriter::new(MessageId(5), limit)
    }

    // SMT [5.9-4]
    #[test]
    fn the_application_bytes_of_a_part_begin_with_its_request() {
        let bytes = writer(COST).application_bytes(Body::from("part"));
        let buffers: Vec<_> = bytes.buffers().map(|buffer| buffer.to_vec()).collect();
        assert_eq!(buffers.concat(), b"\0\0\0\0\0\0\0\x05part");
    }

    fn retry() -> RetryTimer {
        RetryTimer::new(Time::default(), Duration::from_millis(5))
    }

    // SMT [5.9-12], [5.9-11]
    #[test]
    fn parts_are_sent_up_to_the_limit() {
        let mut writer = writer(2 * COST);
        for number in 0..2 {
            assert_eq!(writer.admits(100), Ok(()));
            assert_eq!(writer.sent(100, true), number);
        }
        assert_eq!(writer.admits(0), Err(NoPart::Full));
        assert_eq!(writer.count(), 2);
    }

    #[test]
    fn a_limit_that_rises_ends_the_wait_and_an_older_one_changes_nothing() {
        let mut writer = writer(COST);
        writer.sent(100, true);
        assert!(!writer.raise(COST - 1), "nobody waits");
        assert!(writer.block(retry()));
        assert!(!writer.block(retry()));
        assert!(!writer.raise(COST), "it is the same");
        assert_eq!(writer.admits(100), Err(NoPart::Full));
        assert!(writer.raise(2 * COST));
        assert!(writer.blocked_mut().is_none());
        assert_eq!(writer.admits(100), Ok(()));
        assert!(!writer.raise(COST));
        assert_eq!(writer.admits(100), Ok(()), "limits do not go back");
    }

    #[test]
    fn one_part_at_a_time_is_sent_while_too_much_is_kept() {
        let mut writer = writer(u64::MAX);
        assert!(writer.is_starved());
        (0..3).for_each(|_| writer.kept());
        assert!(!writer.is_starved());
        assert!(!writer.acknowledged(false), "nobody waits");
        writer.wait_for_acks();
        assert!(!writer.acknowledged(true));
        assert!(writer.acknowledged(true) && writer.is_starved());
        assert!(!writer.acknowledged(false), "it was told");
    }

    #[test]
    fn acknowledgements_end_the_wait_as_soon_as_less_is_kept() {
        let mut writer = writer(u64::MAX);
        (0..2).for_each(|_| writer.kept());
        writer.wait_for_acks();
        assert!(writer.acknowledged(false) && !writer.is_starved());
    }

    // SMT [5.9-6]
    #[test]
    fn nothing_is_sent_behind_the_last_part() {
        let mut writer = writer(u64::MAX);
        writer.sent(0, false);
        assert_eq!(writer.admits(0), Err(NoPart::Ended));
    }
}
