// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A pacer: it tells when a link is free for the next bytes that are asked to come over it.
//!
//! Each permitted byte occupies the link for its time. A wait for the link that ends late, because
//! timers are coarse, may be caught up a little (`slack`); idle time may not. Times are in
//! picoseconds: a byte at 400 Gb/s takes 20.

use crate::time::Time;

/// The pacer of a link.
#[derive(Debug)]
pub(crate) struct Pacer {
    bits_per_second: u64,
    /// The time that may be caught up.
    slack: u128,
    /// When all permitted bytes have passed.
    free_at: u128,
}

impl Pacer {
    /// A link of this rate; the time that may be caught up is that of `slack` bytes.
    pub(crate) fn new(bits_per_second: u64, slack: u32) -> Self {
        assert!(bits_per_second > 0, "a link carries something");
        let mut pace = Self { bits_per_second, slack: 0, free_at: 0 };
        pace.slack = pace.time_of(slack);
        pace
    }

    /// Whether bytes may be permitted now.
    pub(crate) fn is_free(&self, now: Time) -> bool {
        self.free_at <= picos(now)
    }

    /// Permits `bytes` bytes; `has_waited` tells whether they have waited for the link.
    pub(crate) fn spend(&mut self, now: Time, bytes: u32, has_waited: bool) {
        let slack = if has_waited { self.slack } else { 0 };
        let earliest = picos(now).saturating_sub(slack);
        self.free_at = self.free_at.max(earliest) + self.time_of(bytes);
    }

    /// Counts `bytes` bytes that came without permission. They have passed the link already, so
    /// waiting bytes are put off by the time of these. They are put off by no more than what may be
    /// caught up, however long such bytes came faster than the link carries.
    pub(crate) fn put_off(&mut self, now: Time, bytes: u32) {
        let most = self.free_at.max(picos(now) + self.slack);
        let after = self.free_at.max(picos(now)) + self.time_of(bytes);
        self.free_at = after.min(most);
    }

    /// When bytes may be permitted next.
    pub(crate) fn free_at(&self) -> Time {
        Time::from_nanos(u64::try_from(self.free_at.div_ceil(PICOS)).unwrap_or(u64::MAX))
    }

    fn time_of(&self, bytes: u32) -> u128 {
        u128::from(bytes) * 8 * PICOS_PER_SECOND / u128::from(self.bits_per_second)
    }
}

fn picos(time: Time) -> u128 {
    u128::from(time.as_nanos()) * PICOS
}

/// Picoseconds of a nanosecond.
const PICOS: u128 = 1_000;
const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Permits packets of 1,250 bytes whenever the link is free, looking every `grain`. Returns how
    /// many in a millisecond.
    fn packets(pace: &mut Pacer, grain: Duration, has_waited: bool) -> u32 {
        let began = Time::from_nanos(5_000_000_000);
        let (mut now, mut count) = (began, 0);
        while now < began + Duration::from_millis(1) {
            while pace.is_free(now) {
                pace.spend(now, 1_250, has_waited);
                count += 1;
            }
            now = now + grain;
        }
        count
    }

    #[test]
    fn a_link_is_filled_and_not_more() {
        let mut pace = Pacer::new(10_000_000_000, 0);
        assert_eq!(packets(&mut pace, Duration::from_nanos(10), true), 1_000);
    }

    // SMT [9.10-4]
    #[test]
    fn coarse_timers_catch_up_what_the_slack_permits() {
        let grain = Duration::from_micros(10);
        let mut pace = Pacer::new(10_000_000_000, 12_500);
        let count = packets(&mut pace, grain, true);
        assert!((1_000..=1_011).contains(&count), "{count}");
        let mut idle = Pacer::new(10_000_000_000, 12_500);
        assert_eq!(packets(&mut idle, grain, false), 100);
    }

    #[test]
    fn unscheduled_bytes_put_off_by_the_slack_at_most() {
        let mut pace = Pacer::new(10_000_000_000, 12_500);
        let now = Time::from_nanos(5_000_000_000);
        pace.put_off(now, 1_250);
        assert_eq!(pace.free_at(), now + Duration::from_micros(1));
        (0..1_000).for_each(|_| pace.put_off(now, 1_250));
        assert_eq!(pace.free_at(), now + Duration::from_micros(10));
        // Permitted bytes count in full, and are not forgotten.
        pace.spend(now, 125_000, false);
        pace.put_off(now, 1_250);
        assert_eq!(pace.free_at(), now + Duration::from_micros(110));
    }

    #[test]
    fn it_is_free_when_it_says_so() {
        let mut pace = Pacer::new(3_000_000_007, 0);
        let mut now = Time::from_nanos(77);
        for bytes in 1..1_000 {
            assert!(pace.is_free(now));
            pace.spend(now, bytes, false);
            let due = pace.free_at();
            assert!(due > now && !pace.is_free(now));
            now = due;
        }
    }
}
