// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The inner header: the first 40 bytes of a message, inside record 0 (SPEC §5.2).
//!
//! It is authenticated: its fields are the truth about the message, and those of the clear header
//! are compared with them. Written by the sender as record 0 is sealed, and frozen with it. A NIC
//! sees it only as plaintext to be sealed.

use crate::entry::Ack;
use crate::error::ParseError;
use crate::failure::FailureMark;
use crate::field::{put, u32_at};
use crate::kind_fields::{EncodedKindFields, KindFields};
use crate::list::Entry;
use crate::part::PartMarks;

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
    /// A part of a call (SPEC §5.9).
    Part = 5,
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
            Self::Part => "PART",
        }
    }

    pub(crate) const fn of(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Request),
            2 => Some(Self::Reply),
            3 => Some(Self::OneWay),
            4 => Some(Self::Bundle),
            5 => Some(Self::Part),
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
    /// REQUEST, ONE_WAY: microseconds left when record 0 was sealed; 0 none; `u32::MAX` that or
    /// more. Else 0: written and read as 0.
    pub deadline_us: u32,
    /// REQUEST: bytes of the reply's record stream that need no grant. Else 0: written and read
    /// as 0.
    pub reply_unscheduled: u32,
    /// REPLY: the mark of one by which the application says that the request has failed. Else
    /// `None`: written and read as no mark.
    pub failure: Option<FailureMark>,
    /// Whether the application bytes begin with metadata (SPEC §5.8). Never in a bundle itself, nor
    /// in a part.
    pub has_metadata: bool,
    /// The marks of parts (SPEC §5.9). Marks that the kind does not have are written and
    /// read as none.
    pub parts: PartMarks,
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
        assert!(self.lengths_agree(), "padded length below the header's and the true length");
        let fields = self.kind_fields().encode(self.kind);
        put(out, field::TRUE_LENGTH, &self.true_length.to_be_bytes());
        put(out, field::PADDED_LENGTH, &self.padded_length.to_be_bytes());
        out[field::KIND] = self.kind as u8;
        out[field::FLAGS] = fields.flags;
        out[field::RESERVED].fill(0);
        put(out, field::FIRST_OF_KIND, &fields.first.to_be_bytes());
        put(out, field::SECOND_OF_KIND, &fields.second.to_be_bytes());
        put(out, field::WINDOW, &self.window.to_be_bytes());
        match self.ack {
            Some(ack) => ack.write(&mut out[field::ACK]),
            None => out[field::ACK].fill(0),
        }
    }

    /// Parses the header.
    ///
    /// # Errors
    /// `Malformed` if the kind is unknown, the kind has no such flag, or the padded length is too
    /// small: the peer broke a rule, since these bytes are authenticated.
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, ParseError> {
        let kind = Kind::of(bytes[field::KIND])
            .ok_or(ParseError::Malformed("message of an unknown kind"))?;
        let ack = Ack::read(&bytes[field::ACK]);
        let encoded = EncodedKindFields {
            flags: bytes[field::FLAGS],
            first: u32_at(bytes, field::FIRST_OF_KIND),
            second: u32_at(bytes, field::SECOND_OF_KIND),
        };
        let fields = KindFields::decode(kind, encoded)?;
        let header = Self {
            true_length: u32_at(bytes, field::TRUE_LENGTH),
            padded_length: u32_at(bytes, field::PADDED_LENGTH),
            kind,
            deadline_us: fields.deadline_us,
            reply_unscheduled: fields.reply_unscheduled,
            failure: fields.failure,
            has_metadata: fields.has_metadata,
            parts: fields.parts,
            window: u32_at(bytes, field::WINDOW),
            ack: (ack.bits != 0).then_some(ack),
        };
        if !header.lengths_agree() {
            return Err(ParseError::Malformed("message with less padded than true length"));
        }
        Ok(header)
    }

    /// The 64-bit limit that `window` advertises, given the limit `known` so far; never below it.
    ///
    /// `None` if the field is older than `known` (it lies 2^31 or more ahead), or past 64 bits.
    pub fn extend_window(&self, known: u64) -> Option<u64> {
        let ahead = self.window.wrapping_sub(known as u32);
        if ahead >= 1 << 31 { None } else { known.checked_add(u64::from(ahead)) }
    }

    fn kind_fields(&self) -> KindFields {
        KindFields {
            deadline_us: self.deadline_us,
            reply_unscheduled: self.reply_unscheduled,
            failure: self.failure,
            has_metadata: self.has_metadata,
            parts: self.parts,
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
        FLAGS = 9;
        RESERVED = 10..12;
        /// The deadline of a request or one-way message, the code of a reply that is a failure, or
        /// the number of a part.
        FIRST_OF_KIND = 12..16;
        /// The unscheduled bytes of a request's reply, or the number of a reply's parts.
        SECOND_OF_KIND = 16..20;
        WINDOW = 20..24;
        ACK = 24..40;
    }
}

const _: () = assert!(field::ACK.end == InnerHeader::LEN);
const _: () = assert!(field::ACK.end - field::ACK.start == Ack::LEN);

#[cfg(test)]
mod tests;
