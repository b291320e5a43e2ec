// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The associations that were removed lately. Installed once more they would count their IVs from 1
//! again, and packets would share the IVs of earlier ones.
//!
//! Only prints of them are kept, 64 bits each, and no key.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Prints of associations that were removed, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct EndedAssociations {
    prints: BTreeSet<u64>,
    order: VecDeque<u64>,
}

/// The print of an association, by which it is known again.
pub(crate) fn print_of(spi: u32, key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (spi, key).hash(&mut hasher);
    hasher.finish()
}

impl EndedAssociations {
    pub(crate) fn add(&mut self, print: u64) {
        if !self.prints.insert(print) {
            return;
        }
        self.order.push_back(print);
        if self.order.len() > KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.prints.remove(&oldest);
        }
    }

    pub(crate) fn contains(&self, print: u64) -> bool {
        self.prints.contains(&print)
    }
}

/// Prints that are kept at most.
const KEPT_MAX: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_where_there_are_too_many() {
        let mut ended = EndedAssociations::default();
        let print = |spi| print_of(spi, &[7; 32]);
        for spi in 0..=KEPT_MAX as u32 {
            ended.add(print(spi));
            ended.add(print(spi));
        }
        assert!(!ended.contains(print(0)) && ended.contains(print(1)));
        assert_eq!(ended.prints.len(), KEPT_MAX);
        assert_ne!(print_of(1, &[7; 32]), print_of(1, &[8; 32]));
    }
}
