// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The inner header: the first 40 bytes of a message, inside record 0 (SPEC §5.2).
//!
//! It is authenticated: its fields are the truth about the message, and those of the clear header
//! are compared with them. Written by the sender as record 0 is sealed, and frozen with it. A NIC
//! sees it only as plaintext to be sealed.

use crate::entry::Ack;
use crate::error::ParseError;
use crate::field::{put, u32_at};
use crate::list::Entry;

/// The kind of a message.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// Asks for a reply.
    Request = 1,
    /// Answers the request of the same id.
    Reply = 2,
    /// Asks for nothing.
    OneWay = 3,
    /// Holds several of the others (SPEC §5.7).
    Bundle = 4,
}

impl Kind {
    /// The name in the specification (SPEC §5.2).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "REQUEST",
            Self::Reply => "REPLY",
            Self::OneWay => "ONE_WAY",
            Self::Bundle => "BUNDLE",
        }
    }

    pub(crate) const fn of(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Request),
            2 => Some(Self::Reply),
            3 => Some(Self::OneWay),
            4 => Some(Self::Bundle),
            _ => None,
        }
    }
}

/// The first 40 bytes of a message's inner stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InnerHeader {
    /// Application bytes.
    pub true_length: u32,
    /// Inner bytes with padding (P), at least 40 + `true_length`; the same as in DATA headers.
    pub padded_length: u32,
    /// The kind of the message.
    pub kind: Kind,
    /// REQUEST: microseconds left when record 0 was sealed; 0 none; `u32::MAX` that or more.
    /// Else 0: written and read as 0.
    pub deadline_us: u32,
    /// REQUEST: bytes of the reply's record stream that need no grant. Else 0: written and read
    /// as 0.
    pub reply_unscheduled: u32,
    /// Low 32 bits of the sender's advertised id limit of this stripe (SPEC §4.2); see
    /// [`InnerHeader::extend_window`].
    pub window: u32,
    /// Messages that the sender of this one does not need any more. `None` is sent as bits 0.
    pub ack: Option<Ack>,
}

impl InnerHeader {
    /// Bytes of the header.
    pub const LEN: usize = 40;

    /// Writes the header.
    ///
    /// # Panics
    /// If the padded length is below 40 + true length.
    pub fn emit(&self, out: &mut [u8; Self::LEN]) {
        assert!(
            self.lengths_agree(),
            "padded length below the header's and the true length"
        );
        let (deadline_us, reply_unscheduled) = match self.kind {
            Kind::Request => (self.deadline_us, self.reply_unscheduled),
            Kind::Reply | Kind::OneWay | Kind::Bundle => (0, 0),
        };
        put(out, field::TRUE_LENGTH, &self.true_length.to_be_bytes());
        put(out, field::PADDED_LENGTH, &self.padded_length.to_be_bytes());
        out[field::KIND] = self.kind as u8;
        out[field::RESERVED].fill(0);
        put(out, field::DEADLINE, &deadline_us.to_be_bytes());
        put(
            out,
            field::REPLY_UNSCHEDULED,
            &reply_unscheduled.to_be_bytes(),
        );
        put(out, field::WINDOW, &self.window.to_be_bytes());
        match self.ack {
            Some(ack) => ack.write(&mut out[field::ACK]),
            None => out[field::ACK].fill(0),
        }
    }

    /// Parses the header.
    ///
    /// # Errors
    /// `Malformed` if the kind is unknown or the padded length too small: the peer broke a rule,
    /// since these bytes are authenticated.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, ParseError> {
        let kind = Kind::of(bytes[field::KIND])
            .ok_or(ParseError::Malformed("message of an unknown kind"))?;
        let ack = Ack::read(&bytes[field::ACK]);
        let for_request = |value| if kind == Kind::Request { value } else { 0 };
        let header = Self {
            true_length: u32_at(bytes, field::TRUE_LENGTH),
            padded_length: u32_at(bytes, field::PADDED_LENGTH),
            kind,
            deadline_us: for_request(u32_at(bytes, field::DEADLINE)),
            reply_unscheduled: for_request(u32_at(bytes, field::REPLY_UNSCHEDULED)),
            window: u32_at(bytes, field::WINDOW),
            ack: (ack.bits != 0).then_some(ack),
        };
        if !header.lengths_agree() {
            return Err(ParseError::Malformed(
                "message with less padded than true length",
            ));
        }
        Ok(header)
    }

    /// The 64-bit limit that `window` advertises, given the limit `known` so far; never below it.
    ///
    /// `None` if the field is older than `known` (it lies 2^31 or more ahead), or past 64 bits.
    pub fn extend_window(&self, known: u64) -> Option<u64> {
        let ahead = self.window.wrapping_sub(known as u32);
        if ahead >= 1 << 31 {
            None
        } else {
            known.checked_add(u64::from(ahead))
        }
    }

    fn lengths_agree(&self) -> bool {
        u64::from(self.padded_length) >= Self::LEN as u64 + u64::from(self.true_length)
    }
}

pub(crate) mod field {
    crate::layout::fields! {
        TRUE_LENGTH = 0..4;
        PADDED_LENGTH = 4..8;
        KIND = 8;
        /// Flags and two reserved bytes.
        RESERVED = 9..12;
        DEADLINE = 12..16;
        REPLY_UNSCHEDULED = 16..20;
        WINDOW = 20..24;
        ACK = 24..40;
    }
}

const _: () = assert!(field::ACK.end == InnerHeader::LEN);
const _: () = assert!(field::ACK.end - field::ACK.start == Ack::LEN);

#[cfg(test)]
mod tests;
