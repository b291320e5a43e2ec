// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A table by number: constant-time look-up, and iteration in an order that does not depend on hashing.
//!
//! Entries stand without gaps, so that a look at all of them costs what there is now, not what there once was. Few are
//! looked through; of many a hash map tells the place of a number. The hash is fixed, which is safe: numbers enter only
//! after they were issued here or came out of an authenticated record.

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::vec::Vec;

/// A table from numbers (ids, indices) to values.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Vec<(u64, T)>,
    /// Places by number: of all entries once there were many, until none is left or it rests. Else empty.
    by_number: HashMap<u64, u32, BuildHasherDefault<NumberHasher>>,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            by_number: HashMap::default(),
        }
    }

    /// Adds a value. The number must be free.
    pub(crate) fn insert(&mut self, number: u64, value: T) {
        let place = u32::try_from(self.entries.len()).expect("tables are bounded far below 2^32");
        let is_indexed = self.is_indexed();
        let is_taken = match is_indexed {
            true => self.by_number.insert(number, place).is_some(),
            false => self.place(number).is_some(),
        };
        assert!(!is_taken, "number {number} is taken");
        if self.entries.capacity() == 0 {
            // Most sessions have one message at a time, and there are many sessions.
            self.entries.reserve_exact(1);
        }
        self.entries.push((number, value));
        if !is_indexed && self.entries.len() > LOOKED_THROUGH {
            let numbers = self.entries.iter().map(|(number, _)| *number);
            self.by_number.extend(numbers.zip(0..));
        }
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.place(number)?;
        Some(&mut self.entries[place].1)
    }

    /// Takes a value out; the last entry takes its place.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        self.remove_if(number, |_| true)
    }

    /// Takes a value out if it is such a one; the last entry takes its place.
    pub(crate) fn remove_if(&mut self, number: u64, is_such: impl FnOnce(&T) -> bool) -> Option<T> {
        if !self.is_indexed() {
            let place = self.place(number)?;
            let is_gone = is_such(&self.entries[place].1);
            return is_gone.then(|| self.entries.swap_remove(place).1);
        }
        let Entry::Occupied(entry) = self.by_number.entry(number) else {
            return None;
        };
        let place = *entry.get();
        if !is_such(&self.entries[place as usize].1) {
            return None;
        }
        entry.remove();
        let (_, value) = self.entries.swap_remove(place as usize);
        if let Some((moved, _)) = self.entries.get(place as usize) {
            self.by_number.insert(*moved, place);
        }
        self.shrink();
        Some(value)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        let place = self.place(number)?;
        Some(&self.entries[place].1)
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.place(number).is_some()
    }

    fn is_indexed(&self) -> bool {
        !self.by_number.is_empty()
    }

    fn place(&self, number: u64) -> Option<usize> {
        if self.is_indexed() {
            return self.by_number.get(&number).map(|place| *place as usize);
        }
        self.entries.iter().position(|(one, _)| *one == number)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries, in an order that follows from insertions and removals alone.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.entries.iter().map(|(number, value)| (*number, value))
    }

    /// All entries, to change, in the same order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.entries
            .iter_mut()
            .map(|(number, value)| (*number, value))
    }

    /// Takes all entries out, in the same order.
    pub(crate) fn drain(&mut self) -> Vec<(u64, T)> {
        self.by_number.clear();
        std::mem::take(&mut self.entries)
    }

    /// Gives all room back that is not needed now.
    pub(crate) fn rest(&mut self) {
        self.entries.shrink_to_fit();
        if self.entries.len() <= LOOKED_THROUGH {
            self.by_number.clear();
        }
        self.by_number.shrink_to_fit();
    }

    /// Gives room back after a burst.
    fn shrink(&mut self) {
        let room = self.entries.capacity();
        if room > ROOM_KEPT && self.entries.len() < room / 4 {
            self.entries.shrink_to(room / 2);
            self.by_number.shrink_to(room / 2);
        }
    }
}

/// Most entries that are looked through: as long as a look-up in the map takes, and without the map's memory.
const LOOKED_THROUGH: usize = 8;
/// Entries whose room is kept: what is in progress comes and goes by hundreds.
const ROOM_KEPT: usize = 256;

/// Fibonacci hashing: numbers are dense, so one multiplication spreads them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_fills_the_gap_of_one_that_goes() {
        let mut table = Table::new();
        for number in [30u64, 10, 20] {
            table.insert(number, number * 2);
        }
        assert_eq!(table.remove(10), Some(20));
        table.insert(40, 80);
        assert_eq!(
            table.iter().map(|(number, _)| number).collect::<Vec<_>>(),
            [30, 20, 40]
        );
        assert_eq!(table.get(10), None);
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn a_burst_leaves_neither_gaps_nor_room_behind() {
        let mut table = Table::new();
        (0..60_000u64).for_each(|number| table.insert(number, number));
        (1..60_000).for_each(|number| assert_eq!(table.remove(number), Some(number)));
        assert_eq!(table.iter().collect::<Vec<_>>(), [(0, &0)]);
        assert_eq!(table.entries.len(), 1);
        assert!(table.entries.capacity() <= 2 * ROOM_KEPT);
        assert!(table.by_number.capacity() <= 4 * ROOM_KEPT);
        assert_eq!(table.get(0), Some(&0));
    }

    #[test]
    fn few_need_no_map_and_many_are_found_by_it() {
        let mut table = Table::new();
        table.insert(0, 0);
        assert_eq!(table.entries.capacity(), 1);
        for number in 1..100u64 {
            table.insert(number * 7, number);
            assert_eq!(table.is_indexed(), table.len() > LOOKED_THROUGH);
            assert!((0..=number).all(|number| table.get(number * 7) == Some(&number)));
        }
        for number in 0..98 {
            assert_eq!(table.remove(number * 7), Some(number));
            assert!(!table.contains(number * 7));
            assert!((number + 1..100).all(|number| table.contains(number * 7)));
        }
        table.rest();
        assert_eq!(
            (table.get(98 * 7), table.get(99 * 7)),
            (Some(&98), Some(&99))
        );
        assert!(!table.is_indexed());
    }

    #[test]
    #[should_panic(expected = "is taken")]
    fn a_number_is_taken_once() {
        let mut table = Table::new();
        table.insert(1, ());
        table.insert(1, ());
    }

    #[test]
    #[should_panic(expected = "is taken")]
    fn a_number_is_taken_once_among_many() {
        let mut table = Table::new();
        (0..=20).for_each(|number| table.insert(number % 20, ()));
    }
}
