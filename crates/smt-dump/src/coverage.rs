// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bytes that come in pieces, in any order.

use crate::ranges::Ranges;

/// A run of bytes that is being filled.
#[derive(Debug)]
pub(crate) struct Coverage {
    bytes: Vec<u8>,
    filled: Ranges,
}

impl Coverage {
    /// Room for `length` bytes, none of which has come.
    pub(crate) fn new(length: usize) -> Self {
        Self { bytes: vec![0; length], filled: Ranges::default() }
    }

    /// Fills from `offset` on; bytes past the end are not looked at.
    pub(crate) fn fill(&mut self, offset: usize, piece: &[u8]) {
        let Some(room) = self.bytes.get_mut(offset..) else {
            return;
        };
        let length = piece.len().min(room.len());
        room[..length].copy_from_slice(&piece[..length]);
        self.filled.add(offset, offset + length);
    }

    /// All bytes, once all are there.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        self.filled.cover(self.bytes.len()).then_some(&self.bytes[..])
    }
}

#[cfg(test)]
mod tests {
    mod fill {
        use super::super::Coverage;

        #[test]
        fn pieces_may_come_in_any_order_and_overlap() {
            let mut coverage = Coverage::new(6);
            for (offset, piece) in [(4, "ef"), (0, "ab"), (1, "bc")] {
                coverage.fill(offset, piece.as_bytes());
                assert_eq!(coverage.whole(), None);
            }
            coverage.fill(3, b"def");
            assert_eq!(coverage.whole(), Some(&b"abcdef"[..]));
        }

        #[test]
        fn a_piece_may_join_others_and_go_past_the_end() {
            let mut coverage = Coverage::new(5);
            coverage.fill(1, b"b");
            coverage.fill(3, b"d");
            coverage.fill(9, b"x");
            coverage.fill(0, b"abcdefgh");
            assert_eq!(coverage.whole(), Some(&b"abcde"[..]));
        }

        #[test]
        fn nothing_is_whole_at_once() {
            assert_eq!(Coverage::new(0).whole(), Some(&b""[..]));
        }
    }
}
