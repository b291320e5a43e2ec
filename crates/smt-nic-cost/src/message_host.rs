// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host before a device that has the whole transport: rings and bodies in its memory.

use std::ops::Range;

use smt_nic::{DmaFault, HostMemory};

/// The host's memory: two rings, then a request and a place for a reply of each slot.
pub(crate) struct RingMemory {
    pub(crate) bytes: Vec<u8>,
    slots: u64,
}

impl RingMemory {
    fn new(slots: usize, length: usize) -> Self {
        let bytes = slots * (DESCRIPTOR + COMPLETION + 2 * length);
        Self { bytes: vec![7; bytes], slots: slots as u64 }
    }

    pub(crate) fn descriptor_at(&self, number: u64) -> u64 {
        number % self.slots * DESCRIPTOR as u64
    }

    pub(crate) fn completion_at(&self, number: u64) -> u64 {
        self.slots * DESCRIPTOR as u64 + number % self.slots * COMPLETION as u64
    }

    fn place(&self, at: u64, length: usize) -> Result<Range<usize>, DmaFault> {
        let begin = usize::try_from(at).map_err(|_| DmaFault { at })?;
        let end = begin.checked_add(length).filter(|end| *end <= self.bytes.len());
        end.map(|end| begin..end).ok_or(DmaFault { at })
    }
}

impl HostMemory for RingMemory {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        let place = self.place(at, into.len())?;
        into.copy_from_slice(&self.bytes[place]);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        let place = self.place(at, bytes.len())?;
        self.bytes[place].copy_from_slice(bytes);
        Ok(())
    }
}

/// The host: it posts descriptors and reads completions.
pub(crate) struct MessageHost {
    pub(crate) memory: RingMemory,
    length: usize,
    /// Descriptors that were written so far.
    pub(crate) posted: u64,
    /// Completions that were read so far.
    pub(crate) reaped: u64,
}

impl MessageHost {
    pub(crate) fn new(slots: usize, length: usize) -> Self {
        Self { memory: RingMemory::new(slots, length), length, posted: 0, reaped: 0 }
    }

    /// Where the request of a slot is, and where its reply goes.
    pub(crate) fn bodies(&self, number: u64) -> [u64; 2] {
        let (slots, length) = (self.memory.slots, self.length as u64);
        let front = slots * (DESCRIPTOR + COMPLETION) as u64;
        let request = front + number % slots * 2 * length;
        [request, request + length]
    }

    /// Writes the next descriptor.
    pub(crate) fn post(&mut self) {
        let [request, reply] = self.bodies(self.posted);
        let at = self.memory.descriptor_at(self.posted) as usize;
        let descriptor = &mut self.memory.bytes[at..at + DESCRIPTOR];
        let length = (self.length as u32).to_be_bytes();
        descriptor[..8].copy_from_slice(&request.to_be_bytes());
        descriptor[8..12].copy_from_slice(&length);
        descriptor[16..24].copy_from_slice(&reply.to_be_bytes());
        descriptor[24..28].copy_from_slice(&length);
        descriptor[40..].copy_from_slice(&self.posted.to_be_bytes());
        self.posted += 1;
    }

    /// Reads a completion: its cookie, if the call has succeeded.
    pub(crate) fn reap(&mut self) -> Option<u64> {
        let at = self.memory.completion_at(self.reaped) as usize;
        let completion = &self.memory.bytes[at..at + COMPLETION];
        self.reaped += 1;
        let is_done = u32_at(completion, 8) == 0 && u32_at(completion, 12) as usize == self.length;
        is_done.then(|| u64_at(completion, 0))
    }
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(value)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(value)
}

/// Bytes of a descriptor.
pub(crate) const DESCRIPTOR: usize = 48;
/// Bytes of a completion.
pub(crate) const COMPLETION: usize = 16;
