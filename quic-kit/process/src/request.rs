// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A request: how many bytes the client wants, how many it sends, and these.
//!
//! Two numbers of 8 bytes each, big endian; then the client's bytes and the end of its stream. The
//! server answers with the bytes asked for, and ends its stream. Byte n of both is n modulo 251, so
//! that a byte at a wrong place is seen.

/// Bytes of a request before those that the client sends.
pub const HEAD_BYTES: usize = 16;
/// Bytes of the largest piece of [`content`].
pub const PIECE_MAX: usize = 64 << 10;

const PERIOD: usize = 251;
static REPEATED: [u8; PERIOD + PIECE_MAX] = {
    let mut bytes = [0; PERIOD + PIECE_MAX];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at % PERIOD) as u8;
        at += 1;
    }
    bytes
};
static CONTENT: [u8; PERIOD + PIECE_MAX] = REPEATED;

/// The next bytes of a body of `total` bytes from `offset` on: [`PIECE_MAX`] of them, or what is
/// left.
#[must_use]
pub fn content(offset: u64, total: u64) -> &'static [u8] {
    let begin = (offset % PERIOD as u64) as usize;
    let length = total.saturating_sub(offset).min(PIECE_MAX as u64) as usize;
    &CONTENT[begin..begin + length]
}

/// Whether these are the bytes from `offset` on.
#[must_use]
pub fn is_content(mut offset: u64, bytes: &[u8]) -> bool {
    bytes.chunks(PIECE_MAX).all(|piece| {
        let expected = content(offset, u64::MAX);
        offset += piece.len() as u64;
        *piece == expected[..piece.len()]
    })
}

/// A request as its two numbers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Request {
    /// Bytes that the client wants.
    pub download: u64,
    /// Bytes that it sends.
    pub upload: u64,
}

impl Request {
    /// Its bytes.
    #[must_use]
    pub fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&self.download.to_be_bytes());
        head[8..].copy_from_slice(&self.upload.to_be_bytes());
        head
    }
}

/// The server's reader of one request, fed with the pieces of a stream.
#[derive(Clone, Debug, Default)]
pub struct RequestReader {
    head: Vec<u8>,
    uploaded: u64,
    is_wrong: bool,
}

impl RequestReader {
    /// Takes the next piece.
    pub fn take(&mut self, piece: &[u8]) {
        let missing = HEAD_BYTES - self.head.len();
        let (head, body) = piece.split_at(missing.min(piece.len()));
        self.head.extend_from_slice(head);
        self.is_wrong |= !is_content(self.uploaded, body);
        self.uploaded += body.len() as u64;
    }

    /// The request, at the end of its stream. `None` if it was not one.
    #[must_use]
    pub fn finish(&self) -> Option<Request> {
        let (download, upload) = self.head.split_first_chunk::<8>()?;
        let request = Request {
            download: u64::from_be_bytes(*download),
            upload: u64::from_be_bytes(upload.try_into().ok()?),
        };
        (!self.is_wrong && self.uploaded == request.upload).then_some(request)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_request_in_pieces_of_any_length_is_read() {
        let request = Request { download: 7, upload: 100_000 };
        let mut bytes = request.head().to_vec();
        while (bytes.len() - HEAD_BYTES) < 100_000 {
            let offset = (bytes.len() - HEAD_BYTES) as u64;
            bytes.extend_from_slice(content(offset, request.upload));
        }
        for length in [1, 15, 16, 17, 251, 70_000, 200_000] {
            let mut reader = RequestReader::default();
            bytes.chunks(length).for_each(|piece| reader.take(piece));
            assert_eq!(reader.finish(), Some(request), "{length}");
        }
        let mut reader = RequestReader::default();
        bytes[40_000] ^= 1;
        reader.take(&bytes);
        assert_eq!(reader.finish(), None);
    }

    #[test]
    fn a_byte_at_a_wrong_place_is_seen() {
        assert!(is_content(251, content(0, 10)));
        assert!(!is_content(1, content(0, 10)));
        assert!(is_content(3, &[3, 4, 5]));
        assert!(!is_content(3, &[3, 5, 4]));
    }
}
