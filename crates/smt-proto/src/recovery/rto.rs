// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The RTO estimator: how long a session waits before it asks for bytes again (SPEC §9.3: at first
//! 5 ms, and up to a quarter more).
//!
//! On a path with a long queue 5 ms are too short: the bytes that are asked for are under way, come
//! twice, and make the queue longer. Bytes that came without RETRANSMIT after they were asked for
//! were late, not lost, and the wait grows. Bytes that came again were lost, and the wait shrinks.
//! The flag is a hint of the clear header: a forger changes when this side asks, within the bounds,
//! and nothing else.
//!
//! Where replies come fast 5 ms are long: a lone call that was lost would wait for a hundred round
//! trips. The first question about a call therefore comes after the longest time of recent replies,
//! if that is less: the mean and four deviations, as TCP has it (RFC 6298 §2), of one reply a round
//! trip. A reply that a scheduler has held up is forgotten after some thirty others.

use core::time::Duration;

use crate::limits::{REPLY_INTERVAL_MIN, RESEND_INTERVAL_MAX};
use crate::time::Time;

/// A session's wait before the first question. It is in nanoseconds, since every message looks at
/// it. Times of replies have 32 bits, since every session has them: 4 s are longer than any wait.
#[derive(Debug)]
pub(crate) struct RtoEstimator {
    least: u64,
    interval: u64,
    /// When the wait last grew: bytes that were asked for at once are late at once, and count once.
    grown: Time,
    /// How long replies take.
    replies: Option<SmoothedTime>,
    /// When a reply last began a round trip, and the time of the slowest reply of that round trip.
    round: Time,
    slowest: u32,
    /// The time of the last replies that were asked about, until one comes that was not.
    asked: u32,
}

/// Recent times: their mean over some eight, and their deviation from it over some four.
#[derive(Clone, Copy, Debug)]
struct SmoothedTime {
    mean: u32,
    deviation: u32,
}

impl SmoothedTime {
    fn first(time: u32) -> Self {
        Self { mean: time, deviation: time / 2 }
    }

    fn and(self, time: u32) -> Self {
        Self {
            mean: self.mean - self.mean / 8 + time / 8,
            deviation: self.deviation - self.deviation / 4 + self.mean.abs_diff(time) / 4,
        }
    }

    /// The same estimate as if the last reply had taken this much longer.
    fn later(self, by: u32) -> Self {
        Self {
            mean: self.mean.saturating_add(by / 8),
            deviation: self.deviation.saturating_add(by / 4),
        }
    }

    /// A time that hardly any reply exceeds.
    fn most(self) -> u64 {
        u64::from(self.mean) + u64::from(self.deviation) * 4
    }
}

impl RtoEstimator {
    pub(crate) fn new(least: Duration) -> Self {
        Self {
            least: nanos(least),
            interval: nanos(least),
            grown: Time::default(),
            replies: None,
            round: Time::default(),
            slowest: 0,
            asked: 0,
        }
    }

    /// The wait before the first question.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// The wait before the first question about a call.
    pub(crate) fn reply_interval(&self) -> Duration {
        match self.replies {
            Some(replies) => {
                let least = nanos(REPLY_INTERVAL_MIN).min(self.least);
                let wait = replies.most().max(self.asked.into());
                Duration::from_nanos(wait.clamp(least, self.interval))
            }
            None => self.interval(),
        }
    }

    /// Takes the time from a call, or from the last news of its request (GRANT, RESEND), to the
    /// beginning of its reply.
    ///
    /// Calls that were made before one was measured are of the same round trip, of which only the
    /// slowest counts (RFC 6298 §3): a hundred replies that one batch has brought are alike, and
    /// would make the deviation nothing.
    pub(crate) fn reply_sample(&mut self, now: Time, after: Duration) {
        let is_of_round = now.since(self.round) < after;
        let after = nanos_of_reply(after);
        self.asked = 0;
        let replies = match self.replies {
            Some(replies) if is_of_round => {
                let by = after.saturating_sub(self.slowest);
                self.slowest += by;
                replies.later(by)
            }
            before => {
                (self.round, self.slowest) = (now, after);
                match before {
                    Some(before) => before.and(after),
                    None => SmoothedTime::first(after),
                }
            }
        };
        self.replies = Some(replies);
    }

    /// Takes the time of a reply that was asked about. It does not count, since some of it may have
    /// been the wait for the question (Karn; RFC 6298 §3). But the next reply is given longer than
    /// that (§5.5 there): if replies take so long now, one comes without a question, and counts.
    pub(crate) fn ambiguous_reply_sample(&mut self, after: Duration) {
        let after = nanos_of_reply(after);
        self.asked = self.asked.max(after.saturating_add(after / 4));
    }

    /// Takes bytes that had been asked for: they came again, or at last.
    pub(crate) fn answered(&mut self, now: Time, is_again: bool) {
        if is_again {
            self.interval = (self.interval / 2).max(self.least);
        } else if now.since(self.grown) >= self.interval() {
            let most = nanos(RESEND_INTERVAL_MAX).max(self.least);
            self.interval = self.interval.saturating_mul(2).min(most);
            self.grown = now;
        }
    }

    /// Takes a message that has come whole.
    pub(crate) fn on_whole_message(&mut self) {
        self.interval = (self.interval - self.interval / 64).max(self.least);
    }
}

/// Nanoseconds of a time, at most five centuries.
fn nanos(interval: Duration) -> u64 {
    u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds of a time in 32 bits, at most four seconds.
fn nanos_of_reply(time: Duration) -> u32 {
    u32::try_from(time.as_nanos()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(5);

    #[test]
    fn it_grows_while_bytes_are_late_and_counts_one_queue_once() {
        let mut rto = RtoEstimator::new(LEAST);
        let now = Time::from_nanos(1_000_000_000);
        (0..100).for_each(|_| rto.answered(now, false));
        assert_eq!(rto.interval(), LEAST * 2);
        rto.answered(now + LEAST * 2, false);
        assert_eq!(rto.interval(), LEAST * 4);
    }

    #[test]
    fn it_shrinks_when_bytes_were_lost_and_slowly_when_all_is_well() {
        let mut rto = RtoEstimator::new(LEAST);
        for second in 1..20 {
            rto.answered(Time::from_nanos(second * 1_000_000_000), false);
        }
        assert_eq!(rto.interval(), RESEND_INTERVAL_MAX);
        rto.answered(Time::default(), true);
        assert_eq!(rto.interval(), RESEND_INTERVAL_MAX / 2);
        (0..1_000).for_each(|_| rto.on_whole_message());
        assert_eq!(rto.interval(), LEAST);
    }

    /// Replies that took this long each, one after the other.
    fn alone(rto: &mut RtoEstimator, times: impl IntoIterator<Item = u64>) {
        let mut now = rto.round;
        for time in times {
            now = now + micros(time);
            rto.reply_sample(now, micros(time));
        }
    }

    #[test]
    fn a_call_is_asked_about_when_hardly_any_reply_takes_longer() {
        let mut rto = RtoEstimator::new(LEAST);
        assert_eq!(rto.reply_interval(), LEAST, "nothing is known");
        alone(&mut rto, (0..100).map(|number| 400 + number % 2 * 200));
        let interval = rto.reply_interval();
        assert!(interval > micros(700) && interval <= micros(1_000), "{interval:?}");
        alone(&mut rto, [20; 1_000]);
        assert_eq!(rto.reply_interval(), REPLY_INTERVAL_MIN);
        alone(&mut rto, [100_000]);
        assert_eq!(rto.reply_interval(), LEAST, "never later than without");
    }

    #[test]
    fn one_reply_that_was_held_up_is_soon_forgotten() {
        let mut rto = RtoEstimator::new(LEAST);
        alone(&mut rto, [60; 100]);
        alone(&mut rto, [2_000]);
        assert!(rto.reply_interval() > micros(2_000));
        alone(&mut rto, [60; 30]);
        assert!(rto.reply_interval() < micros(2 * 60 + 20));
    }

    #[test]
    fn replies_that_came_together_count_as_the_slowest_of_them() {
        // Fifty calls at a time, of which each second batch takes four times as long.
        let (mut together, mut slowest) = (RtoEstimator::new(LEAST), RtoEstimator::new(LEAST));
        let mut now = Time::default();
        for batch in 0..40 {
            let time = 200 + batch % 2 * 600;
            now = now + micros(1_000);
            for before in (0..50).rev() {
                together.reply_sample(now + micros(50 - before), micros(time - before));
            }
            slowest.reply_sample(now, micros(time));
        }
        let (together, slowest) = (together.reply_interval(), slowest.reply_interval());
        assert!(together > micros(800), "a batch was forgotten within the next: {together:?}");
        assert!(together.abs_diff(slowest) < slowest / 8, "{together:?}, {slowest:?}");
    }

    #[test]
    fn replies_of_any_length_are_no_trouble() {
        for apart in [0, 10_000_000] {
            let mut rto = RtoEstimator::new(LEAST);
            let mut now = Time::default();
            for time in [0, u64::MAX, u64::MAX, 0, u64::MAX] {
                now = now + micros(apart);
                rto.reply_sample(now, Duration::from_nanos(time));
                let interval = rto.reply_interval();
                assert!(interval >= REPLY_INTERVAL_MIN && interval <= LEAST);
            }
        }
    }

    fn micros(number: u64) -> Duration {
        Duration::from_micros(number)
    }
}
