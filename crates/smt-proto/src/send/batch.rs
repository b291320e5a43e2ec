// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams for one destination that leave in one call: equal in size, the last may be shorter.

use crate::limits::SEGMENTS_MAX;
use crate::message::transmitting::Room;
use crate::send::buffer::TransmitBuffer;

/// A batch under construction, in a buffer that the caller owns.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) bytes: &'a mut TransmitBuffer,
    /// Size of all datagrams but the last; 0 while empty.
    segment_size: usize,
    segments: usize,
    /// A shorter datagram has ended it.
    is_closed: bool,
    /// Most bytes.
    bytes_max: usize,
    pub(crate) priority: u8,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(bytes: &'a mut TransmitBuffer, bytes_max: usize) -> Self {
        bytes.clear();
        Self {
            bytes,
            segment_size: 0,
            segments: 0,
            is_closed: false,
            bytes_max,
            priority: 0,
        }
    }

    /// Whether one more datagram of this size fits.
    pub(crate) fn fits(&self, length: usize) -> bool {
        self.segments == 0
            || !self.is_closed
                && length <= self.segment_size
                && self.segments < SEGMENTS_MAX
                && self.bytes.len() + length <= self.bytes_max
    }

    /// The room for the next datagram of at most `limit` bytes.
    pub(crate) fn room(&self, limit: usize) -> Room {
        match self.bytes_max >= 2 * limit {
            true => Room::InBatch {
                limit,
                segment_size: self.segment_size,
            },
            false => Room::Alone(limit),
        }
    }

    /// Counts the datagram of this size that was just appended.
    pub(crate) fn close_datagram(&mut self, length: usize) {
        if self.segments == 0 {
            self.segment_size = length;
        }
        self.segments += 1;
        self.is_closed |= length < self.segment_size;
    }

    /// Whether no further datagram fits, however short.
    pub(crate) fn is_full(&self) -> bool {
        self.is_closed
            || self.segments >= SEGMENTS_MAX
            || self.bytes.len() + self.segment_size > self.bytes_max
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments == 0
    }

    pub(crate) fn segment_size(&self) -> usize {
        self.segment_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::TRANSMIT_BYTES_MAX;

    #[test]
    fn a_shorter_datagram_ends_the_batch_and_a_longer_never_fits() {
        let mut bytes = TransmitBuffer::default();
        let mut batch = Batch::new(&mut bytes, 65_507);
        assert!(batch.fits(60_000));
        batch.close_datagram(100);
        assert!(batch.fits(100) && batch.fits(50) && !batch.fits(101));
        batch.close_datagram(50);
        assert!(!batch.fits(50));
    }

    #[test]
    fn the_kernels_limits_hold() {
        let mut bytes = TransmitBuffer::default();
        let mut batch = Batch::new(&mut bytes, 65_507);
        let mut segments = 0;
        while batch.fits(1_472) {
            batch.bytes.grow(1_472);
            batch.close_datagram(1_472);
            segments += 1;
        }
        assert_eq!(segments, 44);
        assert!(batch.bytes.len() <= TRANSMIT_BYTES_MAX);
    }
}
