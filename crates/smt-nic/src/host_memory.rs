// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host's memory, as a device reaches it.

use thiserror::Error;

use crate::counters::Counters;

/// Memory of the host that the device reads and writes (DMA).
///
/// The host may change it at any time: two reads of one place may differ. The model therefore reads
/// each byte once, and works on its copy.
pub trait HostMemory {
    /// Reads from the address `at` until `into` is full.
    ///
    /// # Errors
    /// The host has no such memory.
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), DmaFault>;

    /// Writes `bytes` to the address `at` and behind.
    ///
    /// # Errors
    /// The host has no such memory.
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), DmaFault>;
}

/// Host memory whose accesses are counted.
pub(crate) struct CountedMemory<'a, M> {
    pub(crate) memory: &'a mut M,
    pub(crate) counters: &'a mut Counters,
}

impl<M: HostMemory> HostMemory for CountedMemory<'_, M> {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        self.counters.dma_read_bytes += into.len() as u64;
        self.memory.read(at, into)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.counters.dma_written_bytes += bytes.len() as u64;
        self.memory.write(at, bytes)
    }
}

/// The host has no memory at an address that the device was told.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the host has no memory at address {at:#x}")]
pub struct DmaFault {
    /// The first address of the access.
    pub at: u64,
}
