// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A table by number: constant-time look-up, and iteration in an order that does not depend on hashing.
//!
//! Entries live in slots that are reused; a hash map leads from the number to the slot. The hash is fixed,
//! which is safe: numbers enter only after they were issued here or came out of an authenticated record.

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::HashMap;
use std::vec::Vec;

/// A table from numbers (ids, indices) to values.
#[derive(Debug)]
pub(crate) struct Table<T> {
    slots: Vec<Option<(u64, T)>>,
    free: Vec<u32>,
    by_number: HashMap<u64, u32, BuildHasherDefault<NumberHasher>>,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_number: HashMap::default(),
        }
    }

    /// Adds a value. The number must be free.
    pub(crate) fn insert(&mut self, number: u64, value: T) {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                u32::try_from(self.slots.len() - 1).expect("tables are bounded far below 2^32")
            }
        };
        self.slots[slot as usize] = Some((number, value));
        let before = self.by_number.insert(number, slot);
        assert!(before.is_none(), "number {number} is taken");
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let slot = *self.by_number.get(&number)?;
        self.slots[slot as usize].as_mut().map(|(_, value)| value)
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let slot = self.by_number.remove(&number)?;
        self.free.push(slot);
        self.slots[slot as usize].take().map(|(_, value)| value)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        let slot = *self.by_number.get(&number)?;
        self.slots[slot as usize].as_ref().map(|(_, value)| value)
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.by_number.contains_key(&number)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// All entries in slot order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.slots
            .iter()
            .flatten()
            .map(|(number, value)| (*number, value))
    }

    /// All entries in slot order, to change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        self.slots
            .iter_mut()
            .flatten()
            .map(|(number, value)| (*number, value))
    }

    /// Takes all entries out, in slot order.
    pub(crate) fn drain(&mut self) -> Vec<(u64, T)> {
        self.by_number.clear();
        self.free.clear();
        self.slots.drain(..).flatten().collect()
    }
}

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
    fn slots_are_reused_and_order_is_by_slot() {
        let mut table = Table::new();
        for number in [30u64, 10, 20] {
            table.insert(number, number * 2);
        }
        assert_eq!(table.remove(10), Some(20));
        table.insert(40, 80);
        assert_eq!(
            table.iter().map(|(number, _)| number).collect::<Vec<_>>(),
            [30, 40, 20]
        );
        assert_eq!(table.get(10), None);
        assert_eq!(table.len(), 3);
    }

    #[test]
    #[should_panic(expected = "is taken")]
    fn a_number_is_taken_once() {
        let mut table = Table::new();
        table.insert(1, ());
        table.insert(1, ());
    }
}
