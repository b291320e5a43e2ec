// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flights of the handshake as packets: fragmentation, padding, reassembly (SPEC §6.1, §6.2).
//!
//! No byte here is authenticated; a wrong fragment costs the attempt, which the client begins anew.

use alloc::vec;
use alloc::vec::Vec;
use smt_wire::{COOKIE_MAX, FlightBody, Handshake, SessionIndex};

use crate::collections::byte_ranges::{ByteRange, ByteRanges};
use crate::key_exchange::Input;
use crate::limits::{DATAGRAM_FLOOR, DATAGRAM_LIMIT, FLIGHT_BYTES_MAX, FLIGHT_PIECES_MAX};
use crate::send::batch::DatagramBatch;
use crate::send::buffer::TransmitBuffer;

/// A flight on its way in.
#[derive(Debug, Default)]
pub(crate) struct FlightAssembly {
    /// The flight's sender and its length, as the first fragment says.
    name: Option<(SessionIndex, u32)>,
    bytes: Vec<u8>,
    filled: ByteRanges,
}

impl FlightAssembly {
    /// Adds a fragment; the body if it is whole now. A fragment of another flight begins anew, and
    /// so does one that makes too many pieces: a forged fragment cannot be told from a genuine one,
    /// and this way it does not last.
    pub(crate) fn add(&mut self, packet: &Handshake<'_>) -> Option<Vec<u8>> {
        let length = packet.flight_length as usize;
        let start = packet.offset as usize;
        let end = start + packet.fragment.len();
        if length > FLIGHT_BYTES_MAX || end > length {
            return None;
        }
        let name = Some((packet.source, packet.flight_length));
        if self.name != name {
            // The memory is kept: a sender that changes lengths with each small packet would have
            // it cleared each time.
            self.name = name;
            self.filled.clear();
        }
        if self.filled.len() >= FLIGHT_PIECES_MAX {
            self.filled.clear();
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(packet.fragment);
        self.filled.insert(ByteRange { start: packet.offset, end: end as u32 });
        self.filled.is_whole(packet.flight_length).then(|| {
            let mut body = core::mem::take(&mut self.bytes);
            body.truncate(length);
            body
        })
    }
}

/// All bytes of a flight of the peer.
#[derive(Clone, Copy)]
pub(crate) struct WholeFlight<'a> {
    pub(crate) number: u8,
    pub(crate) body: &'a [u8],
}

/// A whole flight as a key exchange takes it.
pub(crate) const fn flight_of<'a>(number: u8, body: &FlightBody<'a>) -> Input<'a> {
    Input::Flight { number, params: body.params, bytes: body.key_exchange }
}

/// A flight to be sent, perhaps again.
#[derive(Debug)]
pub(crate) struct FlightOut {
    pub(crate) number: u8,
    body: Vec<u8>,
}

/// Where a flight goes, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlightRoute<'a> {
    pub(crate) version: u8,
    pub(crate) destination: SessionIndex,
    pub(crate) source: SessionIndex,
    pub(crate) cookie: &'a [u8],
    /// A client fills its datagrams to the floor.
    pub(crate) is_padded: bool,
}

impl FlightOut {
    /// A flight of these bytes; `None` if it is longer than [`OWN_FLIGHT_MAX`].
    pub(crate) fn new(number: u8, params: &[u8], bytes: &[u8]) -> Option<Self> {
        let flight = FlightBody { params, key_exchange: bytes };
        if flight.flight_len() > OWN_FLIGHT_MAX {
            return None;
        }
        let mut body = vec![0; flight.flight_len()];
        flight.emit(&mut body);
        Some(Self { number, body })
    }

    /// Bytes on the wire, without cookie and padding of the last datagram.
    pub(crate) fn wire_len(&self) -> usize {
        let before = self.body.len().div_ceil(FRAGMENT_MAX) - 1;
        let last = self.body.len() - before * FRAGMENT_MAX;
        before * DATAGRAM_FLOOR + Handshake::HEADER_LEN + last
    }

    /// A flight of these bytes without parameters; `None` if it does not fit in one packet with
    /// CONFIRM behind it.
    pub(crate) fn in_one_packet(number: u8, bytes: &[u8]) -> Option<Self> {
        Self::new(number, &[], bytes).filter(|flight| flight.body.len() <= FRAGMENT_MAX)
    }

    /// Appends a flight of one packet.
    pub(crate) fn append(&self, route: FlightRoute<'_>, out: &mut TransmitBuffer) {
        let packet = Handshake {
            destination: route.destination,
            source: route.source,
            flight: self.number,
            cookie: route.cookie,
            flight_length: self.body.len() as u32,
            offset: 0,
            fragment: &self.body,
        };
        let start = out.len();
        let room = Handshake::HEADER_LEN + route.cookie.len() + self.body.len();
        let length = packet.emit(route.version, 0, out.grow_zeroed(room));
        out.truncate(start + length);
    }

    /// Writes the flight as datagrams of equal size; `tail` bytes, if any, follow in the last one.
    pub(crate) fn write(&self, route: FlightRoute<'_>, tail: &[u8], batch: &mut DatagramBatch<'_>) {
        let most = FRAGMENT_MAX - route.cookie.len();
        let mut offset = 0;
        loop {
            let fragment = &self.body[offset..self.body.len().min(offset + most)];
            let is_last = offset + fragment.len() == self.body.len();
            let tail = if is_last { tail } else { &[] };
            let packet = Handshake {
                destination: route.destination,
                source: route.source,
                flight: self.number,
                cookie: route.cookie,
                flight_length: self.body.len() as u32,
                offset: offset as u32,
                fragment,
            };
            let start = batch.bytes.len();
            // All but the last are full anyway; the floor makes them equal, as one segmented send
            // needs.
            let padded_to =
                if route.is_padded || !is_last { DATAGRAM_FLOOR - tail.len() } else { 0 };
            let length =
                packet.emit(route.version, padded_to, batch.bytes.grow_zeroed(DATAGRAM_FLOOR));
            batch.bytes.truncate(start + length);
            batch.bytes.append(tail);
            batch.close_datagram(length + tail.len());
            offset += fragment.len();
            if is_last {
                return;
            }
        }
    }
}

/// Fragment bytes of a datagram of the floor's size, with room for CONFIRM (60 bytes) behind it.
const FRAGMENT_MAX: usize = DATAGRAM_FLOOR - Handshake::HEADER_LEN - 60;
/// Bytes of a flight that this side sends: all its datagrams leave at once, 54 of them, the cookie
/// the longest there is. A peer may send more ([`FLIGHT_BYTES_MAX`]).
pub(crate) const OWN_FLIGHT_MAX: usize =
    DATAGRAM_LIMIT as usize / DATAGRAM_FLOOR * (FRAGMENT_MAX - COOKIE_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CAPABILITIES;
    use crate::send::batch::BatchLimits;
    use smt_wire::{Packet, VERSION, parse};

    fn route(cookie: &[u8]) -> FlightRoute<'_> {
        FlightRoute {
            version: VERSION,
            destination: SessionIndex(0),
            source: SessionIndex(7),
            cookie,
            is_padded: true,
        }
    }

    #[test]
    fn a_flight_comes_together_in_any_order_and_each_datagram_is_padded() {
        let flight = FlightOut::new(1, &[1; 90], &[2; 5_000]).unwrap();
        let mut bytes = TransmitBuffer::default();
        let mut batch = DatagramBatch::new(&mut bytes, BatchLimits::of_carrier(&CAPABILITIES));
        flight.write(route(&[9; 24]), &[], &mut batch);
        let datagrams: Vec<&[u8]> = bytes.chunks(DATAGRAM_FLOOR).collect();
        assert!(datagrams.iter().all(|datagram| datagram.len() == DATAGRAM_FLOOR));
        let mut assembly = FlightAssembly::default();
        let mut whole = None;
        for datagram in datagrams.iter().rev() {
            assert!(whole.is_none());
            let (Packet::Handshake(packet), rest) = parse(VERSION, datagram).unwrap() else {
                panic!("no handshake")
            };
            assert!(rest.is_empty());
            assert_eq!(packet.cookie, [9; 24]);
            whole = assembly.add(&packet);
        }
        let body = whole.unwrap();
        let expected = FlightBody { params: &[1; 90], key_exchange: &[2; 5_000] };
        assert_eq!(FlightBody::parse(&body), Ok(expected));
    }

    #[test]
    fn the_length_on_the_wire_is_what_is_written() {
        for length in [0, 1, 1_097, 1_098, 1_099, 5_000] {
            let flight = FlightOut::new(2, &[], &vec![7; length]).unwrap();
            let mut bytes = TransmitBuffer::default();
            let unpadded = FlightRoute { is_padded: false, ..route(&[]) };
            flight.write(
                unpadded,
                &[],
                &mut DatagramBatch::new(&mut bytes, BatchLimits::of_carrier(&CAPABILITIES)),
            );
            assert_eq!(flight.wire_len(), bytes.len(), "{length} bytes");
        }
    }

    #[test]
    fn a_flight_of_one_packet_leaves_room_for_confirm() {
        let flight = |length: usize| FlightOut::in_one_packet(4, &vec![7; length]);
        // The flight's body begins with the length of its parameters.
        assert!(flight(FRAGMENT_MAX - 1).is_none());
        let flight = flight(FRAGMENT_MAX - 2).unwrap();
        let unpadded = FlightRoute { is_padded: false, ..route(&[]) };
        let (mut appended, mut written) = (TransmitBuffer::default(), TransmitBuffer::default());
        flight.append(unpadded, &mut appended);
        let mut batch = DatagramBatch::new(&mut written, BatchLimits::of_carrier(&CAPABILITIES));
        flight.write(unpadded, &[], &mut batch);
        assert_eq!(appended[..], written[..]);
        assert_eq!(appended.len() + 60, DATAGRAM_FLOOR);
    }

    #[test]
    fn a_forged_fragment_does_not_last() {
        let flight = |length, source, fragment| Handshake {
            destination: SessionIndex(0),
            source: SessionIndex(source),
            flight: 1,
            cookie: &[],
            flight_length: length,
            offset: 0,
            fragment,
        };
        for forged in [flight(9, 7, &[0][..]), flight(3, 8, &[0][..])] {
            let mut assembly = FlightAssembly::default();
            assert_eq!(assembly.add(&forged), None);
            assert_eq!(assembly.add(&flight(3, 7, &[1, 2, 3])), Some(vec![1, 2, 3]));
        }
    }

    // SMT [6.2-1]
    #[test]
    fn fragments_of_two_senders_are_not_put_together() {
        let fragment = |source, offset, fragment| Handshake {
            destination: SessionIndex(0),
            source: SessionIndex(source),
            flight: 1,
            cookie: &[],
            flight_length: 3,
            offset,
            fragment,
        };
        let mut assembly = FlightAssembly::default();
        assert_eq!(assembly.add(&fragment(7, 0, &[1])), None);
        assert_eq!(assembly.add(&fragment(8, 1, &[2, 3])), None);
        assert_eq!(assembly.add(&fragment(8, 0, &[4])), Some(vec![4, 2, 3]));
    }

    /// A sender that changes the length with each small packet causes one allocation.
    #[test]
    fn a_flight_that_begins_anew_takes_the_memory_of_the_one_before() {
        let fragment = |length, offset, fragment| Handshake {
            destination: SessionIndex(0),
            source: SessionIndex(7),
            flight: 1,
            cookie: &[],
            flight_length: length,
            offset,
            fragment,
        };
        let mut assembly = FlightAssembly::default();
        assert_eq!(assembly.add(&fragment(65_536, 65_535, &[9])), None);
        let memory = assembly.bytes.as_ptr();
        assert_eq!(assembly.add(&fragment(65_535, 65_534, &[9])), None);
        assert_eq!((assembly.bytes.as_ptr(), assembly.bytes.len()), (memory, 65_536));
        // Bytes of the former flight are not in the one that comes whole.
        assert_eq!(assembly.add(&fragment(3, 1, &[2, 3])), None);
        assert_eq!(assembly.add(&fragment(3, 0, &[1])), Some(vec![1, 2, 3]));
    }

    #[test]
    fn many_forged_pieces_are_not_kept_and_do_not_last() {
        let fragment = |offset, fragment| Handshake {
            destination: SessionIndex(0),
            source: SessionIndex(7),
            flight: 1,
            cookie: &[],
            flight_length: 65_000,
            offset,
            fragment,
        };
        let mut assembly = FlightAssembly::default();
        for number in (0..32_000).rev() {
            assert_eq!(assembly.add(&fragment(2 * number, &[0])), None);
            assert!(assembly.filled.len() <= FLIGHT_PIECES_MAX);
        }
        let genuine = vec![1; 65_000];
        let mut whole = genuine
            .chunks(1_100)
            .enumerate()
            .map(|(at, part)| assembly.add(&fragment(1_100 * at as u32, part)));
        assert_eq!(whole.find_map(|body| body), Some(genuine.clone()));
    }

    #[test]
    fn a_claimed_length_allocates_nothing() {
        let packet = Handshake {
            destination: SessionIndex(0),
            source: SessionIndex(7),
            flight: 1,
            cookie: &[],
            flight_length: u32::MAX,
            offset: u32::MAX - 4,
            fragment: &[1, 2, 3],
        };
        let mut assembly = FlightAssembly::default();
        assert_eq!(assembly.add(&packet), None);
        assert_eq!(assembly.bytes.capacity(), 0);
    }
}
