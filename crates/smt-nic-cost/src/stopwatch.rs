// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Times of short work, without the time that looking at the clock takes.

use std::time::Instant;

/// A clock that knows what a look at it costs.
pub(crate) struct Stopwatch {
    /// Seconds that pass between two looks with nothing between them.
    empty: f64,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        let empty = (0..LOOKS).map(|_| Instant::now().elapsed()).min();
        Self { empty: empty.unwrap_or_default().as_secs_f64() }
    }

    /// Seconds of this work.
    pub(crate) fn seconds(&self, work: impl FnOnce()) -> f64 {
        let began = Instant::now();
        work();
        (began.elapsed().as_secs_f64() - self.empty).max(0.0)
    }
}

/// The least of the values of so many rounds; others use the machine too.
pub(crate) fn least(rounds: u32, round: impl FnMut(u32) -> f64) -> f64 {
    (0..rounds).map(round).reduce(f64::min).unwrap_or_default()
}

const LOOKS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn looking_at_the_clock_is_no_part_of_what_is_measured() {
        let stopwatch = Stopwatch::new();
        let nothing = least(1_000, |_| stopwatch.seconds(|| {}));
        assert!(nothing <= stopwatch.empty / 2.0, "{nothing}");
        let work = least(100, |_| {
            stopwatch.seconds(|| {
                black_box(vec![1_u8; 100_000].iter().map(|byte| u64::from(*byte)).sum::<u64>());
            })
        });
        assert!(work > 0.0);
    }
}
