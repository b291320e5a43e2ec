// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT natively over IP: the header before a datagram, and segments that a device cuts into packets
//! (SPEC §15.2).
//!
//! A device that cuts a segment copies its headers into each packet, so the DATA headers of all
//! packets have the segment's offset. The packets differ by what such devices count for TCP: IPv4's
//! identification, and PSH in the last packet alone. The segment's header has the stride beside,
//! and a packet's own offset follows.

use core::num::NonZeroU16;

use crate::data::DataHeader;
use crate::error::ParseError;
use crate::field::{put, u16_at, u32_at};
use crate::packet_type::PacketType;
use crate::prefix::HEADER_WORDS_DATA;

/// The eight bytes before a datagram: TCP's ports and sequence number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NativeHeader {
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
}

impl NativeHeader {
    /// Bytes of the header.
    pub const LEN: usize = 8;

    /// The header with the sequence field 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let [s0, s1] = self.source.to_be_bytes();
        let [d0, d1] = self.destination.to_be_bytes();
        [s0, s1, d0, d1, 0, 0, 0, 0]
    }

    /// The header at the beginning of `bytes`, and the datagram behind it. `None` if `bytes` are
    /// too few.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (header, datagram) = bytes.split_first_chunk::<{ Self::LEN }>()?;
        let [s0, s1, d0, d1, ..] = *header;
        let header = Self {
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
        };
        Some((header, datagram))
    }
}

/// Marks the DATA header of a segment that a device will cut into packets of `stride` bytes of
/// payload.
pub fn mark_segment(header: &mut [u8; DataHeader::LEN], stride: NonZeroU16) {
    header[FLAGS] = PSH;
    put(header, STRIDE, &stride.get().to_be_bytes());
}

/// Gives a packet of a marked segment its own offset, and takes the mark off: the packet is then as
/// if it had left alone. Other packets stay as they are. `identification` is IPv4's; `None` says
/// that the packet came by IPv6, where a segment has two packets.
///
/// # Errors
/// The packet has no place in any segment.
pub fn unmark_segment(packet: &mut [u8], identification: Option<u16>) -> Result<(), ParseError> {
    let Some(header) = packet.first_chunk_mut::<{ DataHeader::LEN }>() else {
        return Ok(());
    };
    let stride = u16_at(header, STRIDE);
    let is_data =
        header[TYPE] == PacketType::Data as u8 && header[HEADER_WORDS] == HEADER_WORDS_DATA;
    if !is_data || stride == 0 {
        return Ok(());
    }
    let place = match identification {
        Some(identification) => identification.checked_sub(1),
        None => Some(u16::from(header[FLAGS] & PSH != 0)),
    };
    let distance = place.map(|place| u32::from(place) * u32::from(stride));
    let offset = distance.and_then(|distance| u32_at(header, OFFSET).checked_add(distance));
    let offset = offset.ok_or(ParseError::Malformed("a packet without a place in its segment"))?;
    put(header, OFFSET, &offset.to_be_bytes());
    put(header, STRIDE, &[0; 2]);
    header[FLAGS] = 0;
    Ok(())
}

/// The identification of the first packet of a segment over IPv4. Not 0, which some senders'
/// systems replace.
pub const FIRST_IDENTIFICATION: u16 = 1;

/// The packet's type.
const TYPE: usize = 1;
/// The header's words; TCP's data offset.
const HEADER_WORDS: usize = 4;
/// TCP's flags.
const FLAGS: usize = 5;
const PSH: u8 = 0x08;
/// The place of the payload in the record stream: the last four bytes.
const OFFSET: core::ops::Range<usize> = 32..36;
/// The payload bytes of all packets of a segment but the last; TCP's urgent pointer.
const STRIDE: core::ops::Range<usize> = 10..12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{MessageId, SessionIndex};
    use crate::limits::VERSION;

    fn header(offset: u32) -> [u8; DataHeader::LEN] {
        let mut bytes = [0; DataHeader::LEN];
        let header = DataHeader {
            epoch: 3,
            retransmit: false,
            session: SessionIndex(7),
            id: MessageId(9),
            message_length: 100_000,
            offset,
        };
        header.emit(VERSION, &mut bytes);
        bytes
    }

    fn marked(offset: u32, stride: u16) -> [u8; DataHeader::LEN] {
        let mut bytes = header(offset);
        mark_segment(&mut bytes, NonZeroU16::new(stride).unwrap());
        bytes
    }

    // SMT [15.2-3]
    #[test]
    fn a_native_header_is_read_as_it_was_written() {
        let header = NativeHeader { source: 0x0102, destination: 0xFFFE };
        let bytes = [&header.to_bytes()[..], b"rest"].concat();
        assert_eq!(bytes[..8], [1, 2, 0xFF, 0xFE, 0, 0, 0, 0]);
        assert_eq!(NativeHeader::parse(&bytes), Some((header, &b"rest"[..])));
        assert_eq!(NativeHeader::parse(&bytes[..7]), None);
        let sequenced = [&bytes[..4], &[0xFF; 4], b"rest"].concat();
        assert_eq!(NativeHeader::parse(&sequenced), Some((header, &b"rest"[..])));
    }

    // SMT [15.2-6]
    #[test]
    fn the_identification_tells_a_packets_offset() {
        for (identification, offset) in [(1, 500), (2, 1_900), (45, 500 + 44 * 1_400)] {
            let mut packet = marked(500, 1_400);
            unmark_segment(&mut packet, Some(identification)).unwrap();
            assert_eq!(packet, header(offset));
        }
    }

    // SMT [15.2-7]
    #[test]
    fn the_flag_tells_the_second_of_two_packets_over_ipv6() {
        let mut first = marked(500, 1_400);
        first[FLAGS] = 0;
        let mut second = marked(500, 1_400);
        for packet in [&mut first, &mut second] {
            unmark_segment(packet, None).unwrap();
        }
        assert_eq!([first, second], [header(500), header(1_900)]);
    }

    #[test]
    fn a_packet_without_a_mark_stays_as_it_is() {
        let mut packet = header(500);
        unmark_segment(&mut packet, Some(77)).unwrap();
        assert_eq!(packet, header(500));
        let mut control = marked(500, 1_400);
        control[TYPE] = PacketType::Grant as u8;
        let before = control;
        unmark_segment(&mut control, Some(2)).unwrap();
        assert_eq!(control, before);
        unmark_segment(&mut control[..35], Some(2)).unwrap();
    }

    #[test]
    fn a_packet_without_a_place_is_refused() {
        assert!(unmark_segment(&mut marked(500, 1_400), Some(0)).is_err());
        assert!(unmark_segment(&mut marked(u32::MAX - 10, 1_400), Some(2)).is_err());
    }
}
