// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The numbers of YCSB: Zipfian by Gray and others (SIGMOD 1994), scrambled, and skewed to the
//! latest, with the constants of YCSB's core.

use fastrand::Rng;

/// Numbers from 0, of which lower ones are more frequent.
#[derive(Clone, Debug)]
pub(crate) struct Zipfian {
    items: u64,
    zeta: f64,
}

impl Zipfian {
    /// Numbers of 0 to `items - 1`.
    pub(crate) fn new(items: u64) -> Self {
        Self { items, zeta: zeta_of(0..items) }
    }

    /// The same with more items: the sum goes on where it was.
    pub(crate) fn grow(&mut self, items: u64) {
        if items > self.items {
            self.zeta += zeta_of(self.items..items);
            self.items = items;
        }
    }

    pub(crate) fn next(&self, random: &mut Rng) -> u64 {
        number_of(random.f64(), self.items, self.zeta)
    }
}

/// The item at which the share `u` of all draws is reached.
fn number_of(u: f64, items: u64, zeta: f64) -> u64 {
    let uz = u * zeta;
    if uz < 1.0 {
        return 0;
    }
    if uz < 1.0 + 0.5_f64.powf(THETA) {
        return 1;
    }
    let zeta2 = 1.0 + 0.5_f64.powf(THETA);
    let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta2 / zeta);
    let place = items as f64 * (eta * u - eta + 1.0).powf(1.0 / (1.0 - THETA));
    (place as u64).min(items - 1)
}

fn zeta_of(places: std::ops::Range<u64>) -> f64 {
    places.map(|place| 1.0 / ((place + 1) as f64).powf(THETA)).sum()
}

/// Popular items that are spread over all keys: a number of ten thousand million Zipfian ones,
/// hashed.
pub(crate) fn scrambled(items: u64, random: &mut Rng) -> u64 {
    hash(number_of(random.f64(), SCRAMBLED_ITEMS, SCRAMBLED_ZETA)) % items
}

/// FNV-1a of 64 bits over the number's bytes, as YCSB's `Utils.hash`.
pub(crate) fn hash(number: u64) -> u64 {
    let mut hash: u64 = 0xCBF2_9CE4_8422_2325;
    for byte in number.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    (hash as i64).unsigned_abs()
}

/// YCSB's constant of skew.
const THETA: f64 = 0.99;
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_items_have_the_shares_of_the_distribution() {
        let zipfian = Zipfian::new(1_000);
        let mut random = Rng::with_seed(7);
        let draws = 200_000;
        let mut counts = vec![0_u32; 1_000];
        for _ in 0..draws {
            counts[zipfian.next(&mut random) as usize] += 1;
        }
        for place in [0_usize, 1] {
            let share = f64::from(counts[place]) / f64::from(draws);
            let expected = 1.0 / ((place + 1) as f64).powf(THETA) / zipfian.zeta;
            assert!((share / expected - 1.0).abs() < 0.05, "{place}: {share}, not {expected}");
        }
        assert!(counts[..100].iter().sum::<u32>() > counts[100..].iter().sum());
        assert!(counts[999] < counts[0] / 100);
    }

    #[test]
    fn the_sum_that_grows_is_that_of_all_items() {
        let mut zipfian = Zipfian::new(10);
        zipfian.grow(1_000);
        assert!((zipfian.zeta - Zipfian::new(1_000).zeta).abs() < 1e-9);
    }

    /// The sum of 1/n^0.99 to 10^10, by its first million and the integral of the others.
    #[test]
    fn the_constant_of_the_scrambled_items_is_their_sum() {
        let from: f64 = 1e6;
        let integral = (1e10_f64.powf(1.0 - THETA) - from.powf(1.0 - THETA)) / (1.0 - THETA);
        let sum = zeta_of(0..1_000_000) + integral;
        assert!((sum - SCRAMBLED_ZETA).abs() < 1e-4, "{sum}");
    }

    #[test]
    fn scrambled_items_reach_all_keys() {
        let mut random = Rng::with_seed(3);
        let mut seen = [false; 50];
        for _ in 0..20_000 {
            seen[scrambled(50, &mut random) as usize] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
