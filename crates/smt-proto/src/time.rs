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
    /// A moment so many nanoseconds after the beginning.
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

const NANOS_PER_SECOND: u64 = 1_000_000_000;
