// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets from the wire: header protection off, number restored, payload opened.
//!
//! Nothing changes before a packet has authenticated, and a packet that does not is handed up as it
//! came: it may be a stateless reset, or sealed by keys that only the host has.

use core::ops::Range;

use super::connection::Phase;
use super::header_key::SAMPLE;
use super::number_window::Freshness;
use super::packet_key::TAG;
use super::packet_number::restore;
use super::{ConnectionId, Handle, QuicEngine};

/// The outcome of a packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Received {
    /// It was opened in place.
    Opened(Opened),
    /// Its bytes are as they came: the host's software is to look at it.
    Untouched(Untouched),
}

/// A packet that was opened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Opened {
    /// The connection that it is of.
    pub connection: Handle,
    /// Its whole number.
    pub number: u64,
    /// The key phase that opened it, counted from 0.
    pub generation: u64,
    /// Where its frames are. The header before them is without its protection.
    pub payload: Range<usize>,
    /// Whether its number was taken before.
    pub freshness: Freshness,
    /// Its reserved bits are not zero, for which the host ends the connection (RFC 9000 §17.3.1).
    pub has_reserved_bits: bool,
}

/// Why a packet was left as it came.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Untouched {
    /// A long header: handshakes, retries and version negotiation are the host's. Packets behind it
    /// in the datagram are so, too.
    LongHeader,
    /// No connection has its id.
    UnknownConnection,
    /// It is too short for a sample and a tag.
    TooShort,
    /// The key of its phase is not there, or its number is one of an earlier phase.
    NoKey,
    /// It did not open. It counts towards the integrity limit.
    NotOpened,
    /// Too many packets of the connection have failed: it must end (RFC 9001 §6.6).
    IntegrityLimit,
}

/// The header of a packet with its protection off.
struct Header {
    /// The first byte, and all up to the number's end.
    bytes: [u8; HEADER_MAX],
    length: usize,
    number: u64,
}

impl QuicEngine {
    /// Takes one datagram, which is one packet: a short header is the last of its datagram.
    pub fn receive(&mut self, packet: &mut [u8]) -> Received {
        let received = self.open(packet);
        self.counters.count(&received);
        received
    }

    fn open(&mut self, packet: &mut [u8]) -> Received {
        use Received::Untouched as U;
        let id_length = self.id_length;
        let Some(first) = packet.first() else {
            return U(Untouched::TooShort);
        };
        if first & LONG != 0 {
            return U(Untouched::LongHeader);
        }
        let number_at = 1 + id_length;
        let sample = packet.get(number_at + 4..number_at + 4 + SAMPLE);
        let Some(sample) = sample.and_then(|sample| sample.first_chunk::<SAMPLE>()) else {
            return U(Untouched::TooShort);
        };
        let id = ConnectionId::new(&packet[1..number_at]);
        let handle = id.and_then(|id| self.ids.get(&id));
        let Some((handle, connection)) =
            handle.and_then(|handle| Some((handle, self.connections.get_mut(handle)?)))
        else {
            return U(Untouched::UnknownConnection);
        };
        if connection.is_used_up() {
            return U(Untouched::IntegrityLimit);
        }
        let mask = connection.receive.header.mask(sample);
        let largest = connection.numbers.largest();
        let Some(header) = Header::of(packet, number_at, mask, largest) else {
            connection.count_failures(1);
            return U(Untouched::NotOpened);
        };
        let phase = connection.receive.phase_of(header.bytes[0] & KEY_PHASE != 0, header.number);
        // A packet of the next phase has a higher number than all of this one (RFC 9001 §6.4).
        let is_late = phase == Phase::Next && largest.is_some_and(|of| header.number < of);
        let key = connection.receive.key(phase).filter(|_| !is_late);
        let Some(key) = key else {
            return U(Untouched::NoKey);
        };
        let payload = &mut packet[header.length..];
        if key.open(header.number, header.bytes(), payload).is_err() {
            connection.count_failures(1);
            return U(Untouched::NotOpened);
        }
        let end = packet.len() - TAG;
        packet[..header.length].copy_from_slice(header.bytes());
        let taken = connection.take(phase, header.number);
        self.connections.touch(handle);
        Received::Opened(Opened {
            connection: handle,
            number: header.number,
            generation: taken.generation,
            payload: header.length..end,
            freshness: taken.freshness,
            has_reserved_bits: header.bytes[0] & RESERVED != 0,
        })
    }
}

impl Header {
    /// `None` if there is no such number.
    fn of(packet: &[u8], number_at: usize, mask: [u8; 5], largest: Option<u64>) -> Option<Self> {
        let mut bytes = [0; HEADER_MAX];
        let most = number_at + 4;
        bytes[..most].copy_from_slice(packet.get(..most)?);
        bytes[0] ^= mask[0] & SHORT_MASKED;
        let number_bytes = usize::from(bytes[0] & NUMBER_BYTES) + 1;
        let length = number_at + number_bytes;
        let mut truncated = 0;
        for (byte, mask) in bytes[number_at..length].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
            truncated = truncated << 8 | u64::from(*byte);
        }
        let number = restore(largest, truncated, number_bytes)?;
        Some(Self { bytes, length, number })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The bit of a long header (RFC 9000 §17.2).
pub(super) const LONG: u8 = 0x80;
/// The fields of a short header's first byte (RFC 9000 §17.3.1).
pub(super) const RESERVED: u8 = 0x18;
pub(super) const KEY_PHASE: u8 = 0x04;
pub(super) const NUMBER_BYTES: u8 = 0x03;
/// The bits of a short header's first byte that are protected (RFC 9001 §5.4.1).
pub(super) const SHORT_MASKED: u8 = 0x1f;
/// First byte, id and number.
const HEADER_MAX: usize = 1 + super::ID_BYTES_MAX + 4;
