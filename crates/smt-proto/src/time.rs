// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Time as the core sees it: nanoseconds since a beginning that the caller chose.
//!
//! The core never reads a clock; each entry point takes `now`. `now` must not go back.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A moment, in nanoseconds since the caller's beginning.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Time(u64);

impl Time {
    /// The moment `nanos` nanoseconds after the beginning.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the beginning.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole seconds since the beginning.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0 / NANOS_PER_SECOND
    }

    /// The time from `earlier` to this moment, zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let whole = duration.as_secs().saturating_mul(NANOS_PER_SECOND);
        let nanos = whole.saturating_add(duration.subsec_nanos().into());
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Wall time: seconds since 1970-01-01 00:00:00 UTC, leap seconds not counted.
///
/// [`Time`] counts from a beginning that only this host knows; certificates and tickets are valid
/// until a date.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct WallTime(u64);

impl WallTime {
    /// A wall time from seconds since 1970.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Seconds since 1970.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0
    }
}

/// The wall time at some [`Time`], from which others follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    pub(crate) at: Time,
    pub(crate) wall: WallTime,
}

impl WallClock {
    /// The wall time at `now`, whole seconds.
    pub(crate) fn wall_at(self, now: Time) -> WallTime {
        WallTime(self.wall.0.saturating_add(now.since(self.at).as_secs()))
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Time = Time::from_nanos(90 * NANOS_PER_SECOND + 600_000_000);

    fn wall_at(wall: u64, now: Time) -> u64 {
        let clock = WallClock { at: AT, wall: WallTime::from_secs(wall) };
        clock.wall_at(now).as_secs()
    }

    #[test]
    fn a_wall_clock_goes_on_by_whole_seconds_from_when_it_was_told() {
        let after = |millis| wall_at(1_700_000_000, AT + Duration::from_millis(millis));
        let moments = [0, 999, 1_000, 1_999, 2_000, 86_400_000];
        let expected = [0, 0, 1, 1, 2, 86_400].map(|seconds| 1_700_000_000 + seconds);
        assert_eq!(moments.map(after), expected);
    }

    #[test]
    fn a_wall_clock_stands_still_before_it_was_told() {
        assert_eq!(wall_at(1_700_000_000, Time::default()), 1_700_000_000);
    }

    #[test]
    fn a_wall_clock_ends_at_the_last_date_that_there_is() {
        assert_eq!(wall_at(u64::MAX - 1, AT + Duration::from_secs(1)), u64::MAX);
        assert_eq!(wall_at(u64::MAX, AT + Duration::from_secs(1)), u64::MAX);
    }
}
