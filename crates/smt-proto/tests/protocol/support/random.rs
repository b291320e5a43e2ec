// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random numbers that a printed seed repeats (SplitMix64).

use std::time::UNIX_EPOCH;

/// A generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From `SMT_SEED`, or from the clock; prints it.
    #[expect(clippy::disallowed_methods, reason = "a new seed for each run; the seed is printed")]
    pub fn from_env() -> Self {
        let given = std::env::var("SMT_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            now.as_nanos() as u64
        });
        println!("SMT_SEED={seed}");
        Self(seed)
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.any() % end as u64) as usize
    }

    /// Whether a thing of this probability, in percent, happens.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Any 64 bits.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
