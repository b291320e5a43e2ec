// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a session waits before it asks for bytes again (SPEC §9.3: at first 5 ms).
//!
//! On a path with a long queue that is too early: what is asked for is under way, comes twice, and makes the
//! queue longer. What came without RETRANSMIT after it was asked for was late, not lost, and the wait grows;
//! what came again was lost, and the wait shrinks. The flag is a hint of the clear header: who forges it
//! changes when we ask, within the bounds, and nothing else.

use std::time::Duration;

use crate::limits::RESEND_INTERVAL_MAX;
use crate::time::Time;

/// A session's wait before the first question.
#[derive(Debug)]
pub(crate) struct Patience {
    least: Duration,
    interval: Duration,
    /// When it last grew: what was asked for at once is late at once, and counts once.
    grown: Time,
}

impl Patience {
    pub(crate) fn new(least: Duration) -> Self {
        Self {
            least,
            interval: least,
            grown: Time::default(),
        }
    }

    /// The wait before the first question.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Something came that had been asked for: again, or at last.
    pub(crate) fn answered(&mut self, now: Time, is_again: bool) {
        if is_again {
            self.interval = (self.interval / 2).max(self.least);
        } else if now.since(self.grown) >= self.interval {
            let most = RESEND_INTERVAL_MAX.max(self.least);
            self.interval = (self.interval * 2).min(most);
            self.grown = now;
        }
    }

    /// A message came wholly without a question.
    pub(crate) fn untroubled(&mut self) {
        self.interval = (self.interval - self.interval / 64).max(self.least);
    }
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
}
