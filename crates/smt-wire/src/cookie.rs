// SPDX-License-Identifier: Apache-2.0 OR MIT
//! COOKIE: a server under load asks the client to come again (SPEC §6.4).
//!
//! Protected by nothing; the cookie is opaque to the client. How it is made is not known here.

use core::fmt;

use crate::error::ParseError;
use crate::field::{put, u64_at};
use crate::ids::SessionIndex;
use crate::limits::COOKIE_MAX;
use crate::packet_type::PacketType;
use crate::prefix::Prefix;

/// A COOKIE packet. Set by a server; a NIC leaves it alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cookie<'a> {
    /// The client's session index of this attempt: the source of the packet that is answered.
    pub destination: SessionIndex,
    /// 1 to 64 bytes, which the client repeats in every HANDSHAKE packet of the attempt.
    pub cookie: &'a [u8],
}

impl Cookie<'_> {
    /// Bytes before the cookie.
    pub const HEADER_LEN: usize = 20;

    /// Writes the packet to the front of `out`; returns its length.
    ///
    /// # Panics
    /// If the cookie has no byte or more than 64, or `out` is too short.
    pub fn emit(&self, version: u8, out: &mut [u8]) -> usize {
        assert!((1..=COOKIE_MAX).contains(&self.cookie.len()), "a cookie has 1 to 64 bytes");
        let length = Self::HEADER_LEN + self.cookie.len();
        Prefix::new(version, PacketType::Cookie, length as u16).write(out); // at most 84
        put(out, field::DESTINATION, &self.destination.0.to_be_bytes());
        put(out, Self::HEADER_LEN..length, self.cookie);
        length
    }
}

impl<'a> Cookie<'a> {
    /// Parses a packet of exactly its length.
    pub(crate) fn parse(packet: &'a [u8]) -> Result<Self, ParseError> {
        let Some((bytes, cookie)) = packet.split_first_chunk::<{ Cookie::HEADER_LEN }>() else {
            return Err(ParseError::Malformed("COOKIE shorter than its header"));
        };
        if cookie.is_empty() || cookie.len() > COOKIE_MAX {
            return Err(ParseError::Malformed("COOKIE with no byte, or more than 64"));
        }
        Ok(Self { destination: SessionIndex(u64_at(bytes, field::DESTINATION)), cookie })
    }
}

impl fmt::Display for Cookie<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "COOKIE session {} cookie {}", self.destination, self.cookie.len())
    }
}

pub(crate) mod field {
    crate::layout::fields! {
        DESTINATION = 12..20;
    }
}

const _: () = assert!(field::DESTINATION.start == Prefix::LEN);
const _: () = assert!(field::DESTINATION.end == Cookie::HEADER_LEN);
