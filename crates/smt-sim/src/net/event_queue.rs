// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A queue of events: the earliest first, and among equals the one that was planned first.
//!
//! 1. A near event goes into a wheel: a slot for each of the next [`REACH`] nanoseconds, in which
//!    events form a line. Two levels of bits say which slots are taken, so that the next one is
//!    found in a few instructions.
//! 2. An event that is further away goes into a heap, with its turn, and is taken from there.
//!
//! Among events of the same nanosecond those of the heap were planned before those of the wheel:
//! they were too far away then.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smt_proto::Time;

/// Events in the order of their times, each told in 32 bits.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// The last event of each slot's line, 0 if it is empty. A line is a ring: the last leads to
    /// the first.
    slots: Vec<u32>,
    /// Events of the wheel by number; number 0 is nobody's.
    links: Vec<Link>,
    /// The first of the numbers that are free, 0 if none is.
    free: u32,
    /// Which slots are taken, a bit each; and which of these words are not 0.
    taken: [u64; WORDS],
    words: u64,
    /// When the wheel begins: the time of the event that was taken last.
    now: u64,
    /// Time, turn and event as one number; and the time of the first, the end of time if there is
    /// none.
    far: BinaryHeap<Reverse<u128>>,
    far_at: u64,
    turn: u64,
}

/// An event in a line.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    event: u32,
    /// The link after it.
    next: u32,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            slots: vec![0; REACH as usize],
            links: vec![Link::default()],
            free: 0,
            taken: [0; WORDS],
            words: 0,
            now: 0,
            far: BinaryHeap::new(),
            far_at: u64::MAX,
            turn: 0,
        }
    }
}

impl EventQueue {
    /// Plans an event.
    ///
    /// # Panics
    /// If it is more than two years away, or before one that was taken.
    pub(crate) fn push(&mut self, at: Time, event: u32) {
        let at = at.as_nanos();
        assert!(at >= self.now, "an event in the past, at {at} ns");
        if at - self.now < REACH {
            self.push_near(at, event);
            return;
        }
        assert!(at < 1 << TIME_BITS, "an event after {at} ns");
        // After 2^40 events turns begin again: then two of the same nanosecond may change places.
        self.turn = (self.turn + 1) % (1 << TURN_BITS);
        let key = u128::from(at) << (TURN_BITS + EVENT_BITS) | u128::from(self.turn) << EVENT_BITS;
        self.far.push(Reverse(key | u128::from(event)));
        self.far_at = self.far_at.min(at);
    }

    /// The next event, unless it is later than `end`.
    pub(crate) fn pop(&mut self, end: Time) -> Option<(Time, u32)> {
        let near = self.first_near().unwrap_or(u64::MAX);
        let at = self.far_at.min(near);
        if at > end.as_nanos() || at == u64::MAX {
            return None;
        }
        self.now = at;
        let event = match self.far_at <= near {
            true => self.pop_far()?,
            false => self.pop_near(at),
        };
        Some((Time::from_nanos(at), event))
    }

    fn pop_far(&mut self) -> Option<u32> {
        let Reverse(first) = self.far.pop()?;
        let next = self.far.peek();
        self.far_at =
            next.map_or(u64::MAX, |Reverse(key)| (key >> (TURN_BITS + EVENT_BITS)) as u64);
        Some(first as u32)
    }

    fn push_near(&mut self, at: u64, event: u32) {
        let number = self.issue(event);
        let slot = (at % REACH) as usize;
        let last = std::mem::replace(&mut self.slots[slot], number);
        if last == 0 {
            self.links[number as usize].next = number;
            self.taken[slot / 64] |= 1 << (slot % 64);
            self.words |= 1 << (slot / 64);
        } else {
            let first = std::mem::replace(&mut self.links[last as usize].next, number);
            self.links[number as usize].next = first;
        }
    }

    /// Takes the first event of a slot that is taken.
    fn pop_near(&mut self, at: u64) -> u32 {
        let slot = (at % REACH) as usize;
        let last = self.slots[slot];
        let first = self.links[last as usize].next;
        let Link { event, next } = self.links[first as usize];
        self.links[first as usize].next = std::mem::replace(&mut self.free, first);
        if first == last {
            self.slots[slot] = 0;
            self.taken[slot / 64] &= !(1 << (slot % 64));
            if self.taken[slot / 64] == 0 {
                self.words &= !(1 << (slot / 64));
            }
        } else {
            self.links[last as usize].next = next;
        }
        event
    }

    /// A number for an event.
    fn issue(&mut self, event: u32) -> u32 {
        let number = self.free;
        if number == 0 {
            self.links.push(Link { event, next: 0 });
            return (self.links.len() - 1) as u32;
        }
        let link = &mut self.links[number as usize];
        self.free = link.next;
        link.event = event;
        number
    }

    /// When the first event of the wheel is due.
    fn first_near(&self) -> Option<u64> {
        let slot = (self.now % REACH) as usize;
        let here = self.taken[slot / 64] >> (slot % 64);
        if here != 0 {
            return Some(self.now + u64::from(here.trailing_zeros()));
        }
        // The word that begins now comes last, too: with the slots before this one, which are a
        // turn ahead.
        let after = slot / 64 + 1;
        let words = self.words.rotate_right(after as u32);
        if words == 0 {
            return None;
        }
        let word = (after + words.trailing_zeros() as usize) % WORDS;
        let found = word * 64 + self.taken[word].trailing_zeros() as usize;
        Some(self.now + (found as u64).wrapping_sub(slot as u64) % REACH)
    }
}

/// Nanoseconds that the wheel spans: a full frame at 10 Gb/s with the delays of the paper's hosts
/// and switches takes 2.5 us, and a longer wheel would take the room of other things in the
/// processor's first cache.
const REACH: u64 = 64 * WORDS as u64;
const WORDS: usize = 64;
const TIME_BITS: u32 = 56;
const TURN_BITS: u32 = 40;
const EVENT_BITS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn drained(queue: &mut EventQueue, end: u64) -> Vec<u32> {
        let end = Time::from_nanos(end);
        std::iter::from_fn(|| queue.pop(end)).map(|(_, event)| event).collect()
    }

    #[test]
    fn the_earliest_comes_first_and_equals_in_the_order_of_planning() {
        let mut queue = EventQueue::default();
        for (at, event) in [(5, 30), (3, 40), (5, 10), (3, 20)] {
            queue.push(Time::from_nanos(at), event);
        }
        assert_eq!(drained(&mut queue, 5), [40, 20, 30, 10]);
    }

    #[test]
    fn event_later_than_the_end_stays() {
        let mut queue = EventQueue::default();
        queue.push(Time::from_nanos(5), 0);
        assert_eq!(queue.pop(Time::from_nanos(4)), None);
        assert!(queue.pop(Time::from_nanos(5)).is_some());
    }

    #[test]
    fn event_planned_far_ahead_comes_before_its_equals_planned_later() {
        let mut queue = EventQueue::default();
        queue.push(Time::from_nanos(REACH + 5), 1);
        queue.push(Time::from_nanos(10), 0);
        assert_eq!(drained(&mut queue, 10), [0]);
        queue.push(Time::from_nanos(REACH + 5), 2);
        queue.push(Time::from_nanos(REACH + 4), 3);
        assert_eq!(drained(&mut queue, 2 * REACH), [3, 1, 2]);
    }

    #[test]
    fn the_order_is_that_of_times_and_planning_whatever_the_distances() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut queue = EventQueue::default();
            let (mut waiting, mut now) = (Vec::new(), 0);
            for event in 0..4_000 {
                let reach = 1 << random.below(16);
                let wait = random.below(reach);
                queue.push(Time::from_nanos(now + wait), event);
                waiting.push((now + wait, event));
                if random.chance(450_000) {
                    let least = *waiting.iter().min().unwrap();
                    waiting.retain(|planned| *planned != least);
                    let end = Time::from_nanos(u64::MAX);
                    assert_eq!(queue.pop(end), Some((Time::from_nanos(least.0), least.1)));
                    now = least.0;
                }
            }
            waiting.sort_unstable();
            let order: Vec<u32> = waiting.iter().map(|(_, event)| *event).collect();
            assert_eq!(drained(&mut queue, u64::MAX), order);
        }
    }
}
