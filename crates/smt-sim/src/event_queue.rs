// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What happens when: the earliest first, and among equals what was planned first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use smt_proto::Time;

/// Events in the order of their times.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    serial: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    serial: u64,
    event: E,
}

impl<E> EventQueue<E> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            serial: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Time, event: E) {
        self.serial += 1;
        self.heap.push(Entry {
            at,
            serial: self.serial,
            event,
        });
    }

    /// The next event, unless it is later than `end`.
    pub(crate) fn pop(&mut self, end: Time) -> Option<(Time, E)> {
        if self.heap.peek()?.at > end {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

// The heap yields the greatest, so the earliest is the greatest.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.serial).cmp(&(self.at, self.serial))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_equals_in_the_order_of_planning() {
        let mut queue = EventQueue::new();
        for (at, name) in [(5, "c"), (3, "a"), (5, "d"), (3, "b")] {
            queue.push(Time::from_nanos(at), name);
        }
        let end = Time::from_nanos(5);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(end))
            .map(|(_, e)| e)
            .collect();
        assert_eq!(order, ["a", "b", "c", "d"]);
    }

    #[test]
    fn what_is_later_than_the_end_stays() {
        let mut queue = EventQueue::new();
        queue.push(Time::from_nanos(5), ());
        assert_eq!(queue.pop(Time::from_nanos(4)), None);
        assert!(queue.pop(Time::from_nanos(5)).is_some());
    }
}
