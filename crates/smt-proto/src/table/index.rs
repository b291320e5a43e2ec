// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the entries of a table stand, by their numbers: open addressing, linear probing.
//!
//! A slot holds an entry's place and one, zero is free. The number itself is read in the entry, which whoever looks it
//! up reads next. At most half of the slots are taken, and an entry that leaves closes its gap: a search ends at the
//! first free slot, mostly the first or second for numbers that are dense.

/// Slots of a table's entries.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// A power of two of them, or none.
    slots: Box<[u32]>,
    /// Whether all entries are in it; else none is.
    is_on: bool,
}

impl Index {
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

    /// The last entry is new.
    pub(super) fn enter_last<T>(&mut self, entries: &[(u64, T)]) {
        if self.slots.len() < 2 * entries.len() {
            self.enter_all(entries);
        } else if let Some((number, _)) = entries.last() {
            self.enter(*number, entries.len() - 1);
        }
    }

    fn enter(&mut self, number: u64, place: usize) {
        let mut slot = self.first_slot(number);
        while self.slots[slot] != 0 {
            slot = self.after(slot);
        }
        self.slots[slot] = place as u32 + 1;
    }

    /// The place of a number.
    pub(super) fn find<T>(&self, entries: &[(u64, T)], number: u64) -> Option<usize> {
        let mut slot = self.first_slot(number);
        loop {
            let place = (self.slots[slot] as usize).checked_sub(1)?;
            if entries[place].0 == number {
                return Some(place);
            }
            slot = self.after(slot);
        }
    }

    /// An entry is about to leave, and the last one to take its place.
    pub(super) fn forget<T>(&mut self, entries: &[(u64, T)], place: usize) {
        self.close_gap(entries, self.slot_of(entries[place].0, place));
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

    /// Frees a slot. Those that were searched for past it move up, each no further than where its search begins.
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

    /// Fibonacci hashing: one multiplication spreads dense numbers evenly over the upper half of its product.
    fn first_slot(&self, number: u64) -> usize {
        let product = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (product >> 32) as usize & (self.slots.len() - 1)
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
