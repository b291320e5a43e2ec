// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who may send next: the one with the fewest bytes left, over all sessions (SPEC §9.1).

use std::collections::BTreeSet;

/// Senders in the order of their ranks; of equals the one that has waited longest comes first.
#[derive(Debug)]
pub(crate) struct Ready<S> {
    waiting: BTreeSet<(u32, u64, S)>,
    serial: u64,
}

/// Where a sender waits: its rank, and its turn among equals.
pub(crate) type Place = (u32, u64);

impl<S: Copy + Ord> Ready<S> {
    pub(crate) fn new() -> Self {
        Self {
            waiting: BTreeSet::new(),
            serial: 0,
        }
    }

    /// Lets a sender wait. Small ranks come first; 0 is for what never waits for data.
    pub(crate) fn insert(&mut self, rank: u32, sender: S) -> Place {
        self.serial += 1;
        self.waiting.insert((rank, self.serial, sender));
        (rank, self.serial)
    }

    /// Lets a sender that was taken out in vain wait where it has waited.
    pub(crate) fn restore(&mut self, (rank, serial): Place, sender: S) {
        self.waiting.insert((rank, serial, sender));
    }

    pub(crate) fn remove(&mut self, (rank, serial): Place, sender: S) {
        self.waiting.remove(&(rank, serial, sender));
    }

    /// Who is next.
    pub(crate) fn first(&self) -> Option<S> {
        self.waiting.first().map(|(_, _, sender)| *sender)
    }

    pub(crate) fn pop(&mut self) -> Option<S> {
        self.waiting.pop_first().map(|(_, _, sender)| sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_rank_comes_first_and_equals_take_turns() {
        let mut ready = Ready::new();
        ready.insert(500, 'c');
        ready.insert(0, 'a');
        ready.insert(500, 'd');
        let place = ready.insert(7, 'x');
        ready.insert(7, 'b');
        ready.remove(place, 'x');
        let order: String = std::iter::from_fn(|| ready.pop()).collect();
        assert_eq!(order, "abcd");
    }
}
