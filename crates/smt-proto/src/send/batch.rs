// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Datagrams for one destination that leave in one call: equal in size, the last may be shorter.
//!
//! Where the carrier copies headers, a long message leaves as one stream instead, alone in its
//! batch: the carrier cuts the stream into such datagrams.

use smt_carrier::{AssociationHandle, Capabilities, HeaderCopy, SEGMENT_HEADER_BYTES};

use crate::message::transmitting::Room;
use crate::send::buffer::TransmitBuffer;

/// The bounds of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    /// Most datagrams.
    pub(crate) segments: usize,
    /// Most bytes, beyond the first datagram.
    pub(crate) bytes: usize,
    /// Whether the carrier cuts streams, and copies the header of each.
    pub(crate) cuts_streams: bool,
}

impl BatchLimits {
    /// The bounds of a carrier.
    pub(crate) fn of_carrier(capabilities: &Capabilities) -> Self {
        Self {
            segments: usize::from(capabilities.segments_max.max(1)),
            bytes: capabilities.batch_max,
            cuts_streams: capabilities.headers == HeaderCopy::Replicated,
        }
    }

    /// The same with at most this many bytes.
    pub(crate) fn within(self, bytes: usize) -> Self {
        Self { bytes: self.bytes.min(bytes), ..self }
    }
}

/// A batch under construction, in a buffer that the caller owns.
#[derive(Debug)]
pub(crate) struct DatagramBatch<'a> {
    pub(crate) bytes: &'a mut TransmitBuffer,
    /// Size of all datagrams but the last; 0 while empty.
    segment_size: usize,
    segments: usize,
    /// A shorter datagram has ended it.
    is_closed: bool,
    limits: BatchLimits,
    pub(crate) priority: u8,
    /// The association under which the carrier seals the datagrams.
    pub(crate) association: Option<AssociationHandle>,
}

impl<'a> DatagramBatch<'a> {
    pub(crate) fn new(bytes: &'a mut TransmitBuffer, limits: BatchLimits) -> Self {
        bytes.clear();
        Self {
            bytes,
            segment_size: 0,
            segments: 0,
            is_closed: false,
            limits,
            priority: 0,
            association: None,
        }
    }

    /// Lets no more than this many bytes into the batch, beyond its first datagram.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.limits = self.limits.within(bytes);
    }

    /// Lets no more than so many further datagrams into the batch.
    pub(crate) fn limit_datagrams(&mut self, further: usize) {
        let most = self.segments.saturating_add(further);
        self.limits.segments = self.limits.segments.min(most);
    }

    /// Whether one more datagram of this size fits.
    pub(crate) fn fits(&self, length: usize) -> bool {
        self.segments == 0
            || !self.is_closed
                && length <= self.segment_size
                && self.segments < self.limits.segments
                && self.bytes.len() + length <= self.limits.bytes
    }

    /// The room for a stream that is cut into datagrams of at most `limit` bytes: how many of them;
    /// `None` if the carrier cuts no streams.
    pub(crate) fn stream_room(&self, limit: usize) -> Option<usize> {
        let most = self.limits.segments.min(self.limits.bytes / limit.max(1));
        (self.limits.cuts_streams && most > 1).then_some(most)
    }

    /// The room for the next datagram of at most `limit` bytes.
    pub(crate) fn room(&self, limit: usize) -> Room {
        match self.limits.segments > 1 && self.limits.bytes >= 2 * limit {
            true => Room::InBatch { limit, segment_size: self.segment_size },
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

    /// Notes that all that was appended is a stream, of which each datagram gets `payload_max`
    /// bytes behind a copy of the header.
    pub(crate) fn close_stream(&mut self, header: [u8; SEGMENT_HEADER_BYTES], payload_max: usize) {
        self.segment_size = payload_max;
        self.segments = self.bytes.len().div_ceil(payload_max);
        self.is_closed = true;
        self.bytes.make_stream(header);
    }

    /// Whether no further datagram fits, however short.
    pub(crate) fn is_full(&self) -> bool {
        self.is_closed
            || self.segments >= self.limits.segments
            || self.bytes.len() + self.segment_size > self.limits.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments == 0
    }

    /// Size of all datagrams but the last; in a stream, of the part of the stream in them.
    pub(crate) fn segment_size(&self) -> usize {
        self.segment_size
    }

    /// How many datagrams there are.
    pub(crate) fn datagrams(&self) -> usize {
        self.segments
    }

    /// Bytes of all datagrams, with the headers that the carrier copies.
    pub(crate) fn datagram_bytes(&self) -> usize {
        let copied = self.bytes.header().map_or(0, |header| header.len());
        self.bytes.len() + self.segments * copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{SEGMENTS_MAX, TRANSMIT_BYTES_MAX};

    const LIMITS: BatchLimits = BatchLimits {
        segments: SEGMENTS_MAX as usize,
        bytes: TRANSMIT_BYTES_MAX,
        cuts_streams: false,
    };

    #[test]
    fn a_shorter_datagram_ends_the_batch_and_a_longer_never_fits() {
        let mut bytes = TransmitBuffer::default();
        let mut batch = DatagramBatch::new(&mut bytes, LIMITS);
        assert!(batch.fits(60_000));
        batch.close_datagram(100);
        assert!(batch.fits(100) && batch.fits(50) && !batch.fits(101));
        batch.close_datagram(50);
        assert!(!batch.fits(50));
    }

    #[test]
    fn the_kernels_limits_hold() {
        let mut bytes = TransmitBuffer::default();
        let mut batch = DatagramBatch::new(&mut bytes, LIMITS);
        let mut segments = 0;
        while batch.fits(1_472) {
            batch.bytes.grow(1_472);
            batch.close_datagram(1_472);
            segments += 1;
        }
        assert_eq!(segments, 44);
        assert!(batch.bytes.len() <= TRANSMIT_BYTES_MAX);
    }

    #[test]
    fn a_batch_has_no_more_datagrams_than_the_carrier_takes() {
        for segments in [1, 2, 5] {
            let mut bytes = TransmitBuffer::default();
            let limits = BatchLimits { segments, ..LIMITS };
            let mut batch = DatagramBatch::new(&mut bytes, limits);
            let mut count = 0;
            while batch.fits(100) {
                batch.close_datagram(100);
                count += 1;
            }
            assert_eq!(count, segments);
            assert!(batch.is_full());
        }
    }

    #[test]
    fn a_batch_takes_no_more_further_datagrams_than_it_is_limited_to() {
        let mut bytes = TransmitBuffer::default();
        let mut batch = DatagramBatch::new(&mut bytes, LIMITS);
        batch.close_datagram(100);
        batch.limit_datagrams(2);
        for _ in 0..2 {
            assert!(batch.fits(100));
            batch.close_datagram(100);
        }
        assert!(!batch.fits(100) && batch.is_full());
    }

    #[test]
    fn the_headers_that_a_carrier_copies_count_as_bytes_of_the_datagrams() {
        let mut bytes = TransmitBuffer::default();
        let mut batch = DatagramBatch::new(&mut bytes, LIMITS);
        batch.bytes.grow(2_500);
        batch.close_stream([0; SEGMENT_HEADER_BYTES], 1_000);
        assert_eq!(batch.datagram_bytes(), 2_500 + 3 * SEGMENT_HEADER_BYTES);
        assert!(batch.is_full());
    }

    #[test]
    fn a_carrier_of_single_datagrams_gets_full_ones() {
        let mut bytes = TransmitBuffer::default();
        let limits = BatchLimits { segments: 1, ..LIMITS };
        let batch = DatagramBatch::new(&mut bytes, limits);
        assert!(matches!(batch.room(1_472), Room::Alone(1_472)));
        let batch = DatagramBatch::new(&mut bytes, LIMITS);
        assert!(matches!(batch.room(1_472), Room::InBatch { .. }));
    }
}
