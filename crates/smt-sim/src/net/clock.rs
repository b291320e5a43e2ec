// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host's own clock: it may run fast or slow, and jump forward. It never goes back (a monotonic
//! clock).

use std::time::Duration;

use smt_proto::Time;

/// A host's clock against the simulation's.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The same moment on both.
    here: Time,
    there: Time,
    /// How much faster this one runs, in millionths.
    drift: i32,
}

impl Default for Clock {
    /// One second ahead: nothing here should depend on beginning at 0.
    fn default() -> Self {
        Self { here: Time::from_nanos(1_000_000_000), there: Time::default(), drift: 0 }
    }
}

impl Clock {
    /// The time that the clock shows at a moment of the simulation.
    pub fn at(&self, simulation: Time) -> Time {
        if self.drift == 0 {
            return self.here + simulation.since(self.there);
        }
        let since = simulation.since(self.there).as_nanos() as i128;
        let shown = since + since * i128::from(self.drift) / MILLION;
        self.here + Duration::from_nanos(shown as u64)
    }

    /// The first moment of the simulation at which it shows this, or more.
    pub fn when(&self, shown: Time) -> Time {
        if shown >= NEVER {
            return shown;
        }
        if self.drift == 0 {
            return self.there + shown.since(self.here);
        }
        let wait = shown.since(self.here).as_nanos() as i128;
        let wait = wait * MILLION / (MILLION + i128::from(self.drift));
        let mut moment = self.there + Duration::from_nanos(wait as u64);
        while self.at(moment) < shown {
            moment = moment + Duration::from_nanos(1);
        }
        moment
    }

    /// Jumps ahead.
    pub fn step(&mut self, now: Time, by: Duration) {
        *self = Self { here: self.at(now) + by, there: now, ..*self };
    }

    /// Runs faster by so many millionths from now on; slower if negative.
    pub fn drift(&mut self, now: Time, millionths: i32) {
        *self = Self { here: self.at(now), there: now, drift: millionths };
    }
}

const MILLION: i128 = 1_000_000;
/// Centuries ahead: a time that does not come, and need not be computed with.
const NEVER: Time = Time::from_nanos(u64::MAX / 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_when_it_will_show_a_time() {
        for drift in [0, 300, -300, 200_000, -200_000] {
            let mut clock = Clock::default();
            clock.drift(Time::from_nanos(77), drift);
            for shown in [1_000_000_077, 1_000_000_078, 1_234_567_891, 9_999_999_999] {
                let shown = Time::from_nanos(shown);
                let moment = clock.when(shown);
                assert!(clock.at(moment) >= shown, "{drift} {shown:?}");
                let before = Time::from_nanos(moment.as_nanos() - 1);
                assert!(clock.at(before) < shown || moment.as_nanos() <= 77, "{drift}");
            }
        }
    }

    #[test]
    fn a_step_is_seen_at_once() {
        let mut clock = Clock::default();
        let now = Time::from_nanos(500);
        let before = clock.at(now);
        clock.step(now, Duration::from_secs(3));
        assert_eq!(clock.at(now) - before, Duration::from_secs(3));
    }
}
