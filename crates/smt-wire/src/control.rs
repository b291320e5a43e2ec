// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control packets: header, body, tag (SPEC §3.4).
//!
//! 1. `emit` writes header and body, and counts the sealed part in the length field.
//! 2. The caller seals with what was written as AAD, and appends the tag (CONFIRM: ciphertext of
//!    the token, then the tag; ASSOCIATION: ciphertext of the key, then the tag).
//! 3. A receiver gets the same cut back as [`Control::aad`] and [`Control::sealed`].
//!
//! Not here: tags and replay windows. A parsed control packet says nothing before it has opened.

use core::fmt;

use crate::body::{self, Body};
use crate::error::ParseError;
use crate::field::{put, u64_at};
use crate::ids::{ControlNumber, SessionIndex};
use crate::list::{Entry, List};
use crate::packet_type::PacketType;
use crate::prefix::Prefix;

/// The 28 bytes before a control packet's body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ControlHeader {
    /// Low 8 bits of the epoch whose control key seals. Set by the sender; a NIC ignores it.
    pub epoch: u8,
    /// Chosen by the receiver in the handshake. A NIC may steer by it.
    pub session: SessionIndex,
    /// Counted by the sender per stripe, used once. A NIC may steer by the stripe.
    pub number: ControlNumber,
}

impl ControlHeader {
    /// Bytes of the header.
    pub const LEN: usize = 28;

    /// Writes header and body to the front of `out`; returns how many bytes, all of which are the
    /// AAD. The caller appends [`Body::sealed_len`] bytes, which the length field counts.
    ///
    /// # Panics
    /// If `out` is too short for header and body, a list has no entry or more than 64, the packet
    /// is longer than 65,535 bytes, or the counter is above 48 bits.
    pub fn emit(&self, version: u8, body: &Body<'_>, out: &mut [u8]) -> usize {
        let length =
            u16::try_from(Self::packet_len(body)).expect("a packet is at most 65,535 bytes");
        let out = &mut out[..Self::LEN + body.len()];
        let prefix = Prefix::new(version, body.packet_type(), length);
        Prefix { epoch: self.epoch, ..prefix }.write(out);
        put(out, field::SESSION, &self.session.0.to_be_bytes());
        put(out, field::NUMBER, &self.number.to_u64().to_be_bytes());
        body.write(&mut out[Self::LEN..]);
        out.len()
    }

    /// Bytes of the whole packet, sealed part included.
    pub fn packet_len(body: &Body<'_>) -> usize {
        Self::LEN + body.len() + body.sealed_len()
    }
}

/// A control packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Control<'a> {
    /// Its header.
    pub header: ControlHeader,
    /// Its body, not to be believed before `sealed` has opened.
    pub body: Body<'a>,
    /// Every byte of the packet before its sealed part.
    pub aad: &'a [u8],
    /// The tag; before it in CONFIRM the ciphertext of the reset token, in ASSOCIATION that of the
    /// key.
    pub sealed: &'a [u8],
}

impl<'a> Control<'a> {
    /// Parses a packet of exactly its length.
    pub(crate) fn parse(
        ty: PacketType,
        prefix: &Prefix,
        packet: &'a [u8],
    ) -> Result<Self, ParseError> {
        let Some(aad_len) = packet.len().checked_sub(body::sealed_len(ty)) else {
            return Err(TOO_SHORT);
        };
        let (aad, sealed) = packet.split_at(aad_len);
        let Some((bytes, body)) = aad.split_first_chunk::<{ ControlHeader::LEN }>() else {
            return Err(TOO_SHORT);
        };
        let header = ControlHeader {
            epoch: prefix.epoch,
            session: SessionIndex(u64_at(bytes, field::SESSION)),
            number: ControlNumber::from_u64(u64_at(bytes, field::NUMBER)),
        };
        Ok(Self { header, body: Body::parse(ty, body)?, aad, sealed })
    }
}

impl fmt::Display for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ControlHeader { epoch, session, number } = self.header;
        write!(f, "{} epoch {epoch} session {session} number {number}", self.body.packet_type())?;
        match self.body {
            Body::Confirm | Body::WindowRequest => Ok(()),
            Body::Grant(list) => list_of(f, list, |f, grant| {
                let (id, granted, received) = (grant.id, grant.granted, grant.received);
                write!(
                    f,
                    "id {id} granted {granted} received {received} priority {}",
                    grant.priority
                )
            }),
            Body::Resend(list) => list_of(f, list, |f, resend| {
                write!(f, "id {} offset {} length {}", resend.id, resend.offset, resend.length)
            }),
            Body::Ack(list) => {
                list_of(f, list, |f, ack| write!(f, "base {} bits 0x{:x}", ack.base, ack.bits))
            }
            Body::Busy(list)
            | Body::NeedAck(list)
            | Body::Cancel(list)
            | Body::Voided(list)
            | Body::Seen(list)
            | Body::NeverSeen(list)
            | Body::SeenAndGone(list)
            | Body::PartWindowRequest(list) => list_of(f, list, |f, id| write!(f, "id {id}")),
            Body::PartWindow(list) => {
                list_of(f, list, |f, window| write!(f, "id {} limit {}", window.id, window.limit))
            }
            Body::Abort(abort) => write!(f, " id {} code {}", abort.id, abort.code),
            Body::Window { limit } => write!(f, " limit {limit}"),
            Body::KeyUpdateRequest { epoch }
            | Body::EpochDone { epoch }
            | Body::EpochAck { epoch } => {
                write!(f, " of {epoch}")
            }
            Body::Ping(value) | Body::Pong(value) => write!(f, " value {value}"),
            Body::Probe { padding } => write!(f, " padding {padding}"),
            Body::ProbeAck { size } => write!(f, " size {size}"),
            Body::Close { code } => write!(f, " code {code}"),
            Body::Association(fields) => write!(
                f,
                " serial {} spi 0x{:08x} version {}",
                fields.serial, fields.spi, fields.version
            ),
            Body::AssociationAck { serial } | Body::AssociationRequest { serial } => {
                write!(f, " serial {serial}")
            }
        }
    }
}

/// Shows ` entry, entry, …`.
fn list_of<T: Entry>(
    f: &mut fmt::Formatter<'_>,
    list: List<'_, T>,
    show: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (place, entry) in list.iter().enumerate() {
        f.write_str(if place == 0 { " " } else { ", " })?;
        show(f, entry)?;
    }
    Ok(())
}

const TOO_SHORT: ParseError =
    ParseError::Malformed("control packet shorter than its header and tag");

pub(crate) mod field {
    crate::layout::fields! {
        SESSION = 12..20;
        NUMBER = 20..28;
    }
}

const _: () = assert!(field::SESSION.start == Prefix::LEN);
const _: () = assert!(field::NUMBER.end == ControlHeader::LEN);

#[cfg(test)]
mod tests;
