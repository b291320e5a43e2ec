// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What happens when: the earliest first, and among equals what was planned first.
//!
//! An event is one number: its time above, its turn among equals in the middle, and 32 bits that say what happens.
//! So comparing two is one comparison, and four of them share a cache line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smt_proto::Time;

/// Events in the order of their times, each told in 32 bits.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<u128>>,
    turn: u64,
}

impl EventQueue {
    /// Plans an event.
    ///
    /// # Panics
    /// If it is more than two years away.
    pub(crate) fn push(&mut self, at: Time, event: u32) {
        let at = at.as_nanos();
        assert!(at < 1 << TIME_BITS, "an event after {at} ns");
        // After 2^40 events turns begin again: then two of the same nanosecond may change places.
        self.turn = (self.turn + 1) % (1 << TURN_BITS);
        let key = u128::from(at) << (TURN_BITS + EVENT_BITS) | u128::from(self.turn) << EVENT_BITS;
        self.heap.push(Reverse(key | u128::from(event)));
    }

    /// The next event, unless it is later than `end`.
    pub(crate) fn pop(&mut self, end: Time) -> Option<(Time, u32)> {
        let Reverse(first) = *self.heap.peek()?;
        let at = Time::from_nanos((first >> (TURN_BITS + EVENT_BITS)) as u64);
        if at > end {
            return None;
        }
        self.heap.pop();
        Some((at, first as u32))
    }
}

const TIME_BITS: u32 = 56;
const TURN_BITS: u32 = 40;
const EVENT_BITS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_equals_in_the_order_of_planning() {
        let mut queue = EventQueue::default();
        for (at, event) in [(5, 30), (3, 40), (5, 10), (3, 20)] {
            queue.push(Time::from_nanos(at), event);
        }
        let end = Time::from_nanos(5);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(end))
            .map(|(_, e)| e)
            .collect();
        assert_eq!(order, [40, 20, 30, 10]);
    }

    #[test]
    fn what_is_later_than_the_end_stays() {
        let mut queue = EventQueue::default();
        queue.push(Time::from_nanos(5), 0);
        assert_eq!(queue.pop(Time::from_nanos(4)), None);
        assert!(queue.pop(Time::from_nanos(5)).is_some());
    }
}
