// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A receive queue: a ring of buffers that the host has posted, and a ring of completions.
//!
//! A buffer descriptor is 16 bytes, big-endian: the address (8), the bytes of the buffer (4), and 4
//! that count for nothing. A completion is 32 bytes:
//!
//! | off | size | field |
//! |--:|--:|:--|
//! | 0 | 1 | owner: 1 in the first round through the ring, 0 in the second, and so on |
//! | 1 | 1 | lower half: records that were opened, 0, 1 or 2; upper half: the protection of packets that the device has taken off, 1 ESP, 2 PSP, 0 none |
//! | 2 | 2 | packets that were merged; 65,535 says that many or more |
//! | 4 | 4 | bytes that were written |
//! | 8 | 4 | hash of the flow |
//! | 12 | 4 | receive context by which records were opened |
//! | 16 | 2 | place of the first of them in the packet, with its header |
//! | 18 | 2 | place of the second |
//! | 20 | 4 | SPI of the association by which that was done; 0 without one |
//! | 24 | 8 | number of the first; the second's is the next |
//!
//! A record that was opened has its inner plaintext between its header and its tag. All other
//! records are as they came.
//!
//! Buffers are used in the order of their ring, and each completion is for the next buffer.

use super::unwrapped_by::UnwrappedBy;
use crate::big_endian::{u16_at, u32_at, u64_at};
use crate::completion::Owner;
use crate::descriptor::ContextId;
use crate::host_memory::{CountedMemory, DmaFault, HostMemory};
use crate::tls::receive::OpenedRecords;
use crate::transmit_queue::Ring;

/// Bytes of a buffer descriptor.
pub const BUFFER_DESCRIPTOR_BYTES: usize = 16;
/// Bytes of a completion.
pub const RECEIVE_COMPLETION_BYTES: usize = 32;

/// The answer for one buffer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ReceiveCompletion {
    /// Packets that were merged.
    pub packets: u16,
    /// Bytes that were written to the buffer, from the IP header on.
    pub bytes: u32,
    /// The hash of the flow (RSS); 0 if the packet is of no flow that the device knows.
    pub hash: u32,
    /// The association by which the device has opened the packets; `None` if it has not.
    pub association: Option<UnwrappedBy>,
    /// The records that were opened, if any.
    pub opened: Option<OpenedPlaces>,
}

/// Records in a packet that were opened: one, or two that follow each other.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct OpenedPlaces {
    /// The receive context that opened them.
    pub context: ContextId,
    /// The number of the first.
    pub number: u64,
    /// Where the first begins in the packet, with its header.
    pub first: u16,
    /// Where the second begins; its number is the next.
    pub second: Option<u16>,
}

/// The lower half of byte 1 of a completion: how many records were opened.
const RECORDS_MASK: u8 = 0x0F;

/// A packet on its way to a buffer of the host.
#[derive(Clone, Copy)]
pub(crate) struct ArrivedPacket<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) mark: Mark,
    pub(crate) packets: u32,
    pub(crate) opened: Option<OpenedPlaces>,
}

impl<'a> ArrivedPacket<'a> {
    /// A packet as it came.
    pub(crate) fn plain(bytes: &'a [u8], mark: Mark) -> Self {
        Self { bytes, mark, packets: 1, opened: None }
    }
}

impl OpenedPlaces {
    /// The places of records in a packet whose payload begins at `payload_at`.
    pub(crate) fn new(context: ContextId, opened: OpenedRecords, payload_at: usize) -> Self {
        // A packet has fewer than 65,536 bytes.
        let place = |at: usize| (payload_at + at) as u16;
        Self {
            context,
            number: opened.number,
            first: place(opened.first),
            second: opened.second.map(place),
        }
    }

    fn parse(bytes: &[u8; RECEIVE_COMPLETION_BYTES]) -> Option<Self> {
        let records = bytes[1] & RECORDS_MASK;
        (records > 0).then(|| Self {
            context: ContextId(u32_at(bytes, 12)),
            number: u64_at(bytes, 24),
            first: u16_at(bytes, 16),
            second: (records > 1).then(|| u16_at(bytes, 18)),
        })
    }

    fn write(self, bytes: &mut [u8; RECEIVE_COMPLETION_BYTES]) {
        bytes[1] |= 1 + u8::from(self.second.is_some());
        bytes[12..16].copy_from_slice(&self.context.0.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.first.to_be_bytes());
        bytes[18..20].copy_from_slice(&self.second.unwrap_or(0).to_be_bytes());
        bytes[24..].copy_from_slice(&self.number.to_be_bytes());
    }
}

impl ReceiveCompletion {
    /// Reads an entry if its owner bit says that it is of this round of the ring.
    #[must_use]
    pub fn parse(bytes: &[u8; RECEIVE_COMPLETION_BYTES], round: Owner) -> Option<Self> {
        round.is(bytes[0]).then(|| Self {
            packets: u16_at(bytes, 2),
            bytes: u32_at(bytes, 4),
            hash: u32_at(bytes, 8),
            association: UnwrappedBy::parse(bytes),
            opened: OpenedPlaces::parse(bytes),
        })
    }

    fn to_bytes(self, round: Owner) -> [u8; RECEIVE_COMPLETION_BYTES] {
        let mut bytes = [0; RECEIVE_COMPLETION_BYTES];
        bytes[0] = round.bit();
        bytes[2..4].copy_from_slice(&self.packets.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.bytes.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.hash.to_be_bytes());
        if let Some(association) = self.association {
            association.write(&mut bytes);
        }
        if let Some(opened) = self.opened {
            opened.write(&mut bytes);
        }
        bytes
    }
}

/// The words of the device about packets, beside their bytes. Packets of different marks are not
/// merged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Mark {
    /// The hash of the flow.
    pub(crate) hash: u32,
    /// The association that has opened them.
    pub(crate) association: Option<UnwrappedBy>,
}

/// A buffer that the host posts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct BufferDescriptor {
    /// The address of the buffer.
    pub address: u64,
    /// Bytes of the buffer.
    pub bytes: u32,
}

impl BufferDescriptor {
    /// The descriptor as it is in the ring.
    #[must_use]
    pub fn to_bytes(self) -> [u8; BUFFER_DESCRIPTOR_BYTES] {
        let mut bytes = [0; BUFFER_DESCRIPTOR_BYTES];
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_be_bytes());
        bytes
    }

    fn parse(bytes: &[u8; BUFFER_DESCRIPTOR_BYTES]) -> Self {
        let [a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, ..] = *bytes;
        Self {
            address: u64::from_be_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            bytes: u32::from_be_bytes([b0, b1, b2, b3]),
        }
    }
}

/// The device's end of a receive queue.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveQueue {
    buffers: Ring,
    completions: Ring,
    /// Buffers that the host has posted, and those that were used, in all.
    posted: u64,
    used: u64,
    /// Completions that the host has read in all.
    read: u64,
}

impl ReceiveQueue {
    pub(crate) fn new(buffers: Ring, completions: Ring) -> Self {
        Self { buffers, completions, posted: 0, used: 0, read: 0 }
    }

    /// Takes the register of the host: it has posted `buffers` in all. A number that goes back, or
    /// beyond the ring, is not believed.
    pub(crate) fn host_has_posted(&mut self, buffers: u64) {
        let most = self.used.saturating_add(self.buffers.entries.into());
        if (self.posted..=most).contains(&buffers) {
            self.posted = buffers;
        }
    }

    /// Takes the register of the host: it has read so many completions in all. More than were
    /// written, or fewer than before, are not believed.
    pub(crate) fn host_has_read(&mut self, completions: u64) {
        if completions <= self.used {
            self.read = self.read.max(completions);
        }
    }

    /// Writes a packet to the next buffer. Without a buffer, or one that is too short, it is
    /// dropped.
    pub(crate) fn deliver<M: HostMemory>(
        &mut self,
        packet: ArrivedPacket<'_>,
        host: &mut CountedMemory<'_, M>,
    ) {
        let completion = ReceiveCompletion {
            packets: u16::try_from(packet.packets).unwrap_or(u16::MAX),
            bytes: packet.bytes.len() as u32,
            hash: packet.mark.hash,
            association: packet.mark.association,
            opened: packet.opened,
        };
        match self.write(packet.bytes, completion, host) {
            Ok(true) => host.counters.arrivals += 1,
            Ok(false) | Err(_) => host.counters.packets_dropped += u64::from(packet.packets),
        }
    }

    fn write<M: HostMemory>(
        &mut self,
        packet: &[u8],
        completion: ReceiveCompletion,
        host: &mut CountedMemory<'_, M>,
    ) -> Result<bool, DmaFault> {
        let has_room = self.used - self.read < u64::from(self.completions.entries);
        if self.used == self.posted || !has_room {
            return Ok(false);
        }
        let mut bytes = [0; BUFFER_DESCRIPTOR_BYTES];
        let at = self.buffers.address_of(self.used, bytes.len());
        host.read(at, &mut bytes)?;
        let buffer = BufferDescriptor::parse(&bytes);
        if (buffer.bytes as usize) < packet.len() {
            return Ok(false);
        }
        host.write(buffer.address, packet)?;
        let round = Owner::of_entry(self.used, self.completions.entries);
        let at = self.completions.address_of(self.used, RECEIVE_COMPLETION_BYTES);
        host.write(at, &completion.to_bytes(round))?;
        self.used += 1;
        Ok(true)
    }
}
