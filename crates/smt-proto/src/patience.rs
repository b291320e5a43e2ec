// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a session waits before it asks for bytes again (SPEC §9.3: at first 5 ms).
//!
//! On a path with a long queue that is too early: what is asked for is under way, comes twice, and makes the
//! queue longer. What came without RETRANSMIT after it was asked for was late, not lost, and the wait grows;
//! what came again was lost, and the wait shrinks. The flag is a hint of the clear header: who forges it
//! changes when we ask, within the bounds, and nothing else.
//!
//! Where replies come fast 5 ms are long: a lone call that was lost would wait for a hundred round trips. The first
//! question about a call therefore comes after twice the time that the slowest reply of late has taken, if that is less.

use std::time::Duration;

use crate::limits::{REPLY_INTERVAL_MIN, RESEND_INTERVAL_MAX};
use crate::time::Time;

/// A session's wait before the first question. In nanoseconds, since every message looks at it.
#[derive(Debug)]
pub(crate) struct Patience {
    least: u64,
    interval: u64,
    /// When it last grew: what was asked for at once is late at once, and counts once.
    grown: Time,
    /// How long replies take: the slowest, forgotten over some hundred others.
    slowest: Option<u64>,
}

impl Patience {
    pub(crate) fn new(least: Duration) -> Self {
        Self {
            least: nanos(least),
            interval: nanos(least),
            grown: Time::default(),
            slowest: None,
        }
    }

    /// The wait before the first question.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// The wait before the first question about a call.
    pub(crate) fn reply_interval(&self) -> Duration {
        match self.slowest {
            // Who has asked too early of late does not know the path.
            Some(slowest) if self.interval == self.least => {
                let least = nanos(REPLY_INTERVAL_MIN).min(self.least);
                Duration::from_nanos(slowest.saturating_mul(2).clamp(least, self.least))
            }
            _ => self.interval(),
        }
    }

    /// A reply has begun so long after its call was made.
    pub(crate) fn replied(&mut self, after: Duration) {
        let after = nanos(after);
        self.slowest = Some(match self.slowest {
            Some(slowest) if slowest > after => slowest - (slowest - after) / 64,
            _ => after,
        });
    }

    /// Something came that had been asked for: again, or at last.
    pub(crate) fn answered(&mut self, now: Time, is_again: bool) {
        if is_again {
            self.interval = (self.interval / 2).max(self.least);
        } else if now.since(self.grown) >= self.interval() {
            let most = nanos(RESEND_INTERVAL_MAX).max(self.least);
            self.interval = self.interval.saturating_mul(2).min(most);
            self.grown = now;
        }
    }

    /// A message came wholly without a question.
    pub(crate) fn untroubled(&mut self) {
        self.interval = (self.interval - self.interval / 64).max(self.least);
    }
}

/// At most five centuries of them.
fn nanos(interval: Duration) -> u64 {
    u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(5);

    #[test]
    fn it_grows_while_bytes_are_late_and_counts_one_queue_once() {
        let mut patience = Patience::new(LEAST);
        let now = Time::from_nanos(1_000_000_000);
        (0..100).for_each(|_| patience.answered(now, false));
        assert_eq!(patience.interval(), LEAST * 2);
        patience.answered(now + LEAST * 2, false);
        assert_eq!(patience.interval(), LEAST * 4);
    }

    #[test]
    fn it_shrinks_when_bytes_were_lost_and_slowly_when_all_is_well() {
        let mut patience = Patience::new(LEAST);
        for second in 1..20 {
            patience.answered(Time::from_nanos(second * 1_000_000_000), false);
        }
        assert_eq!(patience.interval(), RESEND_INTERVAL_MAX);
        patience.answered(Time::default(), true);
        assert_eq!(patience.interval(), RESEND_INTERVAL_MAX / 2);
        (0..1_000).for_each(|_| patience.untroubled());
        assert_eq!(patience.interval(), LEAST);
    }

    #[test]
    fn a_call_is_asked_about_after_twice_what_the_slowest_reply_took() {
        let ms = Duration::from_millis;
        let mut patience = Patience::new(LEAST);
        assert_eq!(patience.reply_interval(), LEAST, "nothing is known");
        patience.replied(ms(1));
        patience.replied(Duration::from_micros(20));
        assert!(patience.reply_interval() > ms(1) && patience.reply_interval() <= ms(2));
        (0..1_000).for_each(|_| patience.replied(Duration::from_micros(20)));
        assert_eq!(patience.reply_interval(), REPLY_INTERVAL_MIN);
        patience.replied(ms(100));
        assert_eq!(patience.reply_interval(), LEAST, "never later than without");
    }

    #[test]
    fn who_has_asked_too_early_does_not_do_so_again_soon() {
        let mut patience = Patience::new(LEAST);
        patience.replied(Duration::from_micros(20));
        patience.answered(Time::from_nanos(1_000_000_000), false);
        assert_eq!(patience.reply_interval(), LEAST * 2);
        (0..100).for_each(|_| patience.untroubled());
        assert_eq!(patience.reply_interval(), REPLY_INTERVAL_MIN);
    }
}
