// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Padding policies: how long a message looks to those who cannot open it (SPEC §5.6).
//!
//! Lengths are of the inner stream, the 40 bytes of the inner header included.

use core::num::NonZeroU32;

/// How a sender chooses the padded length P of a message from its true inner length T.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// P = T: the length is visible.
    #[default]
    None,
    /// P = T rounded up to a multiple of this many bytes.
    Block(NonZeroU32),
    /// Padmé: at most 12 % longer, and few different lengths (log log T bits are visible).
    Padme,
}

impl Padding {
    /// The padded length of a message of `true_inner` bytes, at most `max` bytes, but never
    /// less than `true_inner` (a message beyond its limit is refused elsewhere).
    pub fn padded(&self, true_inner: u32, max: u32) -> u32 {
        let wished = match self {
            Self::None => u64::from(true_inner),
            Self::Block(block) => u64::from(true_inner).next_multiple_of(u64::from(block.get())),
            Self::Padme => padme(true_inner),
        };
        let padded = u32::try_from(wished).unwrap_or(u32::MAX);
        padded.min(max).max(true_inner)
    }
}

fn padme(length: u32) -> u64 {
    // Below 4 the formula's mask is empty or its logarithm undefined: nothing to round.
    if length < 4 {
        return u64::from(length);
    }
    let exponent = length.ilog2();
    let significand_bits = exponent.ilog2() + 1;
    let mask = (1 << (exponent - significand_bits)) - 1_u64;
    (u64::from(length) + mask) & !mask
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    mod padded {
        use super::*;

        const LARGE: u32 = 64 << 20;

        fn block(bytes: u32) -> Padding {
            Padding::Block(NonZeroU32::new(bytes).unwrap())
        }

        #[test]
        fn none_adds_nothing() {
            assert_eq!(Padding::None.padded(41, LARGE), 41);
        }

        #[test]
        fn block_rounds_up() {
            assert_eq!(block(64).padded(40, LARGE), 64);
            assert_eq!(block(64).padded(64, LARGE), 64);
            assert_eq!(block(64).padded(65, LARGE), 128);
            assert_eq!(block(u32::MAX).padded(65, LARGE), LARGE);
        }

        #[test]
        fn padme_gives_known_lengths() {
            // T, P worked out by hand from the formula of SPEC §5.6.
            let known = [(40, 40), (41, 44), (100, 104), (1000, 1024), (1024, 1024), (1025, 1088)];
            for (length, expected) in known {
                assert_eq!(Padding::Padme.padded(length, LARGE), expected, "{length}");
            }
        }

        // SMT [5.6-1]
        #[test]
        fn the_limit_wins_over_the_policy() {
            assert_eq!(block(4096).padded(5000, 6000), 6000);
            assert_eq!(Padding::Padme.padded(1025, 1030), 1030);
            assert_eq!(block(4096).padded(5000, 4000), 5000);
        }

        proptest! {
            #[test]
            fn padme_adds_at_most_12_percent(length in 0_u32..=u32::MAX) {
                let padded = u64::from(Padding::Padme.padded(length, u32::MAX));
                prop_assert!(padded >= u64::from(length));
                prop_assert!(padded * 100 <= u64::from(length) * 112);
            }

            #[test]
            fn stays_between_true_length_and_limit(
                length: u32, more: u32, bytes in 1_u32..,
            ) {
                let max = length.saturating_add(more);
                for policy in [Padding::None, block(bytes), Padding::Padme] {
                    let padded = policy.padded(length, max);
                    prop_assert!((length..=max).contains(&padded));
                }
            }
        }
    }
}
