// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages that may send, fewest bytes left first, the older first among equals (SPEC §9.1).
//!
//! Most become ready in the order in which they leave: short ones of like length, one after the
//! other. Those stand in line, at no cost; the others are in a heap, and the first of both leaves
//! first.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;

use smt_wire::MessageId;

/// A message by the bytes that it has left.
pub(crate) type Waiting = (u32, MessageId);

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct MessageQueue {
    /// Messages in line, in ascending order.
    line: VecDeque<Waiting>,
    others: BinaryHeap<Reverse<Waiting>>,
}

impl MessageQueue {
    /// Adds a message, which may be in it already.
    pub(crate) fn push(&mut self, waiting: Waiting) {
        match self.line.back() {
            Some(last) if *last > waiting => {
                // Alone in line a long one would keep all short ones out.
                let other = match self.line.len() {
                    1 => core::mem::replace(&mut self.line[0], waiting),
                    _ => waiting,
                };
                self.others.push(Reverse(other));
            }
            _ => self.line.push_back(waiting),
        }
    }

    pub(crate) fn first(&self) -> Option<Waiting> {
        let other = self.others.peek().map(|Reverse(other)| *other);
        match (self.line.front().copied(), other) {
            (Some(in_line), Some(other)) => Some(in_line.min(other)),
            (in_line, other) => in_line.or(other),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let Some(Reverse(other)) = self.others.peek() else {
            return self.line.pop_front();
        };
        if self.line.front().is_some_and(|in_line| in_line <= other) {
            return self.line.pop_front();
        }
        self.others.pop().map(|Reverse(other)| other)
    }

    pub(crate) fn len(&self) -> usize {
        self.line.len() + self.others.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.others.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.line.clear();
        self.others.clear();
    }

    /// Gives back all memory that is not needed now.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.line.shrink_to_fit();
        self.others.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn popped(queue: &mut MessageQueue) -> Vec<(u32, u64)> {
        let pops = std::iter::from_fn(|| queue.pop());
        pops.map(|(left, id)| (left, id.0)).collect()
    }

    #[test]
    fn the_fewest_bytes_come_first_and_the_older_among_equals() {
        let mut queue = MessageQueue::default();
        for (left, id) in [(90, 1), (5, 2), (5, 4), (70, 5), (5, 3), (1, 6), (70, 4)] {
            queue.push((left, MessageId(id)));
        }
        assert_eq!((queue.len(), queue.is_empty()), (7, false));
        assert_eq!(queue.first(), Some((1, MessageId(6))));
        let expected = [(1, 6), (5, 2), (5, 3), (5, 4), (70, 4), (70, 5), (90, 1)];
        assert_eq!(popped(&mut queue), expected);
        assert_eq!((queue.first(), queue.is_empty()), (None, true));
    }

    #[test]
    fn it_does_not_matter_who_stands_in_line() {
        // All sequences of five numbers below five.
        for code in 0..5u32.pow(5) {
            let mut lefts: Vec<u32> = (0..5).map(|place| code / 5u32.pow(place) % 5).collect();
            let mut queue = MessageQueue::default();
            lefts.iter().for_each(|left| queue.push((*left, MessageId(0))));
            lefts.sort_unstable();
            let first = queue.first().map(|(left, _)| left);
            assert_eq!((first, queue.len()), (Some(lefts[0]), 5));
            assert!(popped(&mut queue).iter().map(|(left, _)| *left).eq(lefts));
        }
    }

    #[test]
    fn short_ones_stand_in_line_behind_a_long_one() {
        let mut queue = MessageQueue::default();
        queue.push((1_000_000, MessageId(1)));
        (2..50).for_each(|id| queue.push((64, MessageId(id))));
        assert_eq!((queue.line.len(), queue.others.len()), (48, 1));
    }
}
