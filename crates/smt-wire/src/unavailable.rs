// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UNAVAILABLE: a server takes no client now (SPEC §12.4).
//!
//! Protected by nothing, and a hint: a client's reaction to it is not known here.

use core::fmt;

use crate::error::ParseError;
use crate::field::{put, u16_at, u64_at};
use crate::ids::SessionIndex;
use crate::packet_type::PacketType;
use crate::prefix::Prefix;

/// An UNAVAILABLE packet. Set by a server; a NIC leaves it alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unavailable {
    /// The client's session index of this attempt: the source of the packet that is answered.
    pub destination: SessionIndex,
    /// Why (SPEC §12.4); any value is well formed.
    pub code: u16,
}

impl Unavailable {
    /// Bytes of the packet.
    pub const LEN: usize = 22;

    /// Writes the packet.
    pub fn emit(&self, version: u8, out: &mut [u8; Self::LEN]) {
        Prefix::new(version, PacketType::Unavailable, Self::LEN as u16).write(out);
        put(out, field::DESTINATION, &self.destination.0.to_be_bytes());
        put(out, field::CODE, &self.code.to_be_bytes());
    }

    /// Parses a packet of exactly its length.
    pub(crate) fn parse(packet: &[u8]) -> Result<Self, ParseError> {
        let Ok(bytes) = <&[u8; Self::LEN]>::try_from(packet) else {
            return Err(ParseError::Malformed("UNAVAILABLE of another length than 22"));
        };
        Ok(Self {
            destination: SessionIndex(u64_at(bytes, field::DESTINATION)),
            code: u16_at(bytes, field::CODE),
        })
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { destination, code } = self;
        write!(f, "UNAVAILABLE session {destination} code {code}")
    }
}

pub(crate) mod field {
    crate::layout::fields! {
        DESTINATION = 12..20;
        CODE = 20..22;
    }
}

const _: () = assert!(field::DESTINATION.start == Prefix::LEN);
const _: () = assert!(field::CODE.end == Unavailable::LEN);
