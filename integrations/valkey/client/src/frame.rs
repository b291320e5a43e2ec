// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The header of each message of a connection: the position of its first byte in the stream of its
//! direction, in 8 bytes, big-endian. The highest bit says that the stream ends there.

use bytes::{Buf, Bytes};

/// A message of the server.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Frame {
    /// Where its bytes belong.
    pub(crate) position: u64,
    /// Whether the stream ends at the position.
    pub(crate) is_end: bool,
    /// The bytes.
    pub(crate) bytes: Bytes,
}

impl Frame {
    /// Reads a message; `None` if it is an empty answer, which says nothing.
    pub(crate) fn read(mut message: Bytes) -> Result<Option<Self>, Malformed> {
        if message.is_empty() {
            return Ok(None);
        }
        let word = message.try_get_u64().map_err(|_| Malformed)?;
        Ok(Some(Self { position: word & !END, is_end: word & END != 0, bytes: message }))
    }
}

/// A message of the server that has no header, or bytes where they cannot be.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Malformed;

/// The message that says that a stream ends at this position.
pub(crate) fn end_header(position: u64) -> [u8; HEADER] {
    (position | END).to_be_bytes()
}

/// Bytes of a header.
pub(crate) const HEADER: usize = 8;
const END: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_position_and_an_end() {
        let read = |bytes: &'static [u8]| Frame::read(Bytes::from_static(bytes));
        let frame =
            |position, is_end, bytes| Frame { position, is_end, bytes: Bytes::from_static(bytes) };
        assert_eq!(read(b""), Ok(None));
        assert_eq!(read(b"\0\0\0\0\0\0\x01"), Err(Malformed));
        assert_eq!(read(b"\0\0\0\0\0\0\x01\x02+OK"), Ok(Some(frame(258, false, b"+OK"))));
        assert_eq!(read(b"\x80\0\0\0\0\0\0\x07"), Ok(Some(frame(7, true, b""))));
        assert_eq!(end_header(7), *b"\x80\0\0\0\0\0\0\x07");
    }
}
