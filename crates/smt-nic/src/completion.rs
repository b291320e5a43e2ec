// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Completions: the answers of the device, 16 bytes each, big-endian, in a ring of host memory.
//!
//! | off | size | field |
//! |--:|--:|:--|
//! | 0 | 1 | status: 0 done, else the error ([`Status`]) |
//! | 1 | 1 | owner: 1 in the first round through the ring, 0 in the second, and so on |
//! | 2 | 2 | queue |
//! | 4 | 4 | packets that left for it |
//! | 8 | 8 | cookie of the descriptor |
//!
//! The host finds a fresh entry by its owner bit, and says by a register how far it has read: the
//! device never writes over what the host has not read.

use crate::host_memory::{DmaFault, HostMemory};
use crate::transmit_queue::Ring;

/// Bytes of a completion.
pub const COMPLETION_BYTES: usize = 16;

/// The answer to one descriptor.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Completion {
    /// How it ended.
    pub status: Status,
    /// The queue of the descriptor.
    pub queue: u16,
    /// Packets that left for it.
    pub packets: u32,
    /// The descriptor's cookie.
    pub cookie: u64,
}

/// How a descriptor ended. After an error nothing of it has left.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum Status {
    /// It was done.
    Done = 0,
    /// The descriptor asks for nothing that the device knows, or for too much.
    BadDescriptor = 1,
    /// The host has no memory at an address in it.
    DmaFault = 2,
    /// The headers are of no protocol that the device can cut.
    BadHeaders = 3,
    /// No context has that name, or one has it already.
    UnknownContext = 4,
    /// The contexts' memory is full.
    NoRoom = 5,
    /// The context block is of no engine, suite or key length that the device has.
    BadContextBlock = 6,
    /// The payload is not what the engine protects, for example no whole records.
    BadPayload = 7,
    /// The engine's numbers are used up.
    NumbersUsedUp = 8,
}

impl Completion {
    /// Reads an entry if its owner bit says that it is of this round of the ring.
    #[must_use]
    pub fn parse(bytes: &[u8; COMPLETION_BYTES], round: Owner) -> Option<Self> {
        if bytes[1] != round.0 {
            return None;
        }
        let status = ALL_STATUS.into_iter().find(|of| *of as u8 == bytes[0])?;
        let [_, _, q0, q1, p0, p1, p2, p3, cookie @ ..] = *bytes;
        Some(Self {
            status,
            queue: u16::from_be_bytes([q0, q1]),
            packets: u32::from_be_bytes([p0, p1, p2, p3]),
            cookie: u64::from_be_bytes(cookie),
        })
    }

    fn to_bytes(self, round: Owner) -> [u8; COMPLETION_BYTES] {
        let mut bytes = [0; COMPLETION_BYTES];
        bytes[0] = self.status as u8;
        bytes[1] = round.0;
        bytes[2..4].copy_from_slice(&self.queue.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.packets.to_be_bytes());
        bytes[8..].copy_from_slice(&self.cookie.to_be_bytes());
        bytes
    }
}

/// The owner bit of one round through a completion ring.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Owner(u8);

impl Owner {
    /// The owner bit of the entry with this number, counted from 0 over all rounds.
    #[must_use]
    pub fn of_entry(number: u64, entries: u32) -> Self {
        let round = number / u64::from(entries.max(1));
        Self(u8::from(round.is_multiple_of(2)))
    }

    /// Whether an entry with this bit is of the round.
    pub(crate) fn is(self, bit: u8) -> bool {
        self.0 == bit
    }

    /// The bit.
    pub(crate) fn bit(self) -> u8 {
        self.0
    }
}

/// The device's end of a completion ring.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct CompletionQueue {
    ring: Ring,
    written: u64,
    /// How far the host has read.
    read: u64,
}

impl CompletionQueue {
    pub(crate) fn new(ring: Ring) -> Self {
        Self { ring, written: 0, read: 0 }
    }

    /// Whether there is room for one more.
    pub(crate) fn has_room(&self) -> bool {
        self.written - self.read < u64::from(self.ring.entries)
    }

    /// Takes the register of the host: it has read `entries` in all. More than were written, or
    /// fewer than before, are not believed.
    pub(crate) fn host_has_read(&mut self, entries: u64) {
        if entries <= self.written {
            self.read = self.read.max(entries);
        }
    }

    /// Writes an entry. The caller has seen that there is room.
    pub(crate) fn write<M: HostMemory>(
        &mut self,
        completion: Completion,
        memory: &mut M,
    ) -> Result<(), DmaFault> {
        let round = Owner::of_entry(self.written, self.ring.entries);
        let at = self.ring.address_of(self.written, COMPLETION_BYTES);
        memory.write(at, &completion.to_bytes(round))?;
        self.written += 1;
        Ok(())
    }
}

const ALL_STATUS: [Status; 9] = [
    Status::Done,
    Status::BadDescriptor,
    Status::DmaFault,
    Status::BadHeaders,
    Status::UnknownContext,
    Status::NoRoom,
    Status::BadContextBlock,
    Status::BadPayload,
    Status::NumbersUsedUp,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_in_its_round_alone() {
        for status in ALL_STATUS {
            let completion = Completion {
                status,
                queue: 0x0102,
                packets: 0x0304_0506,
                cookie: 0x0708_090A_0B0C_0D0E,
            };
            let bytes = completion.to_bytes(Owner::of_entry(3, 4));
            assert_eq!(Completion::parse(&bytes, Owner::of_entry(0, 4)), Some(completion));
            assert_eq!(Completion::parse(&bytes, Owner::of_entry(4, 4)), None);
        }
    }

    #[test]
    fn memory_of_zeros_has_no_entry_of_the_first_round() {
        let bytes = [0; COMPLETION_BYTES];
        assert_eq!(Completion::parse(&bytes, Owner::of_entry(0, 4)), None);
    }

    #[test]
    fn a_host_that_claims_to_have_read_more_than_was_written_is_not_believed() {
        let ring = Ring { address: 0, entries: 2 };
        let mut queue = CompletionQueue::new(ring);
        queue.written = 2;
        assert!(!queue.has_room());
        queue.host_has_read(3);
        assert!(!queue.has_room());
        queue.host_has_read(1);
        assert!(queue.has_room());
    }
}
