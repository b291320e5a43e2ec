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
    /// Microseconds until the next question. Every message has a retry timer, so the field is
    /// small.
    interval_us: NonZeroU32,
    /// Questions since the peer last answered one.
    pub(crate) asked: u32,
    /// Questions since the last progress.
    pub(crate) asked_in_vain: u32,
    /// The next question comes before the interval has passed.
    is_first_probe: bool,
    /// When waiting began, or the peer last answered.
    pub(crate) since: Time,
    /// When the peer last asked about the same message, which it still wants, or waiting began.
    pub(crate) wanted_at: Time,
}

impl RetryTimer {
    /// A timer whose first question comes after `interval`.
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

    /// A timer whose first probe comes after `probe_after`, and the next question after `interval`,
    /// as if that were the first.
    pub(crate) fn with_first_probe(now: Time, probe_after: Duration, interval: Duration) -> Self {
        if probe_after >= interval {
            return Self::new(now, interval);
        }
        Self { due: now + probe_after, is_first_probe: true, ..Self::new(now, interval / 2) }
    }

    /// Takes progress: the peer is alive and working on the message.
    pub(crate) fn progressed(&mut self, now: Time, interval: Duration) {
        *self = Self::new(now, interval);
    }

    /// Takes the awaited packet, which came for the first time or as a repetition (`is_again`).
    pub(crate) fn came(&mut self, now: Time, rto: &mut RtoEstimator, is_again: bool) {
        if self.is_telling(now, rto, is_again) {
            rto.answered(now, is_again);
        }
        self.progressed(now, rto.interval());
    }

    /// Takes the beginning of a reply, which is no repetition.
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

    /// Takes an answer of the peer that is no progress: the interval stays grown, and the questions
    /// so far do not count.
    pub(crate) fn answered(&mut self, now: Time) {
        self.since = now;
        self.wanted_at = now;
        self.asked = 0;
        self.is_first_probe = false;
    }

    /// Takes a sign that the peer works on the message. In contrast to [`Self::answered`], `since`
    /// stays, so that the time of a reply is all of it.
    pub(crate) fn busy(&mut self) {
        self.asked = 0;
    }

    /// Takes a question of the peer about the same message. Returns whether missing bytes may be
    /// asked for with the answer. Such a question is like any other, so it is asked once in an
    /// interval, and the next one is later (SPEC §9.4).
    pub(crate) fn ask_beside_answer(&mut self, now: Time, longest: Duration) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.ask(now, longest);
        }
        is_due
    }

    /// Notes that the peer has asked about the same message.
    pub(crate) fn peer_asked(&mut self, now: Time) {
        self.wanted_at = now;
    }

    /// Makes the next question due by `due`.
    pub(crate) fn make_due_by(&mut self, due: Time) {
        self.due = self.due.min(due);
    }

    /// Puts the question off, since the peer waits for this side.
    pub(crate) fn waits_here(&mut self, now: Time) {
        self.answered(now);
        self.asked_in_vain = 0;
    }

    /// Counts a question that is asked now; the next comes after twice the interval, at most
    /// `longest`. Returns whether this was the first probe.
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

    /// The interval after a question that is asked when it is due, about bytes that come late and
    /// not again.
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
        let retry = RetryTimer::with_first_probe(now, LEAST / 10, LEAST);
        assert_eq!(interval_after(retry), LEAST);
        assert_eq!(interval_after(RetryTimer::new(now, LEAST)), LEAST * 2);
    }

    // SMT [9.3-13]
    #[test]
    fn the_interval_after_a_first_probe_is_as_at_first() {
        let now = Time::from_nanos(1_000_000_000);
        let waits = |probe_after| {
            let mut retry = RetryTimer::with_first_probe(now, probe_after, LEAST);
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
