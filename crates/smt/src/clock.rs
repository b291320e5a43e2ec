// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one place that reads the clock: the time that passes, and the wall time.

use std::time::Duration;
#[cfg(not(smt_model))]
use std::time::{Instant, SystemTime};

use smt_proto::{Endpoint, Time, WallTime};

/// A clock that began when its endpoint was opened.
#[derive(Clone, Copy, Debug)]
#[cfg(not(smt_model))]
pub(crate) struct Clock(Instant);

#[cfg(not(smt_model))]
impl Clock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(&self) -> Time {
        Time::default() + (self.0.elapsed() + BEFORE)
    }

    /// The host's wall time; none if it is before 1970.
    pub(crate) fn wall_time() -> Option<WallTime> {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since_1970.ok().map(|since| WallTime::from_secs(since.as_secs()))
    }
}

/// The clock of a model, where time passes by looks.
#[derive(Clone, Copy, Debug)]
#[cfg(smt_model)]
pub(crate) struct Clock(Duration);

#[cfg(smt_model)]
impl Clock {
    pub(crate) fn new() -> Self {
        Self(crate::sync::look_at_clock())
    }

    pub(crate) fn now(&self) -> Time {
        Time::default() + (crate::sync::look_at_clock().saturating_sub(self.0) + BEFORE)
    }

    /// A model has no dates.
    pub(crate) fn wall_time() -> Option<WallTime> {
        None
    }
}

/// When an endpoint was last told the wall time.
#[derive(Debug, Default)]
pub(crate) struct WallTimeTold(Option<Time>);

impl WallTimeTold {
    /// Tells `endpoint` the wall time, unless it was told within the last minute: the host's clock
    /// may have been set since.
    pub(crate) fn tell(&mut self, now: Time, endpoint: &mut Endpoint) {
        if !self.is_due(now) {
            return;
        }
        if let Some(wall) = Clock::wall_time() {
            endpoint.set_wall_time(now, wall);
        }
    }

    /// Whether it is to be told now; then it counts as told.
    fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.0.is_none_or(|told| now.since(told) >= TOLD_EVERY);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

/// The host's wall time is read at most this often.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// Cookies carry seconds since the beginning and are valid for some: begin later than zero.
const BEFORE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_time_is_told_at_once_and_then_once_a_minute() {
        let mut told = WallTimeTold::default();
        let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let moments = [60, 60, 61, 119, 120, 121, 179, 180, 1_000, 1_001];
        let due = moments.map(|seconds| told.is_due(at(seconds)));
        let expected = [true, false, false, false, true, false, false, true, true, false];
        assert_eq!(due, expected);
    }

    #[test]
    #[cfg(not(smt_model))]
    fn the_wall_time_is_that_of_the_host() {
        let before = SystemTime::now();
        let told = Clock::wall_time().unwrap().as_secs();
        let seconds =
            |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        assert!((seconds(before)..=seconds(SystemTime::now())).contains(&told));
    }
}
