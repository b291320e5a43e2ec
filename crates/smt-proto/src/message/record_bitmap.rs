// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which records of a message have opened.
//!
//! One bit each, looked at 64 at a time: a question about a message of 131,072 records of which one
//! is missing must not cost a look at each of them.

use alloc::vec::Vec;
use core::ops::Range;

use crate::collections::step_count;

/// A set of record indices.
#[derive(Debug, Default)]
pub(crate) struct RecordBitmap {
    words: Vec<u64>,
    len: u32,
    /// All records below this index are in the set.
    prefix: u32,
}

impl RecordBitmap {
    /// Adds a record, which was not in the set.
    pub(crate) fn insert(&mut self, index: u32) {
        self.len += 1;
        // In order no bits are needed; a message of one record never allocates.
        if self.words.is_empty() && index == self.prefix {
            self.prefix += 1;
            return;
        }
        let word = index as usize / WORD as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (index % WORD);
        if index == self.prefix {
            self.prefix = self.find(false, index..u32::MAX);
        }
    }

    pub(crate) fn contains(&self, index: u32) -> bool {
        index < self.prefix || self.word(index / WORD) >> (index % WORD) & 1 == 1
    }

    /// The lowest index that is not in the set.
    pub(crate) fn prefix(&self) -> u32 {
        self.prefix
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// The runs of records below `end` that are not in the set.
    pub(crate) fn missing(&self, end: u32) -> impl Iterator<Item = Range<u32>> + '_ {
        let mut from = self.prefix;
        core::iter::from_fn(move || {
            let start = self.find(false, from..end);
            from = self.find(true, start..end);
            (start < from).then_some(start..from)
        })
    }

    /// The first index of a range that is in the set, or the first that is not; else the range's
    /// end.
    fn find(&self, is_in: bool, range: Range<u32>) -> u32 {
        let mut from = range.start;
        while from < range.end {
            if from / WORD >= self.words.len() as u32 {
                return if is_in { range.end } else { from };
            }
            let word = self.word(from / WORD);
            let wanted = if is_in { word } else { !word } & u64::MAX << (from % WORD);
            if wanted != 0 {
                let found = from / WORD * WORD + wanted.trailing_zeros();
                return found.min(range.end);
            }
            from = (from / WORD + 1) * WORD;
        }
        range.end
    }

    fn word(&self, at: u32) -> u64 {
        step_count::step();
        let word = self.words.get(at as usize).copied().unwrap_or(0);
        // Records that came in order, before there were bits, have none.
        let below = self.prefix.saturating_sub(at * WORD);
        word | 1u64.checked_shl(below).map_or(u64::MAX, |bit| bit - 1)
    }
}

/// Bits in a word.
const WORD: u32 = u64::BITS;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::step_count::steps_of;
    use proptest::prelude::*;

    #[test]
    fn a_record_that_is_missing_among_many_is_found_in_few_steps() {
        let mut set = RecordBitmap::default();
        (1..131_072).for_each(|index| set.insert(index));
        let (steps, missing) = steps_of(|| set.missing(131_072).flatten().collect::<Vec<_>>());
        assert_eq!(missing, [0]);
        assert!(steps <= 131_072 / 64 + 3, "{steps} steps");
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_table(order in Just((0..200u32).collect::<Vec<_>>()).prop_shuffle(), count in 0..200usize,
            in_order in 0..200u32) {
            let mut set = RecordBitmap::default();
            let mut table = [false; 200];
            let inserted = (0..in_order).chain(order.iter().copied().take(count).filter(|index| *index >= in_order));
            for index in inserted {
                set.insert(index);
                table[index as usize] = true;
            }
            let mut from_missing = [true; 200];
            for run in set.missing(200) {
                from_missing[run.start as usize..run.end as usize].fill(false);
            }
            prop_assert_eq!(table, from_missing);
            prop_assert!((0..200).all(|index| set.contains(index) == table[index as usize]));
            prop_assert_eq!(set.len() as usize, table.iter().filter(|is_in| **is_in).count());
            prop_assert_eq!(set.prefix() as usize, table.iter().take_while(|is_in| **is_in).count());
        }
    }
}
