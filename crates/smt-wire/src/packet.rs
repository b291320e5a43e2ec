// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one entry point for bytes from the network.
//!
//! 1. Version and type are looked at, where all versions have them.
//! 2. The packet is cut off the datagram by its length field (DATA: or the datagram's end).
//! 3. The type's own file parses exactly those bytes.
//!
//! A packet that cannot be parsed costs the rest of its datagram too (SPEC §3), but for unknown
//! types of a known length.

use core::fmt;

use crate::control::Control;
use crate::cookie::Cookie;
use crate::data::Data;
use crate::error::ParseError;
use crate::handshake::Handshake;
use crate::limits::TAG_LEN;
use crate::packet_type::PacketType;
use crate::prefix::{HEADER_WORDS_OTHER, Prefix, header_words};
use crate::reset::Reset;
use crate::unavailable::Unavailable;
use crate::version_answer::VersionAnswer;

/// A packet: fields copied, bytes as views of the datagram.
///
/// Exhaustive on purpose: a new kind shall fail to compile wherever packets are handled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Packet<'a> {
    /// Bytes of a message's record stream.
    Data(Data<'a>),
    /// A control packet of any type.
    Control(Control<'a>),
    /// A fragment of a flight.
    Handshake(Handshake<'a>),
    /// A server under load.
    Cookie(Cookie<'a>),
    /// The versions that a host speaks.
    VersionAnswer(VersionAnswer<'a>),
    /// The session is no more.
    Reset(Reset),
    /// A server takes no client now.
    Unavailable(Unavailable),
}

impl Packet<'_> {
    /// Its type.
    pub fn packet_type(&self) -> PacketType {
        match self {
            Self::Data(_) => PacketType::Data,
            Self::Control(control) => control.body.packet_type(),
            Self::Handshake(_) => PacketType::Handshake,
            Self::Cookie(_) => PacketType::Cookie,
            Self::VersionAnswer(_) => PacketType::VersionAnswer,
            Self::Reset(_) => PacketType::Reset,
            Self::Unavailable(_) => PacketType::Unavailable,
        }
    }
}

impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(data) => data.fmt(f),
            Self::Control(control) => control.fmt(f),
            Self::Handshake(handshake) => handshake.fmt(f),
            Self::Cookie(cookie) => cookie.fmt(f),
            Self::VersionAnswer(answer) => answer.fmt(f),
            Self::Reset(reset) => reset.fmt(f),
            Self::Unavailable(unavailable) => unavailable.fmt(f),
        }
    }
}

/// Splits the first packet off a datagram; the rest, which may be empty, may hold more.
///
/// A VERSION answer is parsed whatever `version` is.
///
/// # Errors
/// The packet and the rest of the datagram are to be dropped and counted; only after
/// [`ParseError::UnknownType`] with a length the datagram goes on behind it.
pub fn parse(version: u8, datagram: &[u8]) -> Result<(Packet<'_>, &[u8]), ParseError> {
    let Some(&first) = datagram.first() else {
        return Err(ParseError::Empty);
    };
    let ty = datagram.get(1).copied();
    let is_version_answer = first == 0 && ty == Some(PacketType::VersionAnswer as u8);
    // Other versions may have another prefix: nothing more is looked at. A lone 0 is cut short.
    if !is_version_answer && first != version && (first != 0 || ty.is_some()) {
        return Err(ParseError::UnknownVersion(first));
    }
    let Some(bytes) = datagram.first_chunk() else {
        return Err(ParseError::Truncated);
    };
    let prefix = Prefix::read(bytes);
    let (ty, packet, rest) = cut(&prefix, datagram)?;
    let packet = match ty {
        PacketType::Data => Packet::Data(Data::parse(&prefix, packet)?),
        PacketType::Handshake => Packet::Handshake(Handshake::parse(packet)?),
        PacketType::Cookie => Packet::Cookie(Cookie::parse(packet)?),
        PacketType::VersionAnswer if !is_version_answer => {
            return Err(ParseError::Malformed("VERSION with a version byte other than 0"));
        }
        PacketType::VersionAnswer => Packet::VersionAnswer(VersionAnswer::parse(packet)?),
        PacketType::Reset => Packet::Reset(Reset::parse(packet)?),
        PacketType::Unavailable => Packet::Unavailable(Unavailable::parse(packet)?),
        control => Packet::Control(Control::parse(control, &prefix, packet)?),
    };
    Ok((packet, rest))
}

/// Cuts the packet off the datagram: its type, its bytes, the rest.
fn cut<'a>(
    prefix: &Prefix,
    datagram: &'a [u8],
) -> Result<(PacketType, &'a [u8], &'a [u8]), ParseError> {
    let ty = PacketType::try_from(prefix.ty);
    if prefix.header_words != ty.map_or(HEADER_WORDS_OTHER, header_words) {
        return Err(ParseError::Malformed("header words other than the type's"));
    }
    let length = usize::from(prefix.length);
    if length != 0 && length < Prefix::LEN {
        return Err(ParseError::Malformed("length below that of the prefix"));
    }
    if length > datagram.len() {
        return Err(ParseError::Truncated);
    }
    match ty {
        Err(unknown) => Err(ParseError::UnknownType { ty: unknown.0, length }),
        Ok(PacketType::Data) if length == 0 => Ok((PacketType::Data, datagram, &[])),
        Ok(_) if length == 0 => Err(ParseError::Malformed("length 0 in a packet that is not DATA")),
        Ok(ty) => {
            let (packet, rest) = datagram.split_at(length);
            Ok((ty, packet, rest))
        }
    }
}

// Every control packet is longer than the prefix that `cut` demands.
const _: () = assert!(crate::ControlHeader::LEN + TAG_LEN > Prefix::LEN);

#[cfg(test)]
mod tests;
