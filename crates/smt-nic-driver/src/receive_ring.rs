// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One receive queue as the driver sees it: buffers that it posts, and completions that it reads.

use smt_nic::Ring;
use smt_nic::completion::Owner;
use smt_nic::receive::UnwrappedBy;
use smt_nic::receive::queue::{
    BUFFER_DESCRIPTOR_BYTES, BufferDescriptor, OpenedPlaces, RECEIVE_COMPLETION_BYTES,
    ReceiveCompletion,
};

use crate::host_regions::{HostRegions, Region};

/// One receive queue. Each entry of its rings has a buffer of its own, which is posted again when
/// its packet was taken.
#[derive(Debug)]
pub(crate) struct ReceiveRing {
    descriptors: Region,
    completions: Region,
    buffers: Vec<Region>,
    /// Completions read in all.
    read: u64,
}

/// A packet that has arrived.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Reaped<'a> {
    pub(crate) bytes: &'a mut [u8],
    /// The records in it that were opened.
    pub(crate) records: Option<OpenedPlaces>,
    /// The association by which all of it was opened.
    pub(crate) association: Option<UnwrappedBy>,
}

impl ReceiveRing {
    /// A queue with so many buffers, at least one.
    pub(crate) fn new(entries: u32, memory: &mut HostRegions) -> Self {
        let entries = entries.max(1) as usize;
        let ring = Self {
            descriptors: memory.add(entries * BUFFER_DESCRIPTOR_BYTES),
            completions: memory.add(entries * RECEIVE_COMPLETION_BYTES),
            buffers: (0..entries).map(|_| memory.add(BUFFER_BYTES)).collect(),
            read: 0,
        };
        let descriptors = memory.bytes_mut(ring.descriptors);
        let (places, _) = descriptors.as_chunks_mut::<BUFFER_DESCRIPTOR_BYTES>();
        for (place, buffer) in places.iter_mut().zip(&ring.buffers) {
            let descriptor =
                BufferDescriptor { address: buffer.address(), bytes: BUFFER_BYTES as u32 };
            *place = descriptor.to_bytes();
        }
        ring
    }

    /// The rings of buffers and completions, as the device is told them.
    pub(crate) fn rings(&self) -> [Ring; 2] {
        [self.descriptors, self.completions]
            .map(|region| Ring { address: region.address(), entries: self.entries() })
    }

    /// The values of the two registers: buffers posted, and completions read.
    pub(crate) fn registers(&self) -> (u64, u64) {
        (self.read + u64::from(self.entries()), self.read)
    }

    /// The next packet that has arrived. Its buffer is the device's
    /// again with the next writing of [`Self::registers`].
    pub(crate) fn reap<'a>(&mut self, memory: &'a mut HostRegions) -> Option<Reaped<'a>> {
        let place = (self.read % u64::from(self.entries())) as usize;
        let entries = memory.bytes(self.completions);
        let (entries, _) = entries.as_chunks::<RECEIVE_COMPLETION_BYTES>();
        let owner = Owner::of_entry(self.read, self.entries());
        let completion = ReceiveCompletion::parse(entries.get(place)?, owner)?;
        self.read += 1;
        let bytes = memory.bytes_mut(self.buffers[place]).get_mut(..completion.bytes as usize)?;
        Some(Reaped { bytes, records: completion.opened, association: completion.association })
    }

    /// Begins anew after a reset of the device.
    pub(crate) fn reset(&mut self, memory: &mut HostRegions) {
        memory.bytes_mut(self.completions).fill(0);
        self.read = 0;
    }

    fn entries(&self) -> u32 {
        self.buffers.len() as u32
    }
}

/// Bytes of a buffer: those of the longest packet.
const BUFFER_BYTES: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use smt_nic::tls::TlsEngine;
    use smt_nic::{Nic, NicConfig};

    #[test]
    fn buffers_come_round_in_order() {
        let mut memory = HostRegions::default();
        let mut ring = ReceiveRing::new(3, &mut memory);
        let mut nic = Nic::new(NicConfig::default(), TlsEngine);
        let [buffers, completions] = ring.rings();
        nic.add_receive_queue(buffers, completions);
        for number in 0..10_u8 {
            let (posted, read) = ring.registers();
            nic.host_has_posted(0, posted, read);
            nic.receive(&[number; 50], &mut memory);
            let packet = ring.reap(&mut memory).map(|of| of.bytes.to_vec());
            assert_eq!(packet.as_deref(), Some(&[number; 50][..]));
            assert_eq!(ring.reap(&mut memory), None);
        }
    }
}
