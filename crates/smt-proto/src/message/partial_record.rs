// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A record that comes in parts, none of which can be checked on its own (SPEC §5.4).
//!
//! Parts are put where they claim to belong until the record is whole; then it opens or not. The
//! next step when it does not, because some part was forged, is decided here. Not here: which
//! record and epoch it is (`incoming`).

use crate::collections::byte_ranges::{ByteRange, ByteRanges};
use crate::collections::step_count;
use alloc::vec::Vec;

/// A record of which parts have come, under one claimed epoch.
#[derive(Debug)]
pub(crate) struct PartialRecord {
    bytes: Vec<u8>,
    length: usize,
    /// Bytes of memory that `bytes` has.
    memory: usize,
    pub(crate) filled: ByteRanges,
    /// Whether it was whole and did not open.
    pub(crate) has_failed: bool,
    /// How often it was tried since then.
    tries: u32,
}

impl PartialRecord {
    /// A record of `length` bytes of which nothing has come. The memory of the last record is used
    /// again if it is about as long.
    pub(crate) fn new(length: usize, recycled: &mut Vec<u8>) -> Self {
        let mut bytes = match (length..=2 * length).contains(&recycled.capacity()) {
            true => core::mem::take(recycled),
            false => Vec::new(),
        };
        bytes.clear();
        bytes.reserve_exact(length);
        Self {
            memory: bytes.capacity(),
            bytes,
            length,
            filled: ByteRanges::new(),
            has_failed: false,
            tries: 0,
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        step_count::step();
        self.memory
    }

    /// The record, if all of it has come: to be opened, or else to be given back to
    /// [`Self::failed`].
    pub(crate) fn take_whole(&mut self) -> Option<Vec<u8>> {
        self.filled.is_whole(self.length as u32).then(|| core::mem::take(&mut self.bytes))
    }

    /// Writes a part: over the present bytes if those have failed, else only into the gaps.
    pub(crate) fn write(&mut self, within: u32, bytes: &[u8]) {
        let end = within + bytes.len() as u32;
        let part = ByteRange { start: within, end };
        if self.has_failed {
            self.bytes[within as usize..end as usize].copy_from_slice(bytes);
            return;
        }
        if self.filled.len() >= PIECES_MAX && !self.filled.touches(part) {
            // Only forged packets scatter a record like this: each would cost a look at all pieces.
            // A packet that comes again finds the pieces merged.
            return;
        }
        if within as usize == self.bytes.len() {
            // Parts come in order, as almost always: no byte is cleared to be written over.
            self.bytes.extend_from_slice(bytes);
            self.filled.insert(part);
            return;
        }
        if self.bytes.len() < end as usize {
            self.bytes.resize(end as usize, 0);
        }
        for gap in self.filled.gaps(self.length as u32) {
            let (from, to) = (gap.start.max(within), gap.end.min(end));
            if from < to {
                let source = &bytes[(from - within) as usize..(to - within) as usize];
                self.bytes[from as usize..to as usize].copy_from_slice(source);
            }
        }
        self.filled.insert(part);
    }

    /// Takes back a record that was whole and did not open: one of its packets was forged or
    /// damaged, and it is not known which (rule 3). All of the record is asked for again, and each
    /// packet that comes replaces the bytes that were there, with a try after each. If that does
    /// not help, the forger comes after the sender, not before: the record is put together anew,
    /// and the bytes that come first stay.
    pub(crate) fn failed(&mut self, record: Vec<u8>) {
        self.bytes = record;
        self.tries += 1;
        self.has_failed = self.tries <= TRIES_MAX;
        if !self.has_failed {
            self.filled.clear();
            self.tries = 0;
        }
    }
}

/// Openings of a record whose parts are being replaced: four times as many as the datagrams of a
/// record.
const TRIES_MAX: u32 = 64;
/// Pieces of a record with gaps between them: some nine times its datagrams.
const PIECES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_that_come_first_stay() {
        let mut partial = PartialRecord::new(6, &mut Vec::new());
        partial.write(2, b"cd");
        partial.write(0, b"XXXX");
        partial.write(3, b"XXX");
        assert_eq!(partial.bytes, b"XXcdXX");
        assert!(partial.filled.is_whole(6));
    }

    #[test]
    fn the_last_ones_memory_is_used_again_if_it_is_about_as_long() {
        let mut recycled = Vec::with_capacity(100);
        assert_eq!(PartialRecord::new(40, &mut recycled).memory(), 40);
        let mut partial = PartialRecord::new(60, &mut recycled);
        assert_eq!((partial.memory(), recycled.capacity()), (100, 0));
        partial.write(10, &[1; 50]);
        partial.write(0, &[2; 20]);
        let expected = [&[2; 10][..], &[1; 50]].concat();
        assert_eq!(partial.take_whole(), Some(expected));
    }

    fn fail(partial: &mut PartialRecord) {
        let record = partial.take_whole().expect("it is whole");
        partial.failed(record);
    }

    #[test]
    fn later_bytes_count_after_a_failure_and_then_again_the_first_ones() {
        let mut partial = PartialRecord::new(4, &mut Vec::new());
        partial.write(0, b"XXXX");
        fail(&mut partial);
        partial.write(1, b"bc");
        assert_eq!(partial.bytes, b"XbcX");
        assert!(partial.filled.is_whole(4), "it is tried after each part");
        for _ in 0..TRIES_MAX {
            fail(&mut partial);
        }
        partial.write(0, b"abc");
        partial.write(0, b"XXXX");
        assert_eq!(partial.bytes, b"abcX");
    }

    #[test]
    fn scattered_pieces_are_bounded_and_do_not_keep_the_record_out() {
        let length = 16_406;
        let mut partial = PartialRecord::new(length, &mut Vec::new());
        for within in (1..length as u32).step_by(2) {
            partial.write(within, &[0]);
            assert!(partial.filled.len() <= PIECES_MAX);
        }
        let genuine = vec![7; 1_400];
        for _ in 0..2 {
            for within in (0..length).step_by(1_400) {
                partial.write(within as u32, &genuine[..1_400.min(length - within)]);
            }
        }
        assert!(partial.take_whole().is_some());
    }
}
