// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Receive windows: message ids, for at most once (SPEC §4.2), and control numbers, against
//! replay (SPEC §4.3).
//!
//! 1. Looking changes nothing: [`IdWindow::is_seen`], [`ControlWindow::check`].
//! 2. Only what has authenticated is marked: [`IdWindow::mark_seen`] after record 0 opened (or
//!    for a VOIDED), [`ControlWindow::accept`] after the tag was checked.
//! 3. Marks are never taken back. When the lowest ids are all seen the floor rises, and with it
//!    the limit that is advertised to the peer.
//!
//! Both work in constant memory and never move on what a packet merely claims.

use alloc::boxed::Box;
use alloc::vec;

use smt_wire::{MessageId, WINDOW};

use crate::key_schedule::Side;
use crate::limits::CONTROL_WINDOW;
use crate::numbers::{IdLayout, IdSpace, OutgoingId};

/// Which ids of one stripe, started by the peer, have been seen and delivered.
///
/// Two rings of W bits. A seen bit belongs to the counter in `floor..limit` of its slot. A
/// delivered bit belongs to that counter if it is seen, else to the one W below: a delivery is
/// known until a newer id takes the slot.
#[derive(Debug)]
pub struct IdWindow {
    space: IdSpace,
    /// All counters below are seen.
    floor: u64,
    seen: Bits,
    delivered: Bits,
}

impl IdWindow {
    /// A window of `w` ids for messages that `peer` starts in `stripe`; up to W/4 bytes.
    ///
    /// # Panics
    /// If `w` is not a power of two from 64 to 65,536, or the layout has no such stripe.
    pub fn new(w: u32, layout: IdLayout, peer: Side, stripe: u16) -> Self {
        assert!(
            w.is_power_of_two() && WINDOW.contains(&w),
            "a window of {w} ids: choose a power of two from 64 to 65,536"
        );
        Self {
            space: IdSpace::new(layout, peer, stripe),
            floor: 0,
            seen: Bits::new(w.into()),
            delivered: Bits::new(w.into()),
        }
    }

    /// Marks a counter seen: record 0 of its id has opened, or it is answered VOIDED. `None` if
    /// it was seen before or is not [`Self::in_range`].
    pub fn mark_seen(&mut self, counter: u64) -> Option<FirstSight> {
        if !self.in_range(counter) || self.is_seen(counter) {
            return None;
        }
        let id = self.space.id(counter)?;
        self.delivered.clear(counter);
        match counter == self.floor {
            true => self.floor += 1,
            false => self.seen.set(counter),
        }
        while self.seen.has(self.floor) {
            self.seen.clear(self.floor);
            self.floor += 1;
        }
        Some(FirstSight { id })
    }

    /// Marks that the one-way message of a seen counter was accepted for delivery. No effect if
    /// that is not known to be seen any more.
    pub fn mark_delivered(&mut self, counter: u64) {
        if self.holds_delivered(counter) {
            self.delivered.set(counter);
        }
    }

    /// Whether the id of this counter was seen.
    pub fn is_seen(&self, counter: u64) -> bool {
        counter < self.floor || (counter < self.limit() && self.seen.has(counter))
    }

    /// Whether the peer may use this counter: it is below the limit.
    pub fn in_range(&self, counter: u64) -> bool {
        counter < self.limit()
    }

    /// Whether the one-way message of this counter was delivered.
    pub fn is_delivered(&self, counter: u64) -> Delivered {
        if !self.is_seen(counter) {
            return Delivered::No;
        }
        match (self.holds_delivered(counter), self.delivered.has(counter)) {
            (false, _) => Delivered::Unknown,
            (true, false) => Delivered::No,
            (true, true) => Delivered::Yes,
        }
    }

    /// All counters below this are seen.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// The first counter that the peer may not use yet. Never falls.
    pub fn limit(&self) -> u64 {
        self.floor + self.seen.len()
    }

    /// Gives up memory that says nothing: in order, everything below the floor is seen and nothing
    /// above.
    pub fn shrink_to_fit(&mut self) {
        self.seen.shrink_to_fit();
        self.delivered.shrink_to_fit();
    }

    /// Whether the slot of a seen counter still speaks of it: the next id of the slot is unseen.
    fn holds_delivered(&self, counter: u64) -> bool {
        let successor = counter.saturating_add(self.seen.len());
        self.is_seen(counter) && !self.is_seen(successor)
    }
}

/// Proof that an id was unseen until now. Not `Clone`: one request gives one right to reply.
///
/// ```compile_fail,E0382
/// fn twice(sight: smt_record::FirstSight) -> [smt_record::OutgoingId; 2] {
///     [sight.reply_right(), sight.reply_right()]
/// }
/// ```
#[derive(Debug)]
pub struct FirstSight {
    id: MessageId,
}

impl FirstSight {
    /// The id that was seen, as the window knows it.
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// The right to seal one reply, under the id of its request.
    pub fn reply_right(self) -> OutgoingId {
        OutgoingId::of_first_use(self.id)
    }
}

/// The delivery state of a one-way message, as far as the window knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It was accepted for delivery.
    Yes,
    /// It was not.
    No,
    /// Too long ago: it was seen, more is not known.
    Unknown,
}

/// Replay window of one stripe's control counters: the last 1,024.
#[derive(Debug)]
pub struct ControlWindow {
    /// One more than the highest counter accepted.
    next: u64,
    seen: Bits,
}

impl ControlWindow {
    /// Nothing accepted yet.
    pub fn new() -> Self {
        Self { next: 0, seen: Bits::new(CONTROL_WINDOW) }
    }

    /// Whether a counter is new and not too old. Changes nothing.
    pub fn check(&self, counter: u64) -> bool {
        if counter >= CONTROL_COUNTERS {
            return false;
        }
        counter >= self.next || (counter + CONTROL_WINDOW >= self.next && !self.seen.has(counter))
    }

    /// Marks the counter of a packet that has authenticated; false if [`Self::check`] is.
    pub fn accept(&mut self, counter: u64) -> bool {
        if !self.check(counter) {
            return false;
        }
        if counter >= self.next {
            // At most one turn of the ring: the slots of skipped counters are free again.
            for skipped in self.next.max(counter.saturating_sub(CONTROL_WINDOW))..counter {
                self.seen.clear(skipped);
            }
            self.next = counter + 1;
        }
        self.seen.set(counter);
        true
    }
}

impl Default for ControlWindow {
    fn default() -> Self {
        Self::new()
    }
}

/// A ring of bits, indexed by counter modulo its length, which is a power of two. While all are 0
/// it needs no memory.
#[derive(Debug)]
struct Bits {
    words: Option<Box<[u64]>>,
    len: u64,
}

impl Bits {
    fn new(len: u64) -> Self {
        Self { words: None, len }
    }

    fn set(&mut self, counter: u64) {
        let (word, mask) = self.place(counter);
        let words = usize::try_from(self.len / 64).expect("windows have at most 65,536 bits");
        let make = || vec![0; words].into_boxed_slice();
        self.words.get_or_insert_with(make)[word] |= mask;
    }

    fn clear(&mut self, counter: u64) {
        let (word, mask) = self.place(counter);
        if let Some(words) = &mut self.words {
            words[word] &= !mask;
        }
    }

    fn has(&self, counter: u64) -> bool {
        let (word, mask) = self.place(counter);
        self.words.as_ref().is_some_and(|words| words[word] & mask != 0)
    }

    fn len(&self) -> u64 {
        self.len
    }

    /// Gives its memory up, if all bits are 0.
    fn shrink_to_fit(&mut self) {
        self.words.take_if(|words| words.iter().all(|word| *word == 0));
    }

    fn place(&self, counter: u64) -> (usize, u64) {
        let slot = counter & (self.len - 1);
        ((slot / 64) as usize, 1 << (slot % 64))
    }
}

/// A control number has a counter of 48 bits (SPEC §3.4).
const CONTROL_COUNTERS: u64 = 1 << 48;

#[cfg(test)]
mod tests;
