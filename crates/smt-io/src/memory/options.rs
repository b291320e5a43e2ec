// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a memory network behaves.

use crate::limits::{
    MEMORY_DATAGRAM_BYTES_DEFAULT, MEMORY_QUEUE_BYTES_DEFAULT, MEMORY_QUEUE_DATAGRAMS_DEFAULT,
};

/// Options of a [`MemoryNetwork`](super::MemoryNetwork).
#[derive(Clone, Copy, Debug)]
pub struct MemoryOptions {
    pub(super) queue_datagrams: usize,
    pub(super) queue_bytes: usize,
    pub(super) datagram_bytes_max: usize,
    pub(super) coalesce: bool,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryOptions {
    /// Datagrams of up to 1,472 bytes, coalesced on receipt, and queues of 4 MiB or 8,192 of them.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            queue_datagrams: MEMORY_QUEUE_DATAGRAMS_DEFAULT,
            queue_bytes: MEMORY_QUEUE_BYTES_DEFAULT,
            datagram_bytes_max: MEMORY_DATAGRAM_BYTES_DEFAULT,
            coalesce: true,
        }
    }

    /// Datagrams that wait at one end before more are dropped.
    #[must_use]
    pub const fn queue_datagrams(mut self, datagrams: usize) -> Self {
        self.queue_datagrams = datagrams;
        self
    }

    /// Bytes that wait at one end before more are dropped.
    #[must_use]
    pub const fn queue_bytes(mut self, bytes: usize) -> Self {
        self.queue_bytes = bytes;
        self
    }

    /// Bytes of the largest datagram; a larger one is too large to send.
    #[must_use]
    pub const fn datagram_bytes_max(mut self, bytes: usize) -> Self {
        self.datagram_bytes_max = bytes;
        self
    }

    /// Whether one receive call takes a run of equal-size datagrams, as with GRO.
    #[must_use]
    pub const fn coalesce(mut self, on: bool) -> Self {
        self.coalesce = on;
        self
    }
}
