// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of the work of a NIC, from which its cost is computed.

use crate::engine::Protected;

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
    /// Records that an engine has sealed, or packets.
    pub records_sealed: u64,
    /// Bytes of plaintext in those records.
    pub sealed_bytes: u64,
    /// Contexts that were created.
    pub contexts_created: u64,
    /// Contexts and associations that found no room: software does their work.
    pub contexts_refused: u64,
    /// Contexts whose record number was set anew.
    pub resyncs: u64,
    /// Uses of a context that was in the device's memory.
    pub context_hits: u64,
    /// Uses of a context that had to be read from host memory first.
    pub context_misses: u64,
    /// Packets that came from the wire.
    pub packets_received: u64,
    /// Packets of ESP that were opened, and dummies among them.
    pub esp_opened: u64,
    /// Packets of ESP that went up as they came: the device has no association for them.
    pub esp_unknown: u64,
    /// Packets of ESP whose number was taken before, or is below the window: dropped.
    pub esp_replayed: u64,
    /// Packets of ESP that did not authenticate: dropped.
    pub esp_not_authentic: u64,
    /// Packets of ESP that are too short, or whose trailer or IPv4 header is wrong: dropped.
    pub esp_malformed: u64,
    /// Packets of PSP that were opened.
    pub psp_opened: u64,
    /// Packets to the port of PSP that went up as they came: of another protocol or version, or of
    /// a device key that the device never had.
    pub psp_unknown: u64,
    /// Packets of PSP that did not authenticate: dropped.
    pub psp_not_authentic: u64,
    /// Packets of PSP whose headers before it are wrong, or that have no native packet of SMT in
    /// them that has left alone: dropped.
    pub psp_malformed: u64,
    /// Packets that were merged into one before them.
    pub packets_merged: u64,
    /// Buffers of the host that were filled.
    pub arrivals: u64,
    /// Receive contexts that were created.
    pub receive_contexts_created: u64,
    /// Tags of records that the receive side has computed: at most two an arrival.
    pub openings: u64,
    /// Records that it has opened.
    pub records_opened: u64,
    /// Bytes of plaintext in those records.
    pub opened_bytes: u64,
    /// Packets for which the host had no buffer.
    pub packets_dropped: u64,
    /// Descriptors that ended with an error.
    pub errors: u64,
}

impl Counters {
    pub(crate) fn count(&mut self, Protected { records, bytes }: Protected) {
        self.records_sealed += records;
        self.sealed_bytes += bytes;
    }
}
