// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random numbers that can be had again: the seed is printed, and `SMT_SEED` sets it.

use std::time::{SystemTime, UNIX_EPOCH};

/// xorshift64*, good enough to choose faults and sizes.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds begin far from each other; zero would stay zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Whether one chance in `of` comes true.
    pub(crate) fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    /// Sizes as messages have them: most below 10 KB, some up to `most`.
    pub(crate) fn size(&mut self, most: usize) -> usize {
        let size = match self.below(100) {
            0..=49 => self.below(1_200),
            50..=89 => self.below(10_000),
            90..=97 => self.below(100_000),
            _ => self.below(1_000_000),
        };
        size.min(most)
    }
}

/// The seed of this run, printed so that it can be had again.
pub(crate) fn seed() -> u64 {
    let seed = match std::env::var("SMT_SEED") {
        Ok(text) => text.parse().expect("SMT_SEED must be a number"),
        Err(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64 % 1_000_000_000),
    };
    println!("SMT_SEED={seed}");
    seed
}
