// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packet numbers, of which the wire has one to four bytes (RFC 9000 §17.1, appendix A.3).

/// The highest packet number (RFC 9000 §12.3).
const NUMBER_MAX: u64 = (1 << 62) - 1;

/// Whether a number is one of QUIC's.
pub(super) const fn is_number(number: u64) -> bool {
    number <= NUMBER_MAX
}

/// The number that the last `bytes` bytes of it stand for, next to the largest one so far. `None`
/// if there is no such number.
pub(super) fn restore(largest: Option<u64>, truncated: u64, bytes: usize) -> Option<u64> {
    let expected = largest.map_or(0, |largest| largest + 1);
    let window = 1_u64 << (8 * bytes);
    let candidate = (expected & !(window - 1)) | truncated;
    let restored = if candidate + window / 2 <= expected && candidate + window <= NUMBER_MAX {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    };
    is_number(restored).then_some(restored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_is_restored() {
        // RFC 9000, appendix A.3.
        assert_eq!(restore(Some(0xa82f_30ea), 0x9b32, 2), Some(0xa82f_9b32));
    }

    #[test]
    fn every_number_near_the_largest_is_restored_from_each_length() {
        for largest in [0, 1, 127, 128, 255, 256, 65_535, 1 << 24, 1 << 40, NUMBER_MAX - 70_000] {
            for bytes in 1..=4 {
                let half = (1_u64 << (8 * bytes)) / 2;
                let (reach, mask) = (half.min(40_000), (1_u64 << (8 * bytes)) - 1);
                for distance in [1, 2, 100, reach] {
                    let distance = distance.min(half);
                    let number = largest + distance;
                    assert_eq!(restore(Some(largest), number & mask, bytes), Some(number));
                    if let Some(number) = (largest + 1).checked_sub(distance.min(half - 1)) {
                        assert_eq!(restore(Some(largest), number & mask, bytes), Some(number));
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_number_is_restored_without_a_largest() {
        assert_eq!(restore(None, 0, 1), Some(0));
        assert_eq!(restore(None, 2, 1), Some(2));
    }

    #[test]
    fn no_number_is_above_the_highest() {
        let restored = restore(Some(NUMBER_MAX), 0xff, 1);
        assert!(restored.is_none_or(|number| number <= NUMBER_MAX), "{restored:?}");
    }
}
