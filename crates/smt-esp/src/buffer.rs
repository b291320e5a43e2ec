// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet in its caller's memory, with room before and behind it.

use std::ops::Range;

/// Bytes that sealing may need before a packet: an outer IPv6 header, UDP, ESP header and IV.
pub const HEADROOM: usize = 64;

/// Bytes that sealing may need behind a packet: padding, two bytes of trailer and the longest ICV.
pub const TAILROOM: usize = 24;

/// A packet in its caller's memory, with room before and behind it.
///
/// ESP adds bytes at both ends of a payload. With [`HEADROOM`] and [`TAILROOM`] the payload stays
/// where it is, and only the headers before it move.
#[derive(Debug)]
pub struct PacketBuffer<'a> {
    memory: &'a mut [u8],
    start: usize,
    end: usize,
}

impl<'a> PacketBuffer<'a> {
    /// The packet is the bytes of `memory` in `range`; nothing if `range` is not inside.
    #[must_use]
    pub fn new(memory: &'a mut [u8], range: Range<usize>) -> Option<Self> {
        memory.get(range.clone())?;
        Some(Self { memory, start: range.start, end: range.end })
    }

    /// Copies `packet` to [`HEADROOM`] of `memory`; nothing if `memory` is too short.
    #[must_use]
    pub fn with_copy(memory: &'a mut [u8], packet: &[u8]) -> Option<Self> {
        let range = HEADROOM..HEADROOM.checked_add(packet.len())?;
        memory.get_mut(range.clone())?.copy_from_slice(packet);
        Self::new(memory, range)
    }

    /// The packet's bytes.
    #[must_use]
    pub fn packet(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// The packet's bytes, to change.
    pub fn packet_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.end]
    }

    /// Where the packet is in the caller's memory.
    #[must_use]
    pub const fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    pub(crate) const fn headroom(&self) -> usize {
        self.start
    }

    pub(crate) const fn tailroom(&self) -> usize {
        self.memory.len() - self.end
    }

    /// Opens a gap of `gap` bytes at `header_len`: the header before it moves to the front.
    ///
    /// # Panics
    /// If the headroom or the packet is too short.
    pub(crate) fn insert_gap(&mut self, header_len: usize, gap: usize) {
        let header = self.start..self.start + header_len;
        self.start -= gap;
        self.memory.copy_within(header, self.start);
    }

    /// Removes `gap` bytes at `header_len`: the header before them moves to the back.
    ///
    /// # Panics
    /// If the packet is too short.
    pub(crate) fn remove_gap(&mut self, header_len: usize, gap: usize) {
        let header = self.start..self.start + header_len;
        self.memory.copy_within(header, self.start + gap);
        self.start += gap;
    }

    /// Makes the packet `length` bytes long, by bytes behind it.
    ///
    /// # Panics
    /// If the caller's memory is too short.
    pub(crate) fn set_length(&mut self, length: usize) {
        assert!(self.start + length <= self.memory.len(), "room was checked");
        self.end = self.start + length;
    }
}
