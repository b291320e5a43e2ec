// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far a swarm is, and how long it will take.

use std::time::{Duration, Instant};

use super::status_line::StatusLine;
use crate::time_span;

/// Tells how far a swarm is.
#[derive(Debug)]
pub(super) struct Progress {
    began: Instant,
    status: StatusLine,
    bounds: Bounds,
}

/// The end of a swarm: whichever of both comes first.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Seeds to play.
    seeds: Option<u64>,
    /// Time to play them in.
    time: Option<Duration>,
}

impl Progress {
    /// Begins now.
    pub(super) fn new(seeds: Option<u64>, time: Option<Duration>) -> Self {
        Self { began: Instant::now(), status: StatusLine::new(), bounds: Bounds { seeds, time } }
    }

    /// Tells it, unless it was told lately.
    pub(super) fn tell(&mut self, done: u64, failed: u64) {
        let (elapsed, bounds) = (self.elapsed(), self.bounds);
        self.status.tell(|| line(done, failed, elapsed, bounds));
    }

    /// Makes room for other words.
    pub(super) fn clear(&self) {
        self.status.clear();
    }

    /// Since it began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Seeds a second.
pub(super) fn rate(done: u64, elapsed: Duration) -> f64 {
    done as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
}

fn line(done: u64, failed: u64, elapsed: Duration, bounds: Bounds) -> String {
    let Bounds { seeds, time } = bounds;
    let rate = rate(done, elapsed);
    let by_time = time.map(|time| time.saturating_sub(elapsed));
    let by_count = seeds.and_then(|seeds| {
        let left = seeds.saturating_sub(done) as f64;
        Duration::try_from_secs_f64(left / rate).ok()
    });
    let left = by_time.into_iter().chain(by_count).min();
    let left = left.map_or_else(String::new, |left| format!(", {} left", time_span::display(left)));
    format!("{done} seeds, {rate:.1} a second, {failed} failed{left}")
}

#[cfg(test)]
mod tests {
    mod line {
        use super::super::{Bounds, line};
        use std::time::Duration;

        const TEN: Duration = Duration::from_secs(10);

        #[test]
        fn the_nearer_bound_says_what_is_left() {
            let of = |seeds, time| line(200, 1, TEN, Bounds { seeds, time });
            assert_eq!(of(None, None), "200 seeds, 20.0 a second, 1 failed");
            assert!(of(Some(300), None).ends_with(", 5.00 s left"));
            assert!(of(Some(300), Some(TEN * 9)).ends_with(", 5.00 s left"));
            assert!(of(Some(300), Some(TEN)).ends_with(", 0.00 us left"));
        }

        #[test]
        fn nothing_is_foretold_before_the_first_seed() {
            let bounds = Bounds { seeds: Some(5), time: None };
            let line = line(0, 0, Duration::ZERO, bounds);
            assert_eq!(line, "0 seeds, 0.0 a second, 0 failed");
        }
    }
}
