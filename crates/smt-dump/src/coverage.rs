// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bytes that come in pieces, in any order.

use crate::ranges::Ranges;

/// A run of bytes that is being filled. It takes the memory of what has come, and not of what is
/// claimed: a packet can claim any length.
#[derive(Debug)]
pub(crate) struct Coverage {
    length: usize,
    /// Bytes by their offset, as they came.
    pieces: Vec<(usize, Vec<u8>)>,
    filled: Ranges,
}

impl Coverage {
    /// A run of `length` bytes, none of which has come.
    pub(crate) fn new(length: usize) -> Self {
        Self { length, pieces: Vec::new(), filled: Ranges::default() }
    }

    /// Fills from `offset` on; bytes past the end are not looked at.
    pub(crate) fn fill(&mut self, offset: usize, piece: &[u8]) {
        let Some(room) = self.length.checked_sub(offset) else {
            return;
        };
        let piece = &piece[..piece.len().min(room)];
        if !piece.is_empty() {
            self.pieces.push((offset, piece.to_vec()));
        }
        self.filled.add(offset, offset + piece.len());
    }

    /// All bytes, once all are there. If some came twice, the later ones count.
    pub(crate) fn whole(&mut self) -> Option<&[u8]> {
        if !self.filled.cover(self.length) {
            return None;
        }
        if self.pieces.len() != 1 {
            let mut bytes = vec![0; self.length];
            for (offset, piece) in self.pieces.drain(..) {
                bytes[offset..offset + piece.len()].copy_from_slice(&piece);
            }
            self.pieces.push((0, bytes));
        }
        self.pieces.first().map(|(_, bytes)| &bytes[..])
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
