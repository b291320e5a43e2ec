// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When calls of an open loop begin: a Poisson process from a seed.

use std::time::{Duration, Instant};

use super::FINISH;

/// Times, ascending.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    gap_s: f64,
    duration: Duration,
    state: u64,
    at_s: f64,
    began: Option<Instant>,
    finish: Duration,
}

impl Arrivals {
    /// `per_second` arrivals a second on average, for `duration`.
    pub(crate) fn new(per_second: f64, duration: Duration, seed: u64) -> Self {
        Self {
            gap_s: 1.0 / per_second,
            duration,
            state: seed,
            at_s: 0.0,
            began: None,
            finish: FINISH,
        }
    }

    /// With so much time to finish.
    #[cfg(test)]
    pub(super) fn with_finish(self, finish: Duration) -> Self {
        Self { finish, ..self }
    }

    /// When the first call could have begun.
    pub(crate) fn began(&mut self) -> Instant {
        *self.began.get_or_insert_with(Instant::now)
    }

    /// Calls that have not ended by then are unfinished. The same for all kinds of callers, and
    /// whatever was slow.
    pub(super) fn limit(&mut self) -> Instant {
        self.began() + self.duration + self.finish
    }

    /// SplitMix64, in (0, 1].
    fn random(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((word ^ (word >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON
    }
}

/// Ends with the duration.
impl Iterator for Arrivals {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        let began = self.began();
        self.at_s -= self.random().ln() * self.gap_s;
        let offset = Duration::from_secs_f64(self.at_s.max(0.0));
        (offset < self.duration).then(|| began + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_as_wanted_and_they_repeat() {
        let arrivals = || Arrivals::new(1e5, Duration::from_secs(1), 7);
        let count = arrivals().count() as f64;
        assert!((count - 1e5).abs() < 2e3, "{count}");
        let offsets = |mut arrivals: Arrivals| {
            let began = arrivals.began();
            arrivals.map(|at| at - began).collect::<Vec<_>>()
        };
        assert_eq!(offsets(arrivals()), offsets(arrivals()));
    }
}
