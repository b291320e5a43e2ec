// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sender that may send next: the one with the fewest bytes left, over all sessions (SPEC
//! §9.1).

use alloc::collections::{BTreeSet, BinaryHeap};
use core::cmp::Reverse;

use crate::time::Time;

/// Senders in the order of their ranks; of equals the one that has waited longest comes first.
///
/// Removal is lazy: a removed entry stays in the heap until it would be next, or until many were
/// removed. The second heap holds the removed entries.
#[derive(Debug)]
pub(crate) struct ReadyQueue<S> {
    waiting: BinaryHeap<Reverse<(u32, u64, S)>>,
    removed: BinaryHeap<Reverse<(u32, u64, S)>>,
    serial: u64,
}

/// Where a sender waits: its rank, and its turn among equals.
pub(crate) type Place = (u32, u64);

/// A sender's entries in the schedule of its endpoint. The sender holds them, so that the schedule
/// need not look for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    /// Where the sender waits for its turn.
    pub(crate) ready: Option<Place>,
    /// The timer that the schedule has for the sender.
    pub(crate) timer: Option<Time>,
}

impl<S: Copy + Ord> ReadyQueue<S> {
    pub(crate) fn new() -> Self {
        Self { waiting: BinaryHeap::new(), removed: BinaryHeap::new(), serial: 0 }
    }

    /// Lets a sender wait. Small ranks come first; 0 is for packets that never wait for data.
    pub(crate) fn insert(&mut self, rank: u32, sender: S) -> Place {
        self.serial += 1;
        self.waiting.push(Reverse((rank, self.serial, sender)));
        (rank, self.serial)
    }

    /// Lets a sender that was popped in vain wait where it has waited.
    pub(crate) fn restore(&mut self, (rank, serial): Place, sender: S) {
        self.waiting.push(Reverse((rank, serial, sender)));
    }

    /// Takes out the sender that waits at a place.
    pub(crate) fn remove(&mut self, (rank, serial): Place, sender: S) {
        self.removed.push(Reverse((rank, serial, sender)));
        if self.removed.len() > self.waiting.len() / 2 + REMOVED_KEPT {
            // Collecting would sort, with 4 KB of stack.
            let mut removed = BTreeSet::new();
            removed.extend(self.removed.drain());
            self.waiting.retain(|waiting| !removed.contains(waiting));
        }
        self.forget_removed();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The sender that is next.
    pub(crate) fn first(&self) -> Option<S> {
        self.waiting.peek().map(|Reverse((_, _, sender))| *sender)
    }

    pub(crate) fn pop(&mut self) -> Option<S> {
        let Reverse((_, _, sender)) = self.waiting.pop()?;
        self.forget_removed();
        Some(sender)
    }

    /// Drops removed entries at the top, so that the first entry is one that waits.
    fn forget_removed(&mut self) {
        while let Some(removed) = self.removed.peek()
            && self.waiting.peek() == Some(removed)
        {
            self.waiting.pop();
            self.removed.pop();
        }
    }
}

/// Removed entries that may stay in the heap, beside half of all.
const REMOVED_KEPT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn the_smallest_rank_comes_first_and_equals_take_turns() {
        let mut ready = ReadyQueue::new();
        ready.insert(500, 'c');
        ready.insert(0, 'a');
        ready.insert(500, 'd');
        let place = ready.insert(7, 'x');
        ready.insert(7, 'b');
        ready.remove(place, 'x');
        let order: String = std::iter::from_fn(|| ready.pop()).collect();
        assert_eq!(order, "abcd");
    }

    #[test]
    fn a_removed_sender_is_never_next() {
        let mut ready = ReadyQueue::new();
        let first = ready.insert(1, 'a');
        let second = ready.insert(2, 'b');
        ready.insert(3, 'c');
        ready.remove(second, 'b');
        ready.remove(first, 'a');
        assert_eq!(ready.pop(), Some('c'));
        ready.restore((3, 3), 'c');
        assert_eq!((ready.first(), ready.pop()), (Some('c'), Some('c')));
        assert_eq!(ready.pop(), None);
        assert!(ready.waiting.is_empty() && ready.removed.is_empty());
    }

    #[test]
    fn those_who_were_removed_take_little_room() {
        let mut ready = ReadyQueue::new();
        ready.insert(0, 0);
        for sender in 1..10_000 {
            let place = ready.insert(7, sender);
            ready.remove(place, sender);
            assert!(ready.removed.len() <= 3 * REMOVED_KEPT);
            assert!(ready.waiting.len() <= 3 * REMOVED_KEPT);
        }
        assert_eq!((ready.pop(), ready.pop()), (Some(0), None));
    }
}
