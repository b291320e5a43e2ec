// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Message ids and record sequence numbers (SPEC §4.1, §5.1).
//!
//! ```text
//!   id              = counter | initiator (1 bit) | stripe (k bits)      below 2^id_bits
//!   sequence number = id | record index (index_bits)                     64 bits
//! ```
//! A number that does not fit is an error before sealing, and is never truncated. Each side has
//! index bits of its own; ids are limited by the larger of the two. An [`OutgoingId`] is the right
//! to seal one message under an id: it cannot be copied, and only an [`IdAllocator`] or the
//! [`crate::FirstSight`] of a request makes one.

use core::fmt;

use smt_wire::{INDEX_BITS, MessageId, STRIPES_LOG2_MAX};

use crate::key_schedule::Side;

/// How many bits of a sequence number hold the record index: 8 to 17.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexBits(u8);

impl IndexBits {
    /// `None` if not 8 to 17.
    pub const fn new(bits: u8) -> Option<Self> {
        if bits < *INDEX_BITS.start() || bits > *INDEX_BITS.end() {
            return None;
        }
        Some(Self(bits))
    }

    /// Bits of the index.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Bits of the id.
    pub const fn id_bits(self) -> u8 {
        64 - self.0
    }

    /// The sequence number of record `index` of message `id`.
    ///
    /// # Errors
    /// [`NumberError`] if either does not fit its field.
    pub const fn sequence(self, id: MessageId, index: u32) -> Result<u64, NumberError> {
        if id.0 >> self.id_bits() != 0 {
            return Err(NumberError::Id { id, index, id_bits: self.id_bits() });
        }
        if index >> self.0 != 0 {
            return Err(NumberError::Index { id, index, index_bits: self.0 });
        }
        Ok(id.0 << self.0 | index as u64)
    }
}

impl fmt::Display for IndexBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How an id divides into counter, initiator and stripe; the same for both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdLayout {
    /// Every id is below 2^this.
    pub id_bits: u8,
    /// Stripes of the session, as log2 (k).
    pub stripes_log2: u8,
}

impl IdLayout {
    /// The layout that the parameters of both sides give. `None` if there are more than 2^8
    /// stripes.
    pub fn new(client: IndexBits, server: IndexBits, stripes_log2: u8) -> Option<Self> {
        let id_bits = client.id_bits().min(server.id_bits());
        (stripes_log2 <= STRIPES_LOG2_MAX).then_some(Self { id_bits, stripes_log2 })
    }

    /// The id of a counter.
    ///
    /// # Errors
    /// [`NumberError`] if the stripe does not exist or the id would not fit.
    pub fn id(self, counter: u64, initiator: Side, stripe: u16) -> Result<MessageId, NumberError> {
        let Self { id_bits, stripes_log2 } = self;
        if u64::from(stripe) >= self.stripes() {
            return Err(NumberError::Stripe { stripe, stripes_log2 });
        }
        if counter >= self.counters() {
            return Err(NumberError::Counter { counter, stripe, id_bits });
        }
        let initiator = match initiator {
            Side::Client => 0,
            Side::Server => 1,
        };
        let low = initiator << stripes_log2 | u64::from(stripe);
        Ok(MessageId(counter << (stripes_log2 + 1) | low))
    }

    /// The stripe of an id.
    // Asked several times for each message, by another crate.
    #[inline]
    pub fn stripe(self, id: MessageId) -> u16 {
        (id.0 & (self.stripes() - 1)) as u16
    }

    /// The parts of an id. `None` if it is 2^id_bits or more.
    pub fn split(self, id: MessageId) -> Option<IdParts> {
        let initiator_and_counter = id.0.checked_shr(u32::from(self.stripes_log2))?;
        let counter = initiator_and_counter >> 1;
        let initiator = if initiator_and_counter & 1 == 0 { Side::Client } else { Side::Server };
        let stripe = self.stripe(id);
        (counter < self.counters()).then_some(IdParts { counter, initiator, stripe })
    }

    /// Counters of one initiator and stripe: the first that does not fit.
    pub fn counters(self) -> u64 {
        let bits = self.id_bits.min(63).saturating_sub(self.stripes_log2.saturating_add(1));
        if bits == 0 { 0 } else { 1 << bits }
    }

    fn stripes(self) -> u64 {
        1 << self.stripes_log2.min(STRIPES_LOG2_MAX)
    }
}

/// The parts of a message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdParts {
    /// Place among the ids of the same initiator and stripe, from 0.
    pub counter: u64,
    /// The side that started the RPC or one-way message.
    pub initiator: Side,
    /// Stripe, below 2^k.
    pub stripe: u16,
}

/// The ids of one initiator and stripe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdSpace {
    layout: IdLayout,
    initiator: Side,
    stripe: u16,
}

impl IdSpace {
    /// Panics if the stripe does not exist.
    pub(crate) fn new(layout: IdLayout, initiator: Side, stripe: u16) -> Self {
        assert!(layout.id(0, initiator, stripe).is_ok(), "stripe {stripe} is not in {layout:?}");
        Self { layout, initiator, stripe }
    }

    /// `None` if the counter does not fit.
    pub(crate) fn id(&self, counter: u64) -> Option<MessageId> {
        self.layout.id(counter, self.initiator, self.stripe).ok()
    }
}

/// Hands out the ids that one side starts in one stripe, each once. A session has exactly one per
/// stripe: a second one would hand the same ids out again.
#[derive(Debug)]
pub struct IdAllocator {
    space: IdSpace,
    next: u64,
}

impl IdAllocator {
    /// Begins at counter 0.
    ///
    /// # Panics
    /// If the layout has no such stripe.
    pub fn new(layout: IdLayout, side: Side, stripe: u16) -> Self {
        Self { space: IdSpace::new(layout, side, stripe), next: 0 }
    }

    /// Begins at a later counter. A session begins at 0 (SPEC §4.1); this is for vectors and for
    /// tests in which ids run out.
    ///
    /// # Panics
    /// If the layout has no such stripe.
    pub fn starting_at(layout: IdLayout, side: Side, stripe: u16, counter: u64) -> Self {
        Self { space: IdSpace::new(layout, side, stripe), next: counter }
    }

    /// The next id, if its counter is below the receiver's `limit` (SPEC §4.2).
    ///
    /// # Errors
    /// [`AllocationError`]: wait for the window, or begin a new session.
    pub fn next(&mut self, limit: u64) -> Result<OutgoingId, AllocationError> {
        let id =
            self.space.id(self.next).ok_or(AllocationError::Exhausted { counter: self.next })?;
        if self.next >= limit {
            return Err(AllocationError::Blocked { counter: self.next, limit });
        }
        self.next += 1;
        Ok(OutgoingId(id))
    }

    /// The counter of the next id; also the number of ids handed out.
    pub fn counter(&self) -> u64 {
        self.next
    }
}

/// The right to seal one message under an id, once. Neither `Clone` nor `Copy`.
///
/// ```compile_fail,E0599
/// fn twice(id: smt_record::OutgoingId) -> [smt_record::OutgoingId; 2] {
///     [id.clone(), id]
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct OutgoingId(MessageId);

impl OutgoingId {
    /// The caller vouches that the id is new in this direction.
    pub(crate) fn of_first_use(id: MessageId) -> Self {
        Self(id)
    }

    /// The id.
    pub fn id(&self) -> MessageId {
        self.0
    }
}

/// Why there is no next id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// Wait until the peer's window moves, and ask with WINDOW_REQUEST.
    #[error("the peer's window ends at {limit}, next is {counter}: wait until it moves")]
    Blocked {
        /// Counter of the next id.
        counter: u64,
        /// The peer's limit, exclusive.
        limit: u64,
    },
    /// Begin a new session and start nothing more in this one.
    #[error("limit reached: message ids are used up at counter {counter}: begin a new session")]
    Exhausted {
        /// The first counter that does not fit.
        counter: u64,
    },
}

/// A number does not fit its field. Nothing was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Begin a new session.
    #[error("message id {id} (record {index}) does not fit {id_bits} bits: begin a new session")]
    Id {
        /// The id.
        id: MessageId,
        /// The record index asked for with it.
        index: u32,
        /// Bits of the id field.
        id_bits: u8,
    },
    /// Send a smaller message, or offer more index bits.
    #[error("record {index} of message {id} does not fit {index_bits} bits: send less at once")]
    Index {
        /// The id.
        id: MessageId,
        /// The record index.
        index: u32,
        /// Bits of the index field.
        index_bits: u8,
    },
    /// Begin a new session.
    #[error(
        "id counter {counter} of stripe {stripe} does not fit an id of {id_bits} bits: begin a new session"
    )]
    Counter {
        /// The counter.
        counter: u64,
        /// Its stripe.
        stripe: u16,
        /// Bits of an id.
        id_bits: u8,
    },
    /// The caller names a stripe that the session does not have.
    #[error("stripe {stripe} is not one of the session's 2^{stripes_log2}")]
    Stripe {
        /// The stripe.
        stripe: u16,
        /// Stripes of the session, as log2.
        stripes_log2: u8,
    },
}

#[cfg(test)]
mod tests;
