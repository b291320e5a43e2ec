// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A send buffer: memory that is initialised once and then only written over.
//!
//! A vector that is cleared and grows again is zeroed again, byte for byte, right before a record
//! is sealed into the same bytes: a pass over all that is sent, for nothing
//! (docs/lab/2026-11-22.md).

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// The bytes that [`crate::Endpoint::poll_transmit`] has written. Keep it from one call to the
/// next.
#[derive(Clone, Debug, Default)]
pub struct TransmitBuffer {
    /// All bytes that were ever written; those behind `length` are of former batches.
    bytes: Vec<u8>,
    length: usize,
}

impl TransmitBuffer {
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// Takes back all bytes but the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// The next `count` bytes, each of which must be written or taken back: before that they are
    /// bytes of former batches.
    pub(crate) fn grow(&mut self, count: usize) -> &mut [u8] {
        let start = self.length;
        self.length += count;
        if self.bytes.len() < self.length {
            self.bytes.resize(self.length, 0);
        }
        &mut self.bytes[start..self.length]
    }

    /// The next `count` bytes, set to zero.
    pub(crate) fn grow_zeroed(&mut self, count: usize) -> &mut [u8] {
        let bytes = self.grow(count);
        bytes.fill(0);
        bytes
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.grow(bytes.len()).copy_from_slice(bytes);
    }
}

impl Deref for TransmitBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl DerefMut for TransmitBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_former_batch_is_in_the_next_one() {
        let mut buffer = TransmitBuffer::default();
        buffer.append(&[7; 10]);
        buffer.truncate(4);
        assert_eq!(buffer[..], [7; 4]);
        buffer.clear();
        buffer.grow_zeroed(6)[1] = 1;
        buffer.append(b"ab");
        assert_eq!(buffer[..], [0, 1, 0, 0, 0, 0, b'a', b'b']);
    }
}
