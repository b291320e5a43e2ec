// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Internet checksum (RFC 1071).

/// A sum of 16-bit words in ones' complement, which grows by parts of even length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u32);

impl Sum {
    /// Adds bytes; an odd byte at the end counts as a word with a zero behind it.
    pub(crate) fn add(mut self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<2>();
        for word in words {
            self = self.add_word(u16::from_be_bytes(*word));
        }
        match rest {
            [last] => self.add_word(u16::from_be_bytes([*last, 0])),
            _ => self,
        }
    }

    /// Adds one word.
    pub(crate) fn add_word(self, word: u16) -> Self {
        let sum = self.0 + u32::from(word);
        Self((sum & 0xFFFF) + (sum >> 16))
    }

    /// The checksum: what makes the sum of all words, itself included, all ones.
    pub(crate) fn checksum(self) -> u16 {
        !(self.0 as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_is_computed() {
        let sum = Sum::default().add(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]);
        assert_eq!(sum.checksum(), !0xDDF2);
    }

    #[test]
    fn an_odd_byte_is_the_high_half_of_a_word() {
        assert_eq!(Sum::default().add(&[0xAB]).checksum(), !0xAB00);
    }

    #[test]
    fn words_with_their_checksum_sum_to_all_ones() {
        let bytes = [0x45, 0x00, 0xFF, 0xFF, 0x12, 0x34, 0xFE, 0xDC];
        let sum = Sum::default().add(&bytes);
        let with_it = sum.add_word(sum.checksum());
        assert_eq!(with_it.checksum(), 0);
    }
}
