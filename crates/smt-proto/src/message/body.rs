// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The body of an incoming message: the application's bytes, while they come (SPEC §5.4).
//!
//! A short one is a vector of its own, and a longer one is in a buffer that comes back when the
//! application drops it (`buffer_pool`). It grows to what the peer may send, never to a claimed
//! length; only a buffer from the pool may be larger.
//!
//! Not here: bodies of one record, which are in a block with others (`memory::small_bodies`).

use alloc::vec::Vec;
use bytes::Bytes;

use crate::memory::buffer_pool::{Buffer, BufferPool};

/// The bytes of a body, those that have not come undefined.
#[derive(Debug)]
pub(crate) enum Body {
    /// A short body: a vector of its own.
    Own(Vec<u8>),
    /// A long body, and the end of the bytes that have been handed out for writing. Bytes behind
    /// that end need not be copied.
    Lent(Buffer, usize),
}

impl Body {
    /// Starts a body of up to `whole` bytes whose first bytes are `bytes`. A long one has a pooled
    /// buffer for all of it from the beginning, if there is one; a new one is small until more has
    /// come.
    pub(crate) fn starting_with(bytes: &[u8], whole: usize, buffer_pool: &BufferPool) -> Self {
        if whole <= OWN_MAX {
            let mut own = Vec::with_capacity(whole);
            own.extend_from_slice(bytes);
            return Self::Own(own);
        }
        let mut buffer = buffer_pool.take(bytes.len(), whole);
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Self::Lent(buffer, bytes.len())
    }

    /// The bytes so far, those that have not come undefined.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Lent(buffer, end) => &buffer.bytes()[..*end],
        }
    }

    /// The bytes that the body holds or may come to hold without growing.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.capacity(),
            Self::Lent(buffer, _) => buffer.bytes().len(),
        }
    }

    /// The first `end` bytes, to be written. If they are not there yet, room is made for `promised`
    /// bytes, all of which may come, of a body of `whole`.
    pub(crate) fn up_to(
        &mut self,
        end: usize,
        promised: usize,
        whole: usize,
        buffer_pool: &BufferPool,
    ) -> &mut [u8] {
        if self.capacity() < end {
            let most = whole.max(end);
            let least = promised.max(2 * self.capacity()).min(most).max(end);
            if least <= OWN_MAX {
                if let Self::Own(bytes) = self {
                    bytes.reserve_exact(least - bytes.len());
                }
            } else {
                let mut buffer = buffer_pool.take(least, most);
                let before = self.written();
                buffer.bytes_mut()[..before.len()].copy_from_slice(before);
                *self = Self::Lent(buffer, before.len());
            }
        }
        match self {
            Self::Own(bytes) => {
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                &mut bytes[..end]
            }
            Self::Lent(buffer, written) => {
                *written = end.max(*written);
                &mut buffer.bytes_mut()[..end]
            }
        }
    }

    /// The first `length` bytes, which have all been written.
    pub(crate) fn into_bytes(self, length: usize) -> Bytes {
        match self {
            Self::Own(mut bytes) => {
                bytes.truncate(length);
                Bytes::from(bytes)
            }
            Self::Lent(buffer, _) => {
                let mut bytes = Bytes::from_owner(buffer);
                bytes.truncate(length);
                bytes
            }
        }
    }

    fn written(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Lent(buffer, written) => &buffer.bytes()[..*written],
        }
    }
}

/// The longest body that is a vector of its own: an allocator keeps such small ones.
const OWN_MAX: usize = 4_096;
