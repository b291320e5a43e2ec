// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How much a session may send again (SPEC §9.3): as many bytes as it has sent for the first time, and a rate
//! beside that. Who forges DATA makes records fail and be asked for, and gets no more traffic than that.

use crate::limits::{RESEND_BYTES_PER_SECOND, RESEND_CREDIT_MAX};
use crate::time::Time;

/// Bytes that may be sent again.
#[derive(Debug)]
pub(crate) struct ResendCredit {
    bytes: u64,
    /// Up to when the rate has been credited.
    at: Time,
}

impl ResendCredit {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            bytes: RESEND_BYTES_PER_SECOND,
            at: now,
        }
    }

    /// These bytes left for the first time.
    pub(crate) fn earn(&mut self, bytes: usize) {
        self.bytes = (self.bytes + bytes as u64).min(RESEND_CREDIT_MAX);
    }

    /// Whether these bytes may leave again now; if so they are spent.
    pub(crate) fn spend(&mut self, now: Time, bytes: usize) -> bool {
        let since = now.since(self.at).as_micros();
        let earned = (since * u128::from(RESEND_BYTES_PER_SECOND) / 1_000_000) as u64;
        // Less than a byte's worth of time is kept for the next look.
        if earned > 0 {
            self.at = now;
            self.bytes = (self.bytes + earned).min(RESEND_CREDIT_MAX);
        }
        let is_enough = self.bytes >= bytes as u64;
        if is_enough {
            self.bytes -= bytes as u64;
        }
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Spends packets of this size every millisecond for a while; the bytes that were let through.
    fn spent_in(credit: &mut ResendCredit, millis: u64, packet: usize) -> u64 {
        (1..=millis)
            .map(|at| {
                let now = Time::default() + Duration::from_millis(at);
                (0..100).filter(|_| credit.spend(now, packet)).count() as u64 * packet as u64
            })
            .sum()
    }

    #[test]
    fn a_second_yields_the_rate_beside_the_first_burst() {
        let mut credit = ResendCredit::new(Time::default());
        let spent = spent_in(&mut credit, 1_000, 1_200);
        let expected = 2 * RESEND_BYTES_PER_SECOND;
        assert!(
            (expected - 1_200..=expected).contains(&spent),
            "{spent} of {expected}"
        );
    }

    #[test]
    fn what_is_sent_may_be_sent_again() {
        let mut credit = ResendCredit::new(Time::default());
        assert!(credit.spend(Time::default(), RESEND_BYTES_PER_SECOND as usize));
        assert!(!credit.spend(Time::default(), 1));
        credit.earn(1_000);
        assert!(!credit.spend(Time::default(), 1_001));
        assert!(credit.spend(Time::default(), 1_000));
    }

    #[test]
    fn long_silence_does_not_pile_credit_up() {
        let mut credit = ResendCredit::new(Time::default());
        let hour = Time::default() + Duration::from_secs(3_600);
        assert!(credit.spend(hour, RESEND_CREDIT_MAX as usize));
        assert!(!credit.spend(hour, 1));
    }
}
