// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transmit queues: rings of descriptors in host memory, read in order.

use crate::completion::CompletionQueue;
use crate::descriptor::{BadDescriptor, DESCRIPTOR_BYTES, Descriptor};
use crate::host_memory::{DmaFault, HostMemory};

/// A ring of entries of one size in host memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Ring {
    /// The address of entry 0.
    pub address: u64,
    /// Entries; at least 1.
    pub entries: u32,
}

impl Ring {
    /// The address of the entry with this number, counted from 0 over all rounds, of `bytes` each.
    /// Addresses wrap as the host's would: a ring at the end of memory is a fault when it is used.
    pub(crate) fn address_of(&self, number: u64, bytes: usize) -> u64 {
        let place = number % u64::from(self.entries.max(1));
        self.address.wrapping_add(place.wrapping_mul(bytes as u64))
    }
}

/// One transmit queue.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct TransmitQueue {
    /// The class of its segments: queues of a higher class are served first.
    pub(crate) class: u8,
    ring: Ring,
    /// Descriptors that the host has written so far.
    produced: u64,
    /// Descriptors that were fetched so far.
    consumed: u64,
    /// The descriptor that was fetched and not executed.
    fetched: Option<Result<Descriptor, BadDescriptor>>,
    /// Its ring could not be read: it stands until the device is reset.
    is_stopped: bool,
    pub(crate) completions: CompletionQueue,
}

impl TransmitQueue {
    pub(crate) fn new(class: u8, ring: Ring, completions: Ring) -> Self {
        Self {
            class,
            ring,
            produced: 0,
            consumed: 0,
            fetched: None,
            is_stopped: false,
            completions: CompletionQueue::new(completions),
        }
    }

    /// Takes the register of the host: it has written `descriptors` in all. A number that goes
    /// back, or beyond the ring, is not believed.
    pub(crate) fn host_has_written(&mut self, descriptors: u64) {
        let most = self.consumed.saturating_add(self.ring.entries.into());
        if (self.produced..=most).contains(&descriptors) {
            self.produced = descriptors;
        }
    }

    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
        self.fetched = None;
    }

    /// Whether there is something to fetch or to execute.
    pub(crate) fn has_work(&self) -> bool {
        !self.is_stopped && (self.fetched.is_some() || self.consumed < self.produced)
    }

    /// Whether a step would do something: a descriptor waits, and a place for its completion.
    pub(crate) fn can_go_on(&self) -> bool {
        self.has_work() && (self.fetched.is_none() || self.completions.has_room())
    }

    pub(crate) fn has_fetched(&self) -> bool {
        self.fetched.is_some()
    }

    /// Reads the next descriptor.
    pub(crate) fn fetch<M: HostMemory>(&mut self, memory: &mut M) -> Result<(), DmaFault> {
        let mut bytes = [0; DESCRIPTOR_BYTES];
        memory.read(self.ring.address_of(self.consumed, DESCRIPTOR_BYTES), &mut bytes)?;
        self.consumed += 1;
        self.fetched = Some(Descriptor::parse(&bytes));
        Ok(())
    }

    pub(crate) fn take_fetched(&mut self) -> Option<Result<Descriptor, BadDescriptor>> {
        self.fetched.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> TransmitQueue {
        let ring = Ring { address: 0, entries: 4 };
        TransmitQueue::new(0, ring, ring)
    }

    #[test]
    fn a_register_that_goes_back_or_beyond_the_ring_is_not_believed() {
        let mut queue = queue();
        queue.host_has_written(5);
        assert!(!queue.has_work());
        queue.host_has_written(4);
        assert!(queue.has_work());
        queue.host_has_written(0);
        assert!(queue.has_work());
    }

    #[test]
    fn entries_come_round() {
        let ring = Ring { address: 1_000, entries: 4 };
        assert_eq!(ring.address_of(3, 48), 1_000 + 3 * 48);
        assert_eq!(ring.address_of(4, 48), 1_000);
    }
}
