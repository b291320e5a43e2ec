// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The distance between attempts to reach a server: it doubles with each failure, and is drawn at
//! random, so that clients of a server that has gone do not come back together.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use smt_proto::Time;

/// When the next attempt may begin.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    until: Option<Time>,
}

impl Backoff {
    /// Whether an attempt has failed so recently that the next one waits.
    pub(super) fn holds(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// An attempt has failed.
    pub(super) fn fail(&mut self, now: Time) {
        self.until = Some(now + drawn(longest(self.failures)));
        self.failures = self.failures.saturating_add(1);
    }

    /// An attempt was successful.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// The longest distance after so many failures before.
fn longest(failures: u32) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.min(16));
    doubled.min(LONGEST)
}

/// Half of the time to all of it.
fn drawn(longest: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) as u32;
    let part = f64::from(random) / f64::from(u32::MAX);
    longest.mul_f64(0.5 + part / 2.0)
}

/// The distance after the first failure, at most.
const FIRST: Duration = Duration::from_millis(20);
/// The longest distance: a server that is there again is found within this time.
const LONGEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_doubles_up_to_a_second_and_a_success_ends_it() {
        let mut backoff = Backoff::default();
        let start = Time::default() + Duration::from_secs(9);
        assert!(!backoff.holds(start));
        for longest in [20, 40, 80, 160, 320, 640, 1_000, 1_000] {
            backoff.fail(start);
            let longest = Duration::from_millis(longest);
            assert!(backoff.holds(start + longest.mul_f64(0.49)));
            assert!(!backoff.holds(start + longest));
        }
        backoff.fail(start);
        backoff.reset();
        assert!(!backoff.holds(start));
    }

    #[test]
    fn clients_draw_distances_of_their_own() {
        let drawn: Vec<_> = (0..20).map(|_| drawn(LONGEST)).collect();
        assert!(drawn.iter().any(|one| *one != drawn[0]));
        assert!(drawn.iter().all(|one| (LONGEST / 2..=LONGEST).contains(one)));
    }
}
