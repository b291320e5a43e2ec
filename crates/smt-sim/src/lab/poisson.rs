// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When messages are sent: at random times, independent of each other.

use crate::random::Random;

/// Draws the time to the next event of a Poisson process, in nanoseconds, for this mean time
/// between two.
///
/// Rounded to the nearest: at 400 Gb/s half a nanosecond less would be 4 % more messages. By
/// `libm`, so that the last bit is the same on every machine.
pub(super) fn interval(random: &mut Random, mean: f64) -> u64 {
    let uniform = ((random.any() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
    (-libm::log(uniform) * mean + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_the_mean_and_intervals_scatter() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..100_000).map(|_| interval(&mut random, 1_000.0)).collect();
        let mean = drawn.iter().sum::<u64>() / 100_000;
        assert!((985..1_015).contains(&mean), "{mean}");
        // An exponential distribution has 36.8 % above its mean.
        let above = drawn.iter().filter(|interval| **interval > 1_000).count();
        assert!((36_000..37_600).contains(&above), "{above}");
    }
}
