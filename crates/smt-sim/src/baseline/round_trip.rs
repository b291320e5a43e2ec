// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long a round trip takes, and from that, how long to wait for an acknowledgement (RFC 6298).
//!
//! A connection was opened long since, so it knows how long a round trip is that waits nowhere, and
//! begins with that instead of a second.

use super::limits::{TIMEOUT_MAX, TIMEOUT_MIN};

/// Round trips of a connection, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    /// The round trip of the packets that opened the connection.
    first: u64,
    /// Moving average; 0: none measured yet.
    smoothed: u64,
    variation: u64,
    /// The shortest.
    least: u64,
    /// How often the timeout was doubled since the last measurement.
    doublings: u32,
}

impl RoundTrip {
    /// The connection was opened by packets that came back after so many nanoseconds.
    pub(super) fn new(first: u64) -> Self {
        Self { first, smoothed: 0, variation: 0, least: 0, doublings: 0 }
    }

    /// A segment that was sent once is acknowledged.
    pub(super) fn measure(&mut self, nanos: u64) {
        self.doublings = 0;
        if self.smoothed == 0 {
            self.smoothed = nanos;
            self.variation = nanos / 2;
            self.least = nanos;
            return;
        }
        self.variation = (3 * self.variation + self.smoothed.abs_diff(nanos)) / 4;
        self.smoothed = (7 * self.smoothed + nanos) / 8;
        self.least = self.least.min(nanos);
    }

    /// The timeout has passed in vain.
    pub(super) fn back_off(&mut self) {
        self.doublings += 1;
    }

    /// How long to wait.
    pub(super) fn timeout(&self) -> u64 {
        let once = match self.smoothed {
            // As one measurement has it.
            0 => 3 * self.first,
            smoothed => smoothed + 4 * self.variation,
        };
        let once = once.max(TIMEOUT_MIN);
        let doublings = self.doublings.min(TIMEOUT_MAX.ilog2());
        once.saturating_mul(1 << doublings).min(TIMEOUT_MAX)
    }

    /// No acknowledgement comes sooner.
    pub(super) fn least(&self) -> u64 {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn short_round_trips_have_the_shortest_timeout() {
        let mut round_trip = RoundTrip::new(10_000);
        assert_eq!(round_trip.timeout(), MS);
        round_trip.measure(10_000);
        assert_eq!(round_trip.timeout(), MS);
    }

    #[test]
    fn the_first_timeout_is_that_of_the_packets_that_opened_the_connection() {
        let mut round_trip = RoundTrip::new(20 * MS);
        assert_eq!(round_trip.timeout(), 60 * MS);
        round_trip.measure(10_000);
        assert_eq!(round_trip.timeout(), MS);
    }

    #[test]
    fn the_timeout_is_the_average_and_four_times_the_variation() {
        let mut round_trip = RoundTrip::new(10_000);
        round_trip.measure(8 * MS);
        assert_eq!(round_trip.timeout(), 24 * MS);
        round_trip.measure(16 * MS);
        // Variation (3 * 4 + 8) / 4 = 5, average (7 * 8 + 16) / 8 = 9.
        assert_eq!(round_trip.timeout(), 29 * MS);
        assert_eq!(round_trip.least(), 8 * MS);
    }

    #[test]
    fn waiting_in_vain_doubles_it_until_it_is_measured_again() {
        let mut round_trip = RoundTrip::new(10_000);
        round_trip.back_off();
        round_trip.back_off();
        assert_eq!(round_trip.timeout(), 4 * MS);
        round_trip.measure(10_000);
        assert_eq!(round_trip.timeout(), MS);
        (0..100).for_each(|_| round_trip.back_off());
        assert_eq!(round_trip.timeout(), TIMEOUT_MAX);
    }
}
