// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A small set of byte ranges: the parts of a record that have come, or the bytes that are to be
//! sent again.
//!
//! The ranges are sorted and disjoint; neighbours are merged. The caller's use bounds their number:
//! at most one range per packet.
use alloc::vec::Vec;

/// A half-open range of offsets in a record stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ByteRange {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// A set of ranges.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ByteRanges(Vec<ByteRange>);

impl ByteRanges {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a range; tells whether any of it is new.
    pub(crate) fn insert(&mut self, range: ByteRange) -> bool {
        if range.start >= range.end {
            return false;
        }
        // The common case: bytes come in order and extend the last range.
        if let Some(last) = self.0.last_mut()
            && last.start <= range.start
            && range.start <= last.end
        {
            let grows = range.end > last.end;
            last.end = last.end.max(range.end);
            return grows;
        }
        let from = self.0.partition_point(|old| old.end < range.start);
        let to = self.0.partition_point(|old| old.start <= range.end);
        let Some(overlapped) = self.0.get(from..to).filter(|old| !old.is_empty()) else {
            self.0.insert(from, range);
            return true;
        };
        let merged = ByteRange {
            start: range.start.min(overlapped[0].start),
            end: range.end.max(overlapped[overlapped.len() - 1].end),
        };
        let grows = overlapped.len() > 1 || merged != overlapped[0];
        self.0.splice(from..to, [merged]);
        grows
    }

    /// Whether a range overlaps or adjoins one of the set: then adding it makes no further one.
    pub(crate) fn touches(&self, range: ByteRange) -> bool {
        let from = self.0.partition_point(|old| old.end < range.start);
        self.0.get(from).is_some_and(|old| old.start <= range.end)
    }

    /// Takes up to `length` bytes from the lowest range.
    pub(crate) fn take_first(&mut self, length: u32) -> Option<ByteRange> {
        let first = self.0.first_mut()?;
        let taken = ByteRange {
            start: first.start,
            end: first.end.min(first.start.saturating_add(length)),
        };
        first.start = taken.end;
        if first.start == first.end {
            self.0.remove(0);
        }
        Some(taken)
    }

    pub(crate) fn first(&self) -> Option<ByteRange> {
        self.0.first().copied()
    }

    /// Whether the set is exactly `0..length`.
    pub(crate) fn is_whole(&self, length: u32) -> bool {
        matches!(self.0.as_slice(), [ByteRange { start: 0, end }] if *end == length)
    }

    /// The parts of `0..length` that are not in the set.
    pub(crate) fn gaps(&self, length: u32) -> impl Iterator<Item = ByteRange> + '_ {
        let starts = core::iter::once(0).chain(self.0.iter().map(|range| range.end));
        let ends = self.0.iter().map(|range| range.start).chain(core::iter::once(length));
        starts
            .zip(ends)
            .map(|(start, end)| ByteRange { start, end })
            .filter(|gap| gap.start < gap.end)
    }

    /// Ranges, of which no two touch.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(start: u32, end: u32) -> ByteRange {
        ByteRange { start, end }
    }

    #[test]
    fn gaps_are_what_insert_left_out() {
        let mut ranges = ByteRanges::new();
        assert!(ranges.insert(range(10, 20)));
        assert!(ranges.insert(range(30, 40)));
        assert!(!ranges.insert(range(12, 18)));
        assert_eq!(
            ranges.gaps(50).collect::<Vec<_>>(),
            [range(0, 10), range(20, 30), range(40, 50)]
        );
        assert!(ranges.insert(range(0, 50)));
        assert!(ranges.is_whole(50));
    }

    #[test]
    fn take_first_takes_in_order_and_in_part() {
        let mut ranges = ByteRanges::new();
        ranges.insert(range(5, 9));
        ranges.insert(range(0, 2));
        assert_eq!(ranges.take_first(10), Some(range(0, 2)));
        assert_eq!(ranges.take_first(3), Some(range(5, 8)));
        assert_eq!(ranges.take_first(3), Some(range(8, 9)));
        assert_eq!(ranges.take_first(3), None);
    }

    proptest! {
        #[test]
        fn insert_agrees_with_a_bitmap(inserts in proptest::collection::vec((0u32..100, 0u32..30), 0..40)) {
            let mut ranges = ByteRanges::new();
            let mut bitmap = [false; 130];
            for (start, length) in inserts {
                let part = &mut bitmap[start as usize..(start + length) as usize];
                let grows = part.contains(&false);
                part.fill(true);
                prop_assert_eq!(ranges.insert(range(start, start + length)), grows);
            }
            let mut from_gaps = [true; 130];
            for gap in ranges.gaps(130) {
                from_gaps[gap.start as usize..gap.end as usize].fill(false);
            }
            prop_assert_eq!(bitmap, from_gaps);
            prop_assert!(ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
