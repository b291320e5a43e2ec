// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that packets are written to: many share an allocation, which is freed with the last of
//! them.

use bytes::{Bytes, BytesMut};

/// A host's piece of memory for its next packets.
#[derive(Debug, Default)]
pub(crate) struct Chunk(BytesMut);

impl Chunk {
    /// Empty, with room for so many bytes.
    pub(crate) fn room(&mut self, length: usize) -> &mut BytesMut {
        if self.0.capacity() < length {
            self.0 = BytesMut::with_capacity(CHUNK_LEN.max(length));
        }
        &mut self.0
    }

    /// A copy of these bytes.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        self.room(bytes.len()).extend_from_slice(bytes);
        self.take()
    }

    /// Takes the bytes that were written since the last call.
    pub(crate) fn take(&mut self) -> Bytes {
        self.0.split().freeze()
    }
}

/// Eleven full packets: enough that an allocation costs little, and one slow packet does not keep
/// much.
const CHUNK_LEN: usize = 16_384;
