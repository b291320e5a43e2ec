// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The Internet checksum (RFC 1071), and its change with one word (RFC 1624).

/// The checksum of bytes, to which `begins` is added: a pseudo header, for example.
pub(crate) fn checksum(begins: u32, bytes: &[u8]) -> u16 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let words = pairs.iter().map(|pair| u16::from_be_bytes(*pair).into());
    let last = rest.first().map_or(0, |byte| u32::from(*byte) << 8);
    !folded(words.fold(begins, |sum: u32, word: u32| sum + word) + last)
}

/// The checksum of what had `checksum` when a word of it changes (RFC 1624, equation 3).
pub(crate) fn changed(checksum: u16, before: u16, after: u16) -> u16 {
    !folded(u32::from(!checksum) + u32::from(!before) + u32::from(after))
}

/// The folded sum of bytes as words, for a pseudo header.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    u32::from(!checksum(0, bytes))
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071 §3.
    #[test]
    fn the_sum_is_that_of_the_rfc() {
        assert_eq!(checksum(0, &[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]), !0xDDF2);
        assert_eq!(checksum(0, &[0xAB]), !0xAB00);
    }

    /// The example of RFC 1624 §4.
    #[test]
    fn a_changed_word_changes_the_checksum_as_computing_it_anew_would() {
        assert_eq!(changed(0xDD2F, 0x5555, 0x3285), 0x0000);
    }
}
