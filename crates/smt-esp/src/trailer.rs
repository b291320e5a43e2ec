// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Padding, its length and the next header (RFC 4303 §2.4 to §2.6).

use crate::error::OpenError;

/// Bytes of pad length and next header.
pub(crate) const TRAILER_LEN: usize = 2;

/// The trailer ends at a multiple of this from the payload's beginning (RFC 4303 §2.4).
pub(crate) const ALIGNMENT: usize = 4;

/// Bytes of padding and trailer for a payload.
pub(crate) const fn length(payload_len: usize) -> usize {
    (payload_len + TRAILER_LEN).next_multiple_of(ALIGNMENT) - payload_len
}

/// Writes padding (1, 2, 3, …), its length and the next header over all of `out`.
pub(crate) fn write(out: &mut [u8], next_header: u8) {
    let pad_len = out.len() - TRAILER_LEN;
    for (byte, value) in out[..pad_len].iter_mut().zip(1..=u8::MAX) {
        *byte = value;
    }
    // At most 3 bytes of padding.
    out[pad_len] = pad_len as u8;
    out[pad_len + 1] = next_header;
}

/// The contents of a trailer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Trailer {
    pub(crate) payload_len: usize,
    pub(crate) next_header: u8,
}

/// Reads the trailer at the end of what has authenticated, and checks the padding.
pub(crate) fn read(plaintext: &[u8]) -> Result<Trailer, OpenError> {
    let (rest, &[pad_len, next_header]) = plaintext.split_last_chunk().ok_or(OpenError::Padding)?;
    let payload_len = rest.len().checked_sub(pad_len.into());
    let payload_len = payload_len.ok_or(OpenError::Padding)?;
    let mut padding = rest[payload_len..].iter().zip(1..=u8::MAX);
    if padding.any(|(byte, value)| *byte != value) {
        return Err(OpenError::Padding);
    }
    Ok(Trailer { payload_len, next_header })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_is_read_as_written_for_every_length() {
        for payload_len in 0..70 {
            let mut bytes = vec![0xAA; payload_len + length(payload_len)];
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            write(&mut bytes[payload_len..], 6);
            let trailer = Trailer { payload_len, next_header: 6 };
            assert_eq!(read(&bytes), Ok(trailer));
        }
    }

    #[test]
    fn padding_of_255_bytes_is_read() {
        let mut bytes = vec![7; 5];
        bytes.extend(1..=255);
        bytes.extend([255, 17]);
        let trailer = Trailer { payload_len: 5, next_header: 17 };
        assert_eq!(read(&bytes), Ok(trailer));
    }

    #[test]
    fn wrong_or_overlong_padding_is_refused() {
        assert_eq!(read(&[1, 2, 4, 3, 6]), Err(OpenError::Padding));
        assert_eq!(read(&[1, 2, 3, 6]), Err(OpenError::Padding));
        assert_eq!(read(&[6]), Err(OpenError::Padding));
    }
}
