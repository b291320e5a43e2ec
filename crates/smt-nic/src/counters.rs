// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of the work of a NIC, from which its cost is computed.

/// The work that a NIC has done. Every field only grows.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Descriptors that were fetched.
    pub descriptors: u64,
    /// Bytes that were read from host memory: descriptors, headers, payloads and context blocks.
    pub dma_read_bytes: u64,
    /// Bytes that were written to host memory.
    pub dma_written_bytes: u64,
    /// Segments that were cut.
    pub segments: u64,
    /// Packets that went to the wire.
    pub packets: u64,
    /// Bytes of those packets, from their IP header on.
    pub packet_bytes: u64,
    /// Records that an engine has sealed.
    pub records_sealed: u64,
    /// Bytes of plaintext in those records.
    pub sealed_bytes: u64,
    /// Contexts that were created.
    pub contexts_created: u64,
    /// Contexts whose record number was set anew.
    pub resyncs: u64,
    /// Uses of a context that was in the device's memory.
    pub context_hits: u64,
    /// Uses of a context that had to be read from host memory first.
    pub context_misses: u64,
    /// Descriptors that ended with an error.
    pub errors: u64,
}
