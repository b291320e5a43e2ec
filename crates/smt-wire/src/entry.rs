// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of control packets, each about a single message (SPEC §8).
//!
//! A NIC leaves all of it alone: these bytes are covered by the control packet's tag.

use crate::field::{put, u16_at, u32_at, u64_at};
use crate::ids::MessageId;
use crate::limits::STRIPES_LOG2_MAX;
use crate::list::Entry;

impl Entry for MessageId {
    const LEN: usize = 8;

    fn read(bytes: &[u8]) -> Self {
        Self(u64_at(bytes, 0..8))
    }

    fn write(&self, out: &mut [u8]) {
        put(out, 0..8, &self.0.to_be_bytes());
    }
}

/// How far the peer may send a message, and how far it has arrived. Set by its receiver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grant {
    /// The message.
    pub id: MessageId,
    /// End of the bytes that may be sent, in the record stream; never goes back.
    pub granted: u32,
    /// All records wholly below it have opened; in bytes of the record stream; never goes back.
    pub received: u32,
    /// Priority of the bytes granted, 0..=7, 7 the most urgent. Not checked here.
    pub priority: u8,
}

impl Entry for Grant {
    const LEN: usize = 24;

    fn read(bytes: &[u8]) -> Self {
        Self {
            id: MessageId(u64_at(bytes, grant::ID)),
            granted: u32_at(bytes, grant::GRANTED),
            received: u32_at(bytes, grant::RECEIVED),
            priority: bytes[grant::PRIORITY],
        }
    }

    fn write(&self, out: &mut [u8]) {
        put(out, grant::ID, &self.id.0.to_be_bytes());
        put(out, grant::GRANTED, &self.granted.to_be_bytes());
        put(out, grant::RECEIVED, &self.received.to_be_bytes());
        out[grant::PRIORITY] = self.priority;
        out[grant::RESERVED].fill(0);
    }
}

/// A range of a message that its receiver misses. Set by the receiver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Resend {
    /// The message.
    pub id: MessageId,
    /// First byte, in the record stream.
    pub offset: u32,
    /// Bytes, or [`TO_THE_END`].
    pub length: u32,
}

/// A RESEND's length that means: to the end of the bytes that may be sent.
pub const TO_THE_END: u32 = u32::MAX;

impl Resend {
    /// The same as [`TO_THE_END`].
    pub const TO_THE_END: u32 = TO_THE_END;
}

impl Entry for Resend {
    const LEN: usize = 16;

    fn read(bytes: &[u8]) -> Self {
        Self {
            id: MessageId(u64_at(bytes, resend::ID)),
            offset: u32_at(bytes, resend::OFFSET),
            length: u32_at(bytes, resend::LENGTH),
        }
    }

    fn write(&self, out: &mut [u8]) {
        put(out, resend::ID, &self.id.0.to_be_bytes());
        put(out, resend::OFFSET, &self.offset.to_be_bytes());
        put(out, resend::LENGTH, &self.length.to_be_bytes());
    }
}

/// How far the receiver of this packet may send the parts of a call. Set by their reader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PartWindow {
    /// The call.
    pub id: MessageId,
    /// End of the bytes of parts that may be sent, each part counted with its overhead; never goes
    /// back.
    pub limit: u64,
}

impl Entry for PartWindow {
    const LEN: usize = 16;

    fn read(bytes: &[u8]) -> Self {
        Self {
            id: MessageId(u64_at(bytes, part_window::ID)),
            limit: u64_at(bytes, part_window::LIMIT),
        }
    }

    fn write(&self, out: &mut [u8]) {
        put(out, part_window::ID, &self.id.0.to_be_bytes());
        put(out, part_window::LIMIT, &self.limit.to_be_bytes());
    }
}

/// Up to 64 messages of one stripe and initiator that are not needed any more. Set by their
/// receiver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ack {
    /// The id of bit 0.
    pub base: MessageId,
    /// Bit i stands for the i-th id after `base` of the same stripe and initiator.
    pub bits: u64,
}

impl Ack {
    /// The ids whose bits are set, ascending, in a session with 2^`stripes_log2` stripes.
    ///
    /// Ids that would not fit 64 bits are left out: the peer broke a rule.
    ///
    /// # Panics
    /// If `stripes_log2` is above 8, which no agreement permits (SPEC §4.1).
    pub fn ids(self, stripes_log2: u8) -> impl Iterator<Item = MessageId> {
        assert!(stripes_log2 <= STRIPES_LOG2_MAX, "at most 256 stripes");
        let mut left = self.bits;
        let bits = core::iter::from_fn(move || {
            // 64 where none is left.
            let bit = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (bit < u64::BITS).then_some(u64::from(bit))
        });
        bits.filter_map(move |bit| self.base.0.checked_add(bit << (stripes_log2 + 1)))
            .map(MessageId)
    }
}

impl Entry for Ack {
    const LEN: usize = 16;

    fn read(bytes: &[u8]) -> Self {
        Self { base: MessageId(u64_at(bytes, ack::BASE)), bits: u64_at(bytes, ack::BITS) }
    }

    fn write(&self, out: &mut [u8]) {
        put(out, ack::BASE, &self.base.0.to_be_bytes());
        put(out, ack::BITS, &self.bits.to_be_bytes());
    }
}

/// The end of an RPC without a reply. Set by the replier.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Abort {
    /// The RPC.
    pub id: MessageId,
    /// Why, and with it whether the request may have run: [`AbortCode::from_code`].
    pub code: u16,
}

/// Why there is no reply. Exhaustive on purpose: each code is another promise to the caller.
#[repr(u16)]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum AbortCode {
    /// Did not run: the endpoint shuts down.
    ShuttingDown = 1,
    /// May have run: the application gave no reply.
    Dropped = 2,
    /// Did not run: larger than the receiver accepts.
    TooLarge = 3,
    /// May have run: its reply is larger than the caller accepts.
    ReplyTooLarge = 4,
    /// Did not run: no room for it.
    Overloaded = 5,
}

impl AbortCode {
    /// The reason that a code stands for. An unknown code keeps only the caution: the request may
    /// have run.
    #[must_use]
    pub const fn from_code(code: u16) -> Self {
        match code {
            1 => Self::ShuttingDown,
            3 => Self::TooLarge,
            4 => Self::ReplyTooLarge,
            5 => Self::Overloaded,
            _ => Self::Dropped,
        }
    }

    /// Its code on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        self as u16
    }
}

impl Abort {
    pub(crate) const LEN: usize = 16;

    pub(crate) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self { id: MessageId(u64_at(bytes, abort::ID)), code: u16_at(bytes, abort::CODE) }
    }

    pub(crate) fn write(&self, out: &mut [u8]) {
        put(out, abort::ID, &self.id.0.to_be_bytes());
        put(out, abort::CODE, &self.code.to_be_bytes());
        out[abort::RESERVED].fill(0);
    }
}

/// An association under which the receiver of this packet may seal its own (SPEC §15.4). Set by the
/// side that opens the packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AssociationFields {
    /// The place among the associations that the side has told, from 1 on.
    pub serial: u32,
    /// The SPI of the packets, chosen by the device that opens them.
    pub spi: u32,
    /// The version of PSP.
    pub version: u8,
}

impl AssociationFields {
    pub(crate) const LEN: usize = 12;

    pub(crate) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            serial: u32_at(bytes, association::SERIAL),
            spi: u32_at(bytes, association::SPI),
            version: bytes[association::PSP_VERSION],
        }
    }

    pub(crate) fn write(&self, out: &mut [u8]) {
        put(out, association::SERIAL, &self.serial.to_be_bytes());
        put(out, association::SPI, &self.spi.to_be_bytes());
        out[association::PSP_VERSION] = self.version;
        out[association::RESERVED].fill(0);
    }
}

pub(crate) mod grant {
    crate::layout::fields! {
        ID = 0..8;
        GRANTED = 8..12;
        RECEIVED = 12..16;
        PRIORITY = 16;
        RESERVED = 17..24;
    }
}

pub(crate) mod resend {
    crate::layout::fields! {
        ID = 0..8;
        OFFSET = 8..12;
        LENGTH = 12..16;
    }
}

pub(crate) mod part_window {
    crate::layout::fields! {
        ID = 0..8;
        LIMIT = 8..16;
    }
}

pub(crate) mod ack {
    crate::layout::fields! {
        BASE = 0..8;
        BITS = 8..16;
    }
}

pub(crate) mod association {
    crate::layout::fields! {
        SERIAL = 0..4;
        SPI = 4..8;
        PSP_VERSION = 8;
        RESERVED = 9..12;
    }
}

pub(crate) mod abort {
    crate::layout::fields! {
        ID = 0..8;
        CODE = 8..10;
        RESERVED = 10..16;
    }
}

const _: () = assert!(grant::RESERVED.end == Grant::LEN);
const _: () = assert!(resend::LENGTH.end == Resend::LEN);
const _: () = assert!(ack::BITS.end == Ack::LEN);
const _: () = assert!(abort::RESERVED.end == Abort::LEN);

#[cfg(test)]
mod tests {
    use super::*;

    mod ids {
        use super::*;
        use std::vec::Vec;

        #[test]
        fn step_over_the_other_stripes_and_the_initiator() {
            let ack = Ack { base: MessageId(0b101), bits: 0b1001 };
            // k = 1: an id is counter << 2 | initiator << 1 | stripe.
            let ids: Vec<_> = ack.ids(1).map(|id| id.0).collect();
            assert_eq!(ids, [0b101, 0b101 + (3 << 2)]);
        }

        #[test]
        fn reach_the_last_bit() {
            let ack = Ack { base: MessageId(0), bits: 1 << 63 };
            assert_eq!(ack.ids(8).collect::<Vec<_>>(), [MessageId(63 << 9)]);
        }

        #[test]
        fn never_wrap() {
            let ack = Ack { base: MessageId(u64::MAX), bits: u64::MAX };
            assert_eq!(ack.ids(0).collect::<Vec<_>>(), [MessageId(u64::MAX)]);
        }
    }
}
