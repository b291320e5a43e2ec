// SPDX-License-Identifier: Apache-2.0 OR MIT
//! HANDSHAKE: a fragment of a flight (SPEC §6.2).
//!
//! No HANDSHAKE packet is trusted: TLS inside protects itself. A NIC leaves these packets alone.
//! Not here: reassembly, retransmission and the contents of a flight (see `flight.rs`).

use core::fmt;

use crate::error::ParseError;
use crate::field::{put, u16_at, u32_at, u64_at};
use crate::ids::SessionIndex;
use crate::limits::{COOKIE_MAX, FLIGHT_LEN_MAX, FLIGHTS_MAX};
use crate::packet_type::PacketType;
use crate::prefix::Prefix;

/// A HANDSHAKE packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Handshake<'a> {
    /// The receiver's session index; 0 in flight 1, when the client knows none.
    pub destination: SessionIndex,
    /// The sender's session index of this attempt, not 0.
    pub source: SessionIndex,
    /// 1..=7; odd ones are the client's.
    pub flight: u8,
    /// The cookie that a COOKIE packet gave the client, at most 64 bytes; empty if there was none.
    pub cookie: &'a [u8],
    /// Bytes of the flight's whole body, at most 65,536.
    pub flight_length: u32,
    /// Place of the fragment in the flight's body, in bytes.
    pub offset: u32,
    /// Bytes of the flight's body; they end within `flight_length`.
    pub fragment: &'a [u8],
}

impl Handshake<'_> {
    /// Bytes before the cookie.
    pub const HEADER_LEN: usize = 40;

    /// Bytes of the packet without trailing zeros.
    pub fn packet_len(&self) -> usize {
        Self::HEADER_LEN + self.cookie.len() + self.fragment.len()
    }

    /// Writes the packet to the front of `out`, followed by zeros up to `padded_to` bytes (0 for
    /// none); returns its length.
    ///
    /// # Panics
    /// If a field is out of its range, the packet longer than 65,535 bytes, or `out` too short.
    pub fn emit(&self, version: u8, padded_to: usize, out: &mut [u8]) -> usize {
        assert_eq!(self.check(), Ok(()), "this packet cannot be sent");
        let length = self.packet_len().max(padded_to);
        let packet = u16::try_from(length).expect("a packet is at most 65,535 bytes");
        let out = &mut out[..length];
        Prefix::new(version, PacketType::Handshake, packet).write(out);
        put(out, field::DESTINATION, &self.destination.0.to_be_bytes());
        put(out, field::SOURCE, &self.source.0.to_be_bytes());
        out[field::FLIGHT] = self.flight;
        out[field::COOKIE_LENGTH] = self.cookie.len() as u8; // at most 64, by `check`
        // Below the packet's length, which fits.
        put(out, field::FRAGMENT_LENGTH, &(self.fragment.len() as u16).to_be_bytes());
        put(out, field::FLIGHT_LENGTH, &self.flight_length.to_be_bytes());
        put(out, field::OFFSET, &self.offset.to_be_bytes());
        let fragment_start = Self::HEADER_LEN + self.cookie.len();
        put(out, Self::HEADER_LEN..fragment_start, self.cookie);
        put(out, fragment_start..self.packet_len(), self.fragment);
        out[self.packet_len()..].fill(0);
        length
    }

    fn check(&self) -> Result<(), ParseError> {
        if self.source.0 == 0 {
            return Err(ParseError::Malformed("HANDSHAKE with source index 0"));
        }
        if !(1..=FLIGHTS_MAX).contains(&self.flight) {
            return Err(ParseError::Malformed("HANDSHAKE of a flight other than 1 to 7"));
        }
        if self.cookie.len() > COOKIE_MAX {
            return Err(ParseError::Malformed("HANDSHAKE with a cookie of more than 64 bytes"));
        }
        if self.flight_length as usize > FLIGHT_LEN_MAX {
            return Err(ParseError::Malformed("HANDSHAKE of a flight of more than 65,536 bytes"));
        }
        if u64::from(self.offset) + self.fragment.len() as u64 > u64::from(self.flight_length) {
            return Err(ParseError::Malformed("HANDSHAKE with a fragment past its flight's end"));
        }
        Ok(())
    }
}

impl<'a> Handshake<'a> {
    /// Parses a packet of exactly its length.
    pub(crate) fn parse(packet: &'a [u8]) -> Result<Self, ParseError> {
        let Some((bytes, rest)) = packet.split_first_chunk::<{ Handshake::HEADER_LEN }>() else {
            return Err(ParseError::Malformed("HANDSHAKE shorter than its header"));
        };
        let cookie_length = usize::from(bytes[field::COOKIE_LENGTH]);
        let fragment_length = usize::from(u16_at(bytes, field::FRAGMENT_LENGTH));
        let Some((cookie, rest)) = rest.split_at_checked(cookie_length) else {
            return Err(ParseError::Malformed("HANDSHAKE with a cookie past its end"));
        };
        let Some((fragment, _zeros)) = rest.split_at_checked(fragment_length) else {
            return Err(ParseError::Malformed("HANDSHAKE with a fragment past its end"));
        };
        let handshake = Self {
            destination: SessionIndex(u64_at(bytes, field::DESTINATION)),
            source: SessionIndex(u64_at(bytes, field::SOURCE)),
            flight: bytes[field::FLIGHT],
            cookie,
            flight_length: u32_at(bytes, field::FLIGHT_LENGTH),
            offset: u32_at(bytes, field::OFFSET),
            fragment,
        };
        handshake.check().map(|()| handshake)
    }
}

impl fmt::Display for Handshake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { destination, source, flight, flight_length, offset, .. } = self;
        write!(
            f,
            "HANDSHAKE session {destination} source {source} flight {flight} length {flight_length} \
             offset {offset} fragment {} cookie {}",
            self.fragment.len(),
            self.cookie.len()
        )
    }
}

pub(crate) mod field {
    crate::layout::fields! {
        DESTINATION = 12..20;
        SOURCE = 20..28;
        FLIGHT = 28;
        COOKIE_LENGTH = 29;
        FRAGMENT_LENGTH = 30..32;
        FLIGHT_LENGTH = 32..36;
        OFFSET = 36..40;
    }
}

const _: () = assert!(field::DESTINATION.start == Prefix::LEN);
const _: () = assert!(field::OFFSET.end == Handshake::HEADER_LEN);

#[cfg(test)]
mod tests;
