// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The choices of a driver.

/// The choices of a driver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DriverConfig {
    /// Transmit queues of each class, 1 to 4,096, so that those of all classes have numbers. On a
    /// host with as many cores, each core has one.
    pub queues: u16,
    /// Classes of priorities, 1 to 8: each has as many transmit queues, and its segments leave
    /// before those of lower classes. With 1 the device knows no priorities, and packets have their
    /// marks alone.
    pub priority_classes: u8,
    /// Receive queues; 0 for a device that only sends.
    pub receive_queues: u16,
    /// Buffers of a receive queue, of 64 KiB each; at least 1.
    pub receive_buffers: u32,
    /// Descriptors in the ring of a queue; at least 8.
    pub ring_entries: u32,
    /// Whether the device is trusted with keys and plaintext. If not, the core seals all records in
    /// the process, and the device only cuts segments (SMT paper §4.1).
    pub is_trusted: bool,
    /// Flow contexts of one key in a queue. More than one spares resyncs where messages of a
    /// session alternate; each takes room in the device.
    pub contexts_per_flow: usize,
    /// Flow contexts of a queue in all. Sessions beyond are sealed in software until others rest.
    pub contexts_per_queue: usize,
    /// Receive contexts in all, by which the device opens records; 0 opens none there. The records
    /// of sessions beyond are opened by the core.
    pub receive_contexts: usize,
    /// Bytes of the shortest payload that is worth a descriptor of the engine; shorter ones are
    /// sealed in software.
    pub offload_bytes_min: usize,
    /// Whether sessions may be protected by PSP, if the device is trusted (SPEC §15.3).
    pub psp: bool,
    /// Associations of PSP under which the host sends at most.
    pub psp_associations: usize,
    /// Contexts of PSP in all. Packets of associations beyond are sealed in software until others
    /// rest.
    pub psp_contexts: usize,
    /// The IP protocol number of SMT.
    pub protocol: u8,
    /// Segments that wait for room in the rings at most, beyond those of one batch.
    pub waiting_max: usize,
}

impl DriverConfig {
    /// The transmit queues of each class, within their bounds.
    pub(crate) fn queues_of_class(&self) -> usize {
        usize::from(self.queues.clamp(1, QUEUES_MAX))
    }

    /// The classes of priorities, within their bounds.
    pub(crate) fn classes(&self) -> usize {
        usize::from(self.priority_classes.clamp(1, PRIORITIES))
    }
}

impl Default for DriverConfig {
    /// A trusted device, two queues of 256 descriptors in one class of priorities, and two with 32
    /// buffers, one context for each session and queue, 1,024 contexts a queue and as many for
    /// receiving, payloads from 1,024 bytes on, no PSP, protocol 253.
    fn default() -> Self {
        Self {
            queues: 2,
            priority_classes: 1,
            receive_queues: 2,
            receive_buffers: 32,
            ring_entries: 256,
            is_trusted: true,
            contexts_per_flow: 1,
            contexts_per_queue: 1_024,
            receive_contexts: 1_024,
            offload_bytes_min: 1_024,
            psp: false,
            psp_associations: 4_096,
            psp_contexts: 1_024,
            protocol: 253,
            waiting_max: 64,
        }
    }
}

/// Transmit queues of a class at most: eight times as many have numbers of 16 bits.
const QUEUES_MAX: u16 = 4_096;
/// Priorities of batches, from 0 (SPEC §15.1).
pub(crate) const PRIORITIES: u8 = 8;
