// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of a driver's work.

/// The work of a driver. Every field only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct DriverStatistics {
    /// Segments that the device was given, repetitions after an error among them.
    pub segments: u64,
    /// Segments whose records the device's engine seals.
    pub segments_offloaded: u64,
    /// Records that were sealed in software although the carrier was to seal them.
    pub records_in_software: u64,
    /// Flow contexts that were created.
    pub contexts_created: u64,
    /// Flow contexts that gave way to another session's.
    pub contexts_evicted: u64,
    /// Resyncs of a context to another record number.
    pub resyncs: u64,
    /// Receive contexts that were created.
    pub receive_contexts_created: u64,
    /// Receiving keys for which the device had no room: the core opens their records.
    pub receive_contexts_refused: u64,
    /// Arrivals that the device has opened by a context that was removed meanwhile, or that nobody
    /// has given it: they are lost.
    pub opened_without_key: u64,
    /// Contexts of PSP that were created.
    pub psp_contexts_created: u64,
    /// Contexts of PSP for which the device had no room: software seals the packets.
    pub psp_contexts_refused: u64,
    /// Packets of PSP that were sealed in software.
    pub packets_in_software: u64,
    /// Segments that the device has refused, and that left again.
    pub repeated: u64,
    /// Segments that were lost: a reset found them under way, their key or association was gone, or
    /// the device
    /// refused them without a context too.
    pub lost: u64,
}
