// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random numbers that a seed gives again (SplitMix64).

/// A generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    /// A number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit.max(1)
    }

    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// 16 bytes.
    pub fn nonce(&mut self) -> [u8; 16] {
        (u128::from(self.next_u64()) << 64 | u128::from(self.next_u64())).to_be_bytes()
    }
}
