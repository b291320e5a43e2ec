// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A table by number: constant-time look-up, and iteration in an order that does not depend on
//! hashing.
//!
//! Entries are dense, so that iteration costs what there is now, not what there once was. Few
//! entries are searched one by one; for many an index tells the place of a number. The index is
//! hashed with a salt that only this host knows: an authenticated peer chooses ids too.

mod index;

use alloc::vec::Vec;

use index::Index;

pub(crate) use index::Salt;

/// A table from numbers (ids, indices) to values.
#[derive(Debug)]
pub(crate) struct IdMap<T> {
    entries: Vec<(u64, T)>,
    /// The place of each entry. The index is filled once there were many entries, until none is
    /// left or the session hibernates; else it is empty.
    index: Index,
}

impl<T> IdMap<T> {
    pub(crate) fn new(salt: Salt) -> Self {
        Self { entries: Vec::new(), index: Index::new(salt) }
    }

    /// Adds a value. The number must be free.
    pub(crate) fn insert(&mut self, number: u64, value: T) {
        let Err(free) = self.search(number) else {
            panic!("number {number} is taken");
        };
        if self.entries.capacity() == 0 {
            // Most sessions have one message at a time, and there are many sessions.
            self.entries.reserve_exact(1);
        }
        self.entries.push((number, value));
        if self.index.is_on() {
            self.index.enter_last(&self.entries, free);
        } else if self.entries.len() > LOOKED_THROUGH {
            self.index.enter_all(&self.entries);
        }
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let place = self.place(number)?;
        Some(&mut self.entries[place].1)
    }

    /// Takes a value out; the last entry takes its place.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let (slot, place) = self.search(number).ok()?;
        self.forget(slot, place);
        let (_, value) = self.entries.swap_remove(place);
        self.shrink();
        Some(value)
    }

    /// Takes the wanted part of a value, and then drops the value in place: values are large, and
    /// are not moved for that. A value of which nothing is wanted stays.
    pub(crate) fn take<R>(
        &mut self,
        number: u64,
        wanted: impl FnOnce(&mut T) -> Option<R>,
    ) -> Option<R> {
        let (slot, place) = self.search(number).ok()?;
        let taken = wanted(&mut self.entries[place].1)?;
        self.forget(slot, place);
        if let Some(last) = self.entries.pop()
            && place < self.entries.len()
        {
            self.entries[place] = last;
        }
        self.shrink();
        Some(taken)
    }

    /// The entry of this place is about to leave, and the last one to take it.
    fn forget(&mut self, slot: usize, place: usize) {
        if self.index.is_on() {
            self.index.forget(&self.entries, slot, place);
        }
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        let place = self.place(number)?;
        Some(&self.entries[place].1)
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.place(number).is_some()
    }

    fn place(&self, number: u64) -> Option<usize> {
        let (_, place) = self.search(number).ok()?;
        Some(place)
    }

    /// The slot of a number in the index, and its place; else the slot that is free for it. A small
    /// table has no slots. The function is inlined because it returns three words, most of which
    /// are not read (3,945 to 3,773 instructions an RPC).
    #[inline(always)]
    fn search(&self, number: u64) -> Result<(usize, usize), usize> {
        if self.index.is_on() {
            return self.index.search(&self.entries, number);
        }
        let place = self.entries.iter().position(|(one, _)| *one == number);
        place.map(|place| (0, place)).ok_or(0)
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
        self.entries.iter_mut().map(|(number, value)| (*number, value))
    }

    /// Takes all entries out, in the same order.
    pub(crate) fn drain(&mut self) -> Vec<(u64, T)> {
        self.index.shrink_to_fit();
        core::mem::take(&mut self.entries)
    }

    /// Gives back all memory that is not needed now.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
        self.index.shrink_to_fit();
        if self.entries.len() > LOOKED_THROUGH {
            self.index.enter_all(&self.entries);
        }
    }

    /// Gives back memory after a burst.
    fn shrink(&mut self) {
        let (held, room) = (self.entries.len(), self.entries.capacity());
        if room > ROOM_KEPT && held < room / 4 {
            self.entries.shrink_to(room / 2);
            self.index.shrink_to_fit();
            self.index.enter_all(&self.entries);
        }
        if held == 0 {
            self.index.turn_off();
        }
    }
}

/// Most entries that are searched one by one: the search takes as long as a look-up in the index,
/// and needs no memory for it.
const LOOKED_THROUGH: usize = 8;
/// Entries whose memory is kept: messages in progress come and go by hundreds.
const ROOM_KEPT: usize = 256;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::collections::btree_map::Entry;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn the_last_entry_fills_the_gap_of_one_that_goes() {
        let mut table = IdMap::new(Salt(7));
        for number in [30u64, 10, 20] {
            table.insert(number, number * 2);
        }
        assert_eq!(table.remove(10), Some(20));
        table.insert(40, 80);
        assert_eq!(table.iter().map(|(number, _)| number).collect::<Vec<_>>(), [30, 20, 40]);
        assert_eq!(table.get(10), None);
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn a_burst_leaves_neither_gaps_nor_room_behind() {
        let mut table = IdMap::new(Salt(7));
        (0..60_000u64).for_each(|number| table.insert(number, number));
        (1..60_000).for_each(|number| assert_eq!(table.remove(number), Some(number)));
        assert_eq!(table.iter().collect::<Vec<_>>(), [(0, &0)]);
        assert_eq!(table.entries.len(), 1);
        assert!(table.entries.capacity() <= 2 * ROOM_KEPT);
        assert!(table.index.slots() <= 4 * ROOM_KEPT);
        assert_eq!(table.get(0), Some(&0));
    }

    #[test]
    fn few_need_no_index_and_many_are_found_by_it() {
        let mut table = IdMap::new(Salt(7));
        table.insert(0, 0);
        assert_eq!(table.entries.capacity(), 1);
        for number in 1..100u64 {
            table.insert(number * 7, number);
            assert_eq!(table.index.is_on(), table.len() > LOOKED_THROUGH);
            assert!((0..=number).all(|number| table.get(number * 7) == Some(&number)));
        }
        for number in 0..98 {
            assert_eq!(table.remove(number * 7), Some(number));
            assert!(!table.contains(number * 7));
            assert!((number + 1..100).all(|number| table.contains(number * 7)));
        }
        table.shrink_to_fit();
        assert_eq!((table.get(98 * 7), table.get(99 * 7)), (Some(&98), Some(&99)));
        assert!(!table.index.is_on());
    }

    #[test]
    #[should_panic(expected = "is taken")]
    fn a_number_is_taken_once() {
        let mut table = IdMap::new(Salt(7));
        table.insert(1, ());
        table.insert(1, ());
    }

    #[test]
    #[should_panic(expected = "is taken")]
    fn a_number_is_taken_once_among_many() {
        let mut table = IdMap::new(Salt(7));
        (0..=20).for_each(|number| table.insert(number % 20, ()));
    }

    /// Numbers that are searched for from the same few slots, among dense ones: gaps that close
    /// move others.
    #[test]
    fn it_holds_what_a_plain_map_holds() {
        for seed in 0..64u64 {
            let (mut table, mut plain) = (IdMap::new(Salt(7)), BTreeMap::new());
            let mut state = seed;
            for step in 0..2_000u64 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let any = state >> 33;
                let number = match seed % 3 {
                    0 => any % 100,
                    1 => (any % 100) << 40,
                    _ => any % 50 + ((any % 2) << 50),
                };
                // Grows for a while, then shrinks, and again.
                if any % 8 < 3 + step / 500 % 2 * 2 {
                    assert_eq!(table.remove(number), plain.remove(&number), "seed {seed}");
                } else if let Entry::Vacant(free) = plain.entry(number) {
                    table.insert(number, step);
                    free.insert(step);
                }
                assert_eq!(table.get(number), plain.get(&number), "seed {seed}");
            }
            let mut entries: Vec<_> = table.iter().collect();
            entries.sort_unstable();
            assert!(entries.iter().map(|(number, value)| (number, *value)).eq(plain.iter()));
            assert!(plain.iter().all(|(number, value)| table.get(*number) == Some(value)));
        }
    }

    #[test]
    fn take_returns_the_wanted_part_of_a_value_and_drops_the_rest() {
        let mut table = IdMap::new(Salt(7));
        for count in [3u64, 30] {
            (0..count).for_each(|number| table.insert(number, (Rc::new(number), number)));
            let kept = table.get(1).map(|(held, _)| Rc::clone(held)).unwrap();
            let taken = table.take(1, |(held, number)| (**held == *number).then_some(*number));
            assert_eq!((taken, Rc::strong_count(&kept)), (Some(1), 1));
            assert_eq!(table.take(2, |_| None::<()>), None, "nothing is wanted");
            assert!(table.contains(2) && !table.contains(1));
            assert_eq!(table.take(1, |_| Some(())), None, "it is gone");
            assert_eq!(table.drain().len() as u64, count - 1);
        }
    }
}
