// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the entries of a table stand, by their numbers: open addressing, linear probing.
//!
//! A slot holds an entry's place and one, zero is free. The number itself is read in the entry,
//! which a look-up reads next anyway. At most half of the slots are taken, and an entry that leaves
//! closes its gap: a search ends at the first free slot, mostly the first or second.
use alloc::boxed::Box;
use alloc::vec;

/// The salt of the hash, which only this host knows. A peer that knew it could choose numbers whose
/// searches all begin at the same slots.
#[derive(Clone, Copy)]
pub(crate) struct Salt(pub(crate) u32);

/// Slots of a table's entries.
#[derive(Debug)]
pub(super) struct Index {
    /// A power of two of them, or none.
    slots: Box<[u32]>,
    /// Whether all entries are in it; else none is.
    is_on: bool,
    salt: Salt,
}

impl Index {
    pub(super) fn new(salt: Salt) -> Self {
        Self { slots: Box::default(), is_on: false, salt }
    }

    /// Turns it off, and gives its room back.
    pub(super) fn shrink_to_fit(&mut self) {
        *self = Self::new(self.salt);
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Turns it off, once nothing is in it. Its room stays.
    pub(super) fn turn_off(&mut self) {
        self.is_on = false;
    }

    /// Turns it on, with all entries.
    pub(super) fn enter_all<T>(&mut self, entries: &[(u64, T)]) {
        let needed = (2 * entries.len()).next_power_of_two();
        if self.slots.len() < needed {
            self.slots = vec![0; needed].into_boxed_slice();
        } else {
            self.slots.fill(0);
        }
        self.is_on = true;
        for (place, (number, _)) in entries.iter().enumerate() {
            self.enter(*number, place);
        }
    }

    /// The last entry is new; its number was searched for, and this slot was free.
    pub(super) fn enter_last<T>(&mut self, entries: &[(u64, T)], free: usize) {
        if self.slots.len() < 2 * entries.len() {
            self.enter_all(entries);
        } else {
            self.slots[free] = entries.len() as u32;
        }
    }

    fn enter(&mut self, number: u64, place: usize) {
        let mut slot = self.first_slot(number);
        while self.slots[slot] != 0 {
            slot = self.after(slot);
        }
        self.slots[slot] = place as u32 + 1;
    }

    /// Where a number is: its slot, and its place among the entries. Else the free slot where the
    /// search has ended.
    #[inline(always)]
    pub(super) fn search<T>(
        &self,
        entries: &[(u64, T)],
        number: u64,
    ) -> Result<(usize, usize), usize> {
        let mut slot = self.first_slot(number);
        loop {
            let place = (self.slots[slot] as usize).checked_sub(1).ok_or(slot)?;
            if entries[place].0 == number {
                return Ok((slot, place));
            }
            slot = self.after(slot);
        }
    }

    /// The entry that was found in this slot and place is about to leave, and the last one to take
    /// its place.
    pub(super) fn forget<T>(&mut self, entries: &[(u64, T)], slot: usize, place: usize) {
        self.close_gap(entries, slot);
        let last = entries.len() - 1;
        if place < last {
            let slot = self.slot_of(entries[last].0, last);
            self.slots[slot] = place as u32 + 1;
        }
    }

    /// The slot of an entry that is in it.
    fn slot_of(&self, number: u64, place: usize) -> usize {
        let mut slot = self.first_slot(number);
        while self.slots[slot] as usize != place + 1 {
            slot = self.after(slot);
        }
        slot
    }

    /// Frees a slot. Those that were searched for past it move up, each no further than where its
    /// search begins.
    fn close_gap<T>(&mut self, entries: &[(u64, T)], slot: usize) {
        let (mut gap, mut slot) = (slot, slot);
        loop {
            slot = self.after(slot);
            let Some(place) = (self.slots[slot] as usize).checked_sub(1) else {
                break;
            };
            let searched = self.steps(self.first_slot(entries[place].0), slot);
            if searched >= self.steps(gap, slot) {
                self.slots[gap] = self.slots[slot];
                gap = slot;
            }
        }
        self.slots[gap] = 0;
    }

    /// A product of which every bit depends on all of the number, and in a way that the salt
    /// decides.
    fn first_slot(&self, number: u64) -> usize {
        let salt = u64::from(self.salt.0) << 32 | u64::from(self.salt.0);
        let product = u128::from(number ^ salt) * u128::from(0x9E37_79B9_7F4A_7C15 ^ salt);
        ((product >> 64) as u64 ^ product as u64) as usize & (self.slots.len() - 1)
    }

    fn after(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    fn steps(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.slots.len() - 1)
    }

    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }
}

impl core::fmt::Debug for Salt {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Salt(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn index_of(entries: &[(u64, ())], salt: u32) -> Index {
        let mut index = Index::new(Salt(salt));
        index.enter_all(entries);
        index
    }

    /// The longest search for one of these.
    fn longest(index: &Index, entries: &[(u64, ())]) -> usize {
        let searches = entries.iter().enumerate().map(|(place, (number, ()))| {
            index.steps(index.first_slot(*number), index.slot_of(*number, place))
        });
        searches.max().unwrap_or(0)
    }

    #[test]
    fn dense_numbers_are_found_soon_whatever_the_salt() {
        for (salt, step) in (0..200).flat_map(|salt| [1, 2, 512].map(|step| (salt * 77_777, step)))
        {
            let entries: Vec<_> =
                (0..1_000).map(|number| (1_000_000 + number * step, ())).collect();
            let longest = longest(&index_of(&entries, salt), &entries);
            assert!(longest < 100, "salt {salt}, step {step}: {longest}");
        }
    }

    #[test]
    fn a_peer_without_the_salt_cannot_choose_numbers_that_are_slow_to_find() {
        let known = index_of(&(0..1_000).map(|number| (number, ())).collect::<Vec<_>>(), 5);
        let together = |number: &u64| known.first_slot(*number) < 16;
        let chosen: Vec<_> =
            (0..).filter(together).take(1_000).map(|number| (number, ())).collect();
        assert!(longest(&index_of(&chosen, 5), &chosen) > 900, "the salt is known");
        for salt in (1..500u32).map(|number| number.wrapping_mul(0x9E37_79B9)) {
            let longest = longest(&index_of(&chosen, salt), &chosen);
            assert!(longest < 100, "salt {salt}: {longest}");
        }
    }
}
