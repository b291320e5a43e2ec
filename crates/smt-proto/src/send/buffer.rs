// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A send buffer: memory that is initialised once and then only written over.
//!
//! A vector that is cleared and grows again is zeroed again, byte for byte, right before a record
//! is sealed into the same bytes: a pass over all that is sent, for nothing
//! (docs/lab/2026-11-22.md).

use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use smt_carrier::{Batch, KeyHandle, Layout, SEGMENT_HEADER_BYTES, Transmit, Unsealed};

/// The bytes that [`crate::Endpoint::poll_transmit`] has written. Keep it from one call to the
/// next.
#[derive(Clone, Debug, Default)]
pub struct TransmitBuffer {
    /// All bytes that were ever written; those behind `length` are of former batches.
    bytes: Vec<u8>,
    length: usize,
    /// The records that the carrier seals, in the order of their places.
    unsealed: Vec<Unsealed>,
    /// The header of all datagrams, if the bytes are one stream that the carrier cuts.
    header: Option<[u8; SEGMENT_HEADER_BYTES]>,
}

impl TransmitBuffer {
    /// The batch that [`crate::Endpoint::poll_transmit`] has described, or its rest from the byte
    /// `from` on, if a part has left. A stream, and a batch with records to be sealed, leaves
    /// whole, whatever the carrier says: the places of the records and the offset in the header
    /// are those of the whole.
    #[must_use]
    pub fn batch(&self, transmit: &Transmit, from: usize) -> Batch<'_> {
        let is_whole = self.header.is_some() || !self.unsealed.is_empty();
        debug_assert!(from == 0 || !is_whole, "it leaves whole or not at all");
        let segment_size = transmit.segment_size;
        Batch {
            path: transmit.path,
            priority: transmit.priority,
            flow: transmit.flow,
            layout: match &self.header {
                None => Layout::Datagrams { segment_size },
                Some(header) => Layout::Segmented { header, payload_max: segment_size },
            },
            bytes: if is_whole { self } else { &self[from..] },
            unsealed: &self.unsealed,
            association: transmit.association,
        }
    }

    /// The header of all datagrams, if the bytes are one stream that the carrier cuts.
    #[must_use]
    pub fn header(&self) -> Option<&[u8; SEGMENT_HEADER_BYTES]> {
        self.header.as_ref()
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
        self.unsealed.clear();
        self.header = None;
    }

    /// Makes all bytes one stream: the carrier cuts it, and copies the header before each part.
    pub(crate) fn make_stream(&mut self, header: [u8; SEGMENT_HEADER_BYTES]) {
        self.header = Some(header);
    }

    /// Takes back all bytes but the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
        let is_kept = |record: &Unsealed| (record.at as usize) < length;
        let kept = self.unsealed.partition_point(is_kept);
        self.unsealed.truncate(kept);
    }

    /// Notes that the carrier seals the last `length` bytes, which are one record: its header, its
    /// plaintext, and room for the tag.
    pub(crate) fn leave_unsealed(&mut self, length: usize, key: KeyHandle, number: u64) {
        let place = self.length - length..self.length;
        self.unsealed.push(Unsealed::of_record(place, key, number));
    }

    /// The next `count` bytes, each of which must be written or taken back: before that they are
    /// bytes of former batches.
    pub(crate) fn grow(&mut self, count: usize) -> &mut [u8] {
        let start = self.length;
        self.length += count;
        if self.bytes.len() < self.length {
            self.bytes.resize(self.length, 0);
        }
        &mut self.bytes[start..self.length]
    }

    /// The next `count` bytes, set to zero.
    pub(crate) fn grow_zeroed(&mut self, count: usize) -> &mut [u8] {
        let bytes = self.grow(count);
        bytes.fill(0);
        bytes
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.grow(bytes.len()).copy_from_slice(bytes);
    }
}

impl Deref for TransmitBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl DerefMut for TransmitBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_carrier::Path;

    #[test]
    fn nothing_of_a_former_batch_is_in_the_next_one() {
        let mut buffer = TransmitBuffer::default();
        buffer.append(&[7; 10]);
        buffer.truncate(4);
        assert_eq!(buffer[..], [7; 4]);
        buffer.clear();
        buffer.grow_zeroed(6)[1] = 1;
        buffer.append(b"ab");
        assert_eq!(buffer[..], [0, 1, 0, 0, 0, 0, b'a', b'b']);
    }

    #[test]
    fn a_record_that_was_taken_back_is_not_left_to_the_carrier() {
        let mut buffer = TransmitBuffer::default();
        let places = |buffer: &TransmitBuffer| -> Vec<_> {
            let records = buffer.unsealed.iter();
            records.map(|record| (record.at, record.length)).collect()
        };
        for length in [30, 25] {
            buffer.grow(length);
            buffer.leave_unsealed(length, KeyHandle(1), 7);
        }
        assert_eq!(places(&buffer), [(5, 9), (35, 4)]);
        buffer.truncate(30);
        assert_eq!(places(&buffer), [(5, 9)]);
        buffer.clear();
        assert!(buffer.unsealed.is_empty());
    }

    #[test]
    fn a_batch_has_the_records_that_the_carrier_seals_and_the_header_of_its_stream() {
        let transmit = Transmit::new(Path::to("192.0.2.7:9".parse().unwrap()), 20);
        let mut buffer = TransmitBuffer::default();
        buffer.append(&[7; 30]);
        let rest = buffer.batch(&transmit, 20);
        assert_eq!(rest, Batch::datagrams(transmit.path, 20, &[7; 10]));
        buffer.leave_unsealed(30, KeyHandle(1), 7);
        buffer.make_stream([1; SEGMENT_HEADER_BYTES]);
        let batch = buffer.batch(&transmit, 0);
        let layout = Layout::Segmented { header: &[1; SEGMENT_HEADER_BYTES], payload_max: 20 };
        assert_eq!((batch.layout, batch.unsealed.len()), (layout, 1));
        buffer.clear();
        assert!(buffer.header().is_none());
    }
}
