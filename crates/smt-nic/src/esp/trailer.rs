// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The trailer of a packet: padding, its length, the next header (RFC 4303 §2.4 to §2.6).

use alloc::vec::Vec;

/// The trailer ends at a multiple of so many bytes.
const ALIGNMENT: usize = 4;
/// Bytes of the padding's length and of the next header.
pub(super) const TRAILER_MIN: usize = 2;

/// Bytes of the trailer behind a payload.
pub(super) fn bytes_behind(payload: usize) -> usize {
    TRAILER_MIN + (ALIGNMENT - (payload + TRAILER_MIN) % ALIGNMENT) % ALIGNMENT
}

/// Appends the trailer to a packet whose payload has so many bytes.
pub(super) fn append(packet: &mut Vec<u8>, payload: usize, next_header: u8) {
    let padding = bytes_behind(payload) - TRAILER_MIN;
    // At most three bytes: 1, 2, 3.
    packet.extend((1..=padding).map(|value| value as u8));
    packet.extend([padding as u8, next_header]);
}

/// Reads the trailer at the end of what has authenticated: the bytes of the payload, and the next
/// header. `None` if the padding is not 1, 2, 3 and so on.
pub(super) fn read(text: &[u8]) -> Option<(usize, u8)> {
    let (rest, [padding, next_header]) = text.split_last_chunk::<TRAILER_MIN>()?;
    let payload = rest.len().checked_sub(usize::from(*padding))?;
    let mut written = rest[payload..].iter().zip(1..=u8::MAX);
    let is_right = written.all(|(byte, value)| *byte == value);
    is_right.then_some((payload, *next_header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_is_aligned_and_read_as_it_was_written() {
        for payload in 0..20 {
            let mut packet = std::vec![9; payload];
            append(&mut packet, payload, 17);
            assert_eq!(packet.len() % ALIGNMENT, 0);
            assert_eq!(read(&packet), Some((payload, 17)));
        }
    }

    #[test]
    fn padding_of_other_bytes_or_beyond_the_payload_is_none() {
        assert_eq!(read(&[7, 1, 2, 2, 6]), Some((1, 6)));
        for text in [&[7, 1, 3, 2, 6][..], &[7, 3, 6], &[6], &[]] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_longest_padding_is_read() {
        let mut packet = std::vec![9; 3];
        packet.extend(1..=255_u8);
        packet.extend([255, 6]);
        assert_eq!(read(&packet), Some((3, 6)));
    }
}
