// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbers that a seed repeats on any machine (SplitMix64, Steele et al. 2014). Integers only: the
//! last bit of a logarithm differs between mathematics libraries, and with it a whole run.

/// A generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any 64 bits.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.any()) * u128::from(end)) >> 64) as u64
    }

    /// From `least` to `most`, both possible.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Whether a thing of this probability happens, in millionths.
    pub fn chance(&mut self, millionths: u32) -> bool {
        self.below(1_000_000) < u64::from(millionths)
    }

    /// One of these.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        &among[self.below(among.len() as u64) as usize]
    }

    /// Another generator, independent of what is drawn from this one later.
    pub fn fork(&mut self) -> Self {
        Self(self.any())
    }

    /// Fills bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut chunks = bytes.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.any().to_le_bytes());
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            rest.copy_from_slice(&self.any().to_le_bytes()[..rest.len()]);
        }
    }
}

/// Spreads the bits of a number: for hashes of small values.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_these_numbers_on_any_machine() {
        let mut random = Random::new(1);
        assert_eq!(random.any(), 0x910A_2DEC_8902_5CC1);
        assert_eq!(random.any(), 0xBEEB_8DA1_658E_EC67);
    }

    #[test]
    fn draw_stays_below_its_bound_and_reaches_all_values() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        (0..1_000).for_each(|_| seen[random.below(5) as usize] += 1);
        assert!(seen.iter().all(|count| (120..280).contains(count)), "{seen:?}");
    }

    #[test]
    fn chance_is_in_millionths() {
        let mut random = Random::new(7);
        let happened = (0..100_000).filter(|_| random.chance(10_000)).count();
        assert!((800..1_200).contains(&happened), "{happened}");
    }
}
