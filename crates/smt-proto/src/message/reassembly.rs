// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The records of a message that have come in part, by index and the epoch that their packets
//! claim.
//!
//! Forged packets can make many of them, so totals are kept up to date, not summed up when asked
//! for.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Range as Span, RangeInclusive};

use crate::collections::byte_ranges::ByteRange;
use crate::message::partial_record::PartialRecord;

/// A record of which a part has come, as its packet claims it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ClaimedRecord {
    pub(crate) index: u32,
    pub(crate) epoch: u8,
}

/// Records that have come in part.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    by_claim: BTreeMap<ClaimedRecord, PartialRecord>,
    /// Bytes that they hold.
    bytes: usize,
}

impl Reassembly {
    /// The record of this claim, of `length` bytes.
    pub(crate) fn entry(
        &mut self,
        claimed: ClaimedRecord,
        length: usize,
        recycled: &mut Vec<u8>,
    ) -> &mut PartialRecord {
        self.by_claim.entry(claimed).or_insert_with(|| {
            let partial = PartialRecord::new(length, recycled);
            self.bytes += partial.memory();
            partial
        })
    }

    pub(crate) fn get_mut(&mut self, claimed: ClaimedRecord) -> Option<&mut PartialRecord> {
        self.by_claim.get_mut(&claimed)
    }

    /// Drops the parts of a record, under any epoch.
    pub(crate) fn remove(&mut self, index: u32) {
        while let Some((claimed, _)) = self.by_claim.range(of_record(index)).next() {
            let claimed = *claimed;
            if let Some(partial) = self.by_claim.remove(&claimed) {
                self.bytes -= partial.memory();
            }
        }
    }

    /// Bytes that all of them hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first of these records of which a part has come.
    pub(crate) fn first_of(&self, records: Span<u32>) -> Option<u32> {
        let [first, end] =
            [records.start, records.end].map(|index| ClaimedRecord { index, epoch: 0 });
        let mut claims = self.by_claim.range(first..end);
        claims.next().map(|(claimed, _)| claimed.index)
    }

    /// The missing parts of a record, at most `most`. If parts came under two epochs, one of them
    /// is forged and all of the record is missing.
    pub(crate) fn gaps(&self, index: u32, length: u32, most: usize) -> Vec<ByteRange> {
        let mut held = self.by_claim.range(of_record(index));
        match (held.next(), held.next()) {
            (Some((_, only)), None) if !only.has_failed => {
                only.filled.gaps(length).take(most).collect()
            }
            _ => vec![ByteRange { start: 0, end: length }],
        }
    }
}

/// The claims of all partial records of an index.
fn of_record(index: u32) -> RangeInclusive<ClaimedRecord> {
    let [first, last] = [0, u8::MAX].map(|epoch| ClaimedRecord { index, epoch });
    first..=last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::step_count::steps_of;

    /// The record of this index and epoch, of 86 bytes.
    fn part(reassembly: &mut Reassembly, index: u32, epoch: u8) -> &mut PartialRecord {
        reassembly.entry(ClaimedRecord { index, epoch }, 86, &mut Vec::new())
    }

    #[test]
    fn the_bytes_of_many_are_known_without_a_look_at_each() {
        let mut reassembly = Reassembly::default();
        for index in 0..10_000 {
            for epoch in [0, 1] {
                part(&mut reassembly, index, epoch).write(7, &[1]);
            }
        }
        let (steps, bytes) = steps_of(|| reassembly.bytes());
        assert_eq!((steps, bytes), (0, 2 * 10_000 * 86));
        (0..10_000).for_each(|index| reassembly.remove(index));
        assert_eq!(reassembly.bytes(), 0);
    }

    #[test]
    fn a_record_that_came_under_two_epochs_is_missing_wholly() {
        let mut reassembly = Reassembly::default();
        part(&mut reassembly, 3, 0).write(10, &[1; 20]);
        let gap = |start, end| ByteRange { start, end };
        assert_eq!(reassembly.gaps(3, 86, 9), [gap(0, 10), gap(30, 86)]);
        assert_eq!(reassembly.gaps(3, 86, 1), [gap(0, 10)]);
        part(&mut reassembly, 3, 1).write(10, &[1; 20]);
        assert_eq!(reassembly.gaps(3, 86, 9), [gap(0, 86)]);
        assert_eq!(reassembly.first_of(0..3), None);
        assert_eq!(reassembly.first_of(1..9), Some(3));
    }
}
