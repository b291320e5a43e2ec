// SPDX-License-Identifier: Apache-2.0 OR MIT
//! EPOCH_DONE: what holds the previous epoch of this side, and when that is asked about (SPEC
//! §7.3).

use alloc::vec::Vec;
use core::time::Duration;

use smt_wire::MessageId;

use crate::limits::RESEND_INTERVAL_MAX;
use crate::recovery::retry_timer::RetryTimer;
use crate::time::Time;

/// A message that may still have to repeat a record of the previous epoch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::session) struct Holder {
    pub(in crate::session) id: MessageId,
    /// Bytes of the message that the peer is known to have opened.
    pub(in crate::session) opened: u32,
}

/// The previous epoch, when a question about it is due.
#[derive(Debug)]
pub(super) struct EpochInUse {
    pub(super) epoch: u32,
    pub(super) holders: Vec<Holder>,
    /// Whether something waits for the epoch after the current one.
    pub(super) is_waited_for: bool,
}

/// The question that is due about the previous epoch.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::session) enum PreviousEpoch {
    NothingDue,
    /// These messages hold the epoch, and something waits for the next: they are asked about.
    HeldBy(Vec<MessageId>),
    /// No message holds the epoch: EPOCH_DONE is due.
    Finished {
        epoch: u32,
    },
}

/// The timer of EPOCH_DONE.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EpochDone {
    retry: Option<RetryTimer>,
    /// The holders when the epoch was last asked about.
    held: Held,
    /// EPOCH_DONE has left.
    is_told: bool,
}

impl EpochDone {
    /// Begins with a new epoch: the one before it is first looked at after `interval`.
    pub(super) fn restart(&mut self, now: Time, interval: Duration) {
        *self = Self { retry: Some(RetryTimer::new(now, interval)), ..Self::default() };
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.retry.map(|retry| retry.due)
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Counts a question that is due, and says what it is about.
    pub(super) fn ask(
        &mut self,
        now: Time,
        interval: Duration,
        previous: EpochInUse,
    ) -> PreviousEpoch {
        let EpochInUse { epoch, holders, is_waited_for } = previous;
        let Some(retry) = &mut self.retry else {
            return PreviousEpoch::NothingDue;
        };
        if holders.is_empty() {
            retry.ask(now, RESEND_INTERVAL_MAX);
            self.is_told = true;
            return PreviousEpoch::Finished { epoch };
        }
        if !is_waited_for {
            retry.progressed(now, interval);
            return PreviousEpoch::NothingDue;
        }
        let held = Held::by(&holders);
        if self.held != held {
            self.held = held;
            retry.asked_in_vain = 0;
        }
        let longest = match retry.asked_in_vain < FREQUENT_QUESTIONS {
            true => interval * FREQUENT_INTERVALS,
            false => RESEND_INTERVAL_MAX,
        };
        retry.ask(now, longest);
        PreviousEpoch::HeldBy(holders.into_iter().map(|holder| holder.id).collect())
    }
}

/// Messages that hold up an epoch are asked about at least once in this many resend intervals.
const FREQUENT_INTERVALS: u32 = 8;
/// Questions about an epoch that have changed nothing after which they become rarer: a loss that
/// lasts is asked about ever more rarely (SPEC §9.3).
const FREQUENT_QUESTIONS: u32 = 8;

/// Holders of an epoch: while they stay the same, asking about it has changed nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Held {
    messages: u32,
    /// Bytes of the messages that the peer has opened, modulo 2^32; the number only goes up.
    opened: u32,
}

impl Held {
    fn by(holders: &[Holder]) -> Self {
        let opened = holders.iter().map(|holder| holder.opened);
        Self {
            messages: u32::try_from(holders.len()).unwrap_or(u32::MAX),
            opened: opened.fold(0, u32::wrapping_add),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    const INTERVAL: Duration = Duration::from_millis(5);

    fn holder(id: u64, opened: u32) -> Holder {
        Holder { id: MessageId(id), opened }
    }

    fn in_use(holders: &[Holder], is_waited_for: bool) -> EpochInUse {
        EpochInUse { epoch: 3, holders: holders.to_vec(), is_waited_for }
    }

    fn begun() -> EpochDone {
        let mut epoch_done = EpochDone::default();
        epoch_done.restart(Time::default(), INTERVAL);
        epoch_done
    }

    /// Milliseconds until each of `count` questions about an epoch that is waited for.
    fn waits(epoch_done: &mut EpochDone, count: usize, holders: &[Holder]) -> Vec<u128> {
        let mut before = epoch_done.due().unwrap();
        let wait = |()| {
            let asked = epoch_done.ask(before, INTERVAL, in_use(holders, true));
            assert!(matches!(asked, PreviousEpoch::HeldBy(_)));
            let due = epoch_done.due().unwrap();
            (due - core::mem::replace(&mut before, due)).as_millis()
        };
        core::iter::repeat_n((), count).map(wait).collect()
    }

    #[test]
    fn an_epoch_that_no_message_holds_is_told_until_it_is_acknowledged() {
        let mut epoch_done = begun();
        assert!(!epoch_done.is_due(Time::default()) && !epoch_done.is_told());
        for _ in 0..3 {
            let due = epoch_done.due().unwrap();
            let asked = epoch_done.ask(due, INTERVAL, in_use(&[], false));
            assert_eq!(asked, PreviousEpoch::Finished { epoch: 3 });
            assert!(epoch_done.is_told() && due < epoch_done.due().unwrap());
        }
    }

    #[test]
    fn holders_are_left_alone_while_nothing_waits_for_the_next_epoch() {
        let mut epoch_done = begun();
        let due = epoch_done.due().unwrap();
        let asked = epoch_done.ask(due, INTERVAL, in_use(&[holder(1, 0)], false));
        assert_eq!(asked, PreviousEpoch::NothingDue);
        assert_eq!(epoch_done.due(), Some(due + INTERVAL));
        assert!(!epoch_done.is_told());
    }

    #[test]
    fn questions_that_change_nothing_become_rarer() {
        let waits = waits(&mut begun(), 12, &[holder(1, 100)]);
        assert_eq!(waits[..4], [10, 20, 40, 40]);
        assert!(waits[8] > 40 && waits[9] > waits[8]);
    }

    #[test]
    fn questions_stay_frequent_while_the_peer_opens_more() {
        let mut epoch_done = begun();
        for opened in 0..20 {
            let waits = waits(&mut epoch_done, 4, &[holder(1, opened)]);
            assert!(waits.iter().all(|wait| *wait <= 40));
        }
    }
}
