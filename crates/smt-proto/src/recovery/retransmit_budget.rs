// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes that a session may send again (SPEC §9.3): as many as it has sent for the first time,
//! and a rate beside that. An attacker who forges DATA makes records fail and be asked for, and
//! causes no more traffic than that. As many bytes of records may be sealed again for it: a peer
//! that asks for a byte of each record causes no more work either.

use crate::limits::{RESEND_BYTES_PER_SECOND, RESEND_CREDIT_MAX};
use crate::time::Time;

/// Bytes that may be sent again.
#[derive(Debug)]
pub(crate) struct RetransmitBudget {
    sent: u64,
    /// Bytes of records that may be sealed again.
    sealed: u64,
    /// The time up to which the rate has been credited.
    at: Time,
}

impl RetransmitBudget {
    pub(crate) fn new(now: Time) -> Self {
        Self { sent: RESEND_BYTES_PER_SECOND, sealed: RESEND_BYTES_PER_SECOND, at: now }
    }

    /// Credits bytes that left for the first time.
    pub(crate) fn earn(&mut self, bytes: usize) {
        self.credit(bytes as u64);
    }

    /// Whether this many bytes may be sent again now, and this many bytes of records sealed again
    /// for that. If so they are spent.
    pub(crate) fn spend(&mut self, now: Time, sent: usize, sealed: usize) -> bool {
        let since = now.since(self.at).as_micros();
        let earned = (since * u128::from(RESEND_BYTES_PER_SECOND) / 1_000_000) as u64;
        // Less than a byte's worth of time is kept for the next look.
        if earned > 0 {
            self.at = now;
            self.credit(earned);
        }
        let is_enough = self.sent >= sent as u64 && self.sealed >= sealed as u64;
        if is_enough {
            self.sent -= sent as u64;
            self.sealed -= sealed as u64;
        }
        is_enough
    }

    fn credit(&mut self, bytes: u64) {
        self.sent = (self.sent + bytes).min(RESEND_CREDIT_MAX);
        self.sealed = (self.sealed + bytes).min(RESEND_CREDIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Spends packets of this size every millisecond for a while. Returns the bytes that were
    /// permitted.
    fn spent_in(credit: &mut RetransmitBudget, millis: u64, packet: usize) -> u64 {
        (1..=millis)
            .map(|at| {
                let now = Time::default() + Duration::from_millis(at);
                (0..100).filter(|_| credit.spend(now, packet, 0)).count() as u64 * packet as u64
            })
            .sum()
    }

    #[test]
    fn a_second_yields_the_rate_beside_the_first_burst() {
        let mut credit = RetransmitBudget::new(Time::default());
        let spent = spent_in(&mut credit, 1_000, 1_200);
        let expected = 2 * RESEND_BYTES_PER_SECOND;
        assert!((expected - 1_200..=expected).contains(&spent), "{spent} of {expected}");
    }

    #[test]
    fn bytes_that_were_sent_may_be_sent_again() {
        let mut credit = RetransmitBudget::new(Time::default());
        assert!(credit.spend(Time::default(), RESEND_BYTES_PER_SECOND as usize, 0));
        assert!(!credit.spend(Time::default(), 1, 0));
        credit.earn(1_000);
        assert!(!credit.spend(Time::default(), 1_001, 0));
        assert!(credit.spend(Time::default(), 1_000, 0));
    }

    #[test]
    fn a_byte_of_each_record_costs_the_records() {
        let mut credit = RetransmitBudget::new(Time::default());
        let granted = (0..10_000).filter(|_| credit.spend(Time::default(), 37, 16_406));
        assert_eq!(granted.count() as u64, RESEND_BYTES_PER_SECOND / 16_406);
        assert!(credit.spend(Time::default(), 1_200, 0), "the bytes are left");
    }

    #[test]
    fn long_silence_does_not_pile_credit_up() {
        let mut credit = RetransmitBudget::new(Time::default());
        let hour = Time::default() + Duration::from_secs(3_600);
        let most = RESEND_CREDIT_MAX as usize;
        assert!(credit.spend(hour, most, most));
        assert!(!credit.spend(hour, 1, 0) && !credit.spend(hour, 0, 1));
    }
}
