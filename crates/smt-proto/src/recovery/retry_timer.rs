// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The retry timer of a question, which is repeated at growing intervals until it is answered (SPEC
//! §9.3).

use core::num::NonZeroU32;
use core::time::Duration;

use crate::recovery::rto::RtoEstimator;
use crate::time::Time;

/// When to ask (again), and how often it was asked without progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryTimer {
    pub(crate) due: Time,
    /// Microseconds until the next one: every message has a question, so it is small.
    interval_us: NonZeroU32,
    /// Questions since the peer was last heard about it.
    pub(crate) asked: u32,
    /// Questions since the last progress.
    pub(crate) asked_in_vain: u32,
    /// The next question comes before the interval has passed.
    is_first_probe: bool,
    /// When waiting began, or the peer was last heard about it.
    pub(crate) since: Time,
    /// When the peer last asked about the same message, or waiting began: it still wants it.
    pub(crate) wanted_at: Time,
}

impl RetryTimer {
    /// First asked after `interval`.
    pub(crate) fn new(now: Time, interval: Duration) -> Self {
        Self {
            due: now + interval,
            interval_us: micros(interval),
            asked: 0,
            asked_in_vain: 0,
            is_first_probe: false,
            since: now,
            wanted_at: now,
        }
    }

    /// First asked after `reordered`, then after `interval`, as if that were the first.
    pub(crate) fn with_first_probe(now: Time, probe_after: Duration, interval: Duration) -> Self {
        if probe_after >= interval {
            return Self::new(now, interval);
        }
        Self {
            due: now + probe_after,
            is_first_probe: true,
            ..Self::new(now, interval / 2)
        }
    }

    /// Something came: the peer is alive and working on it.
    pub(crate) fn progressed(&mut self, now: Time, interval: Duration) {
        *self = Self::new(now, interval);
    }

    /// The awaited packet came: for the first time, or as a repetition (`is_again`).
    pub(crate) fn came(&mut self, now: Time, rto: &mut RtoEstimator, is_again: bool) {
        if self.is_telling(now, rto, is_again) {
            rto.answered(now, is_again);
        }
        self.progressed(now, rto.interval());
    }

    /// A reply has begun, not for the second time.
    pub(crate) fn reply_sample(&self, now: Time, rto: &mut RtoEstimator) {
        let after = now.since(self.since);
        match self.asked {
            0 => rto.reply_sample(now, after),
            // The request may have left again with the question: it is not known to which of the
            // two this is the reply.
            _ => rto.ambiguous_reply_sample(after),
        }
    }

    /// Whether an arrival now tells of the interval. It does not if it was asked for by a first
    /// probe and comes late.
    pub(crate) fn is_telling(&self, now: Time, rto: &RtoEstimator, is_again: bool) -> bool {
        let was_due = now.since(self.since) >= rto.interval();
        self.asked > 0 && (is_again || was_due)
    }

    /// The peer heard us but has nothing new: keep the interval grown, do not count.
    pub(crate) fn heard(&mut self, now: Time) {
        self.since = now;
        self.wanted_at = now;
        self.asked = 0;
        self.is_first_probe = false;
    }

    /// The peer works on it. Not [`Self::heard`]: `since` stays, so the time of a reply is all of
    /// it.
    pub(crate) fn busy(&mut self) {
        self.asked = 0;
    }

    /// The peer has asked about the same message. Returns whether missing bytes may be asked for
    /// with the answer. Such a question is like any other, so it is asked once in an interval, and
    /// the next one is later (SPEC §9.4).
    pub(crate) fn ask_beside_answer(&mut self, now: Time, longest: Duration) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.ask(now, longest);
        }
        is_due
    }

    /// The peer has asked about the same message.
    pub(crate) fn peer_asked(&mut self, now: Time) {
        self.wanted_at = now;
    }

    /// The next one is due by `due`.
    pub(crate) fn hurry(&mut self, due: Time) {
        self.due = self.due.min(due);
    }

    /// Nothing is to be asked: it waits for us.
    pub(crate) fn waits_here(&mut self, now: Time) {
        self.heard(now);
        self.asked_in_vain = 0;
    }

    /// It is asked now; next time after twice the interval, at most `longest`. Returns whether that
    /// was early.
    pub(crate) fn ask(&mut self, now: Time, longest: Duration) -> bool {
        self.asked += 1;
        self.asked_in_vain += 1;
        let twice = self.interval_us.saturating_add(self.interval_us.get());
        self.interval_us = twice.min(micros(longest));
        self.due = now + Duration::from_micros(self.interval_us.get().into());
        core::mem::take(&mut self.is_first_probe)
    }
}

/// Whole microseconds, at least one. Intervals are far below an hour.
fn micros(interval: Duration) -> NonZeroU32 {
    let micros = u32::try_from(interval.as_micros()).unwrap_or(u32::MAX);
    NonZeroU32::new(micros).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    const LEAST: Duration = Duration::from_millis(5);

    /// Asked when it is due, about what comes late, not again. The interval afterwards.
    fn interval_after(mut retry: RetryTimer) -> Duration {
        let mut rto = RtoEstimator::new(LEAST);
        let now = retry.due;
        retry.ask(now, LEAST * 8);
        retry.came(now + LEAST / 10, &mut rto, false);
        rto.interval()
    }

    #[test]
    fn an_answer_to_a_first_probe_says_nothing_of_the_interval() {
        let now = Time::from_nanos(1_000_000_000);
        let reordered = RetryTimer::with_first_probe(now, LEAST / 10, LEAST);
        assert_eq!(interval_after(reordered), LEAST);
        assert_eq!(interval_after(RetryTimer::new(now, LEAST)), LEAST * 2);
    }

    #[test]
    fn the_interval_after_a_first_probe_is_as_at_first() {
        let now = Time::from_nanos(1_000_000_000);
        let waits = |reordered| {
            let mut retry = RetryTimer::with_first_probe(now, reordered, LEAST);
            let mut last = now;
            [(); 4].map(|()| {
                let asked = retry.due;
                retry.ask(asked, LEAST * 100);
                (asked - std::mem::replace(&mut last, asked)).as_micros()
            })
        };
        assert_eq!(waits(LEAST / 10), [500, 5_000, 10_000, 20_000]);
        assert_eq!(waits(LEAST), [5_000, 10_000, 20_000, 40_000]);
    }

    #[test]
    fn intervals_double_to_the_longest() {
        let longest = Duration::from_millis(40);
        let mut retry = RetryTimer::new(Time::default(), Duration::from_millis(5));
        let mut waits = Vec::new();
        for _ in 0..5 {
            let now = retry.due;
            retry.ask(now, longest);
            waits.push((retry.due - now).as_millis());
        }
        assert_eq!(waits, [10, 20, 40, 40, 40]);
        assert_eq!(retry.asked, 5);
    }
}
