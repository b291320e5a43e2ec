// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Segmentation: one segment of up to 64 KiB becomes packets of one stride each, the last perhaps
//! shorter, as TSO does.
//!
//! Each packet gets a copy of the headers, in which the device changes what it must:
//!
//! | field | change |
//! |:--|:--|
//! | IPv4 total length, IPv6 payload length, UDP length | the packet's own |
//! | IPv4 identification | counts up from the copy's, by 1 a packet |
//! | IPv4 header checksum | computed |
//! | TCP sequence number | grows by the payload before the packet |
//! | TCP flags, and SMT's byte in their place | FIN and PSH in the last packet alone, CWR in the first alone (RFC 3168 §6.1.2) |
//! | SMT sequence field | as TCP's if [`Cut::counts_smt_sequence`], else as it is: devices differ |
//! | checksum of TCP, UDP, SMT | computed if asked for |
//!
//! All other bytes are copied: SMT's session index, message id, message length and offset are among
//! them, and the identification tells a packet's place (SPEC §15.2, SMT paper §4.3).

use alloc::vec::Vec;

use crate::big_endian::{put_u16, u16_at};
use crate::headers::{Headers, IpVersion, Transport};

/// Bytes of the longest payload of a segment.
pub const SEGMENT_MAX: usize = 65_536;
/// Bytes of the longest headers: IPv4 with options, and TCP with options.
pub const HEADER_MAX: usize = 120;
/// Bytes of the longest packet, by the length fields of IPv4.
pub const PACKET_MAX: usize = 65_535;

/// How a segment is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cut {
    /// The places in the headers.
    pub headers: Headers,
    /// Payload bytes of each packet but the last; 0 leaves one packet.
    pub stride: usize,
    /// Whether checksums of the transport are computed.
    pub checksums: bool,
    /// Whether the sequence field of SMT grows as TCP's does.
    pub counts_smt_sequence: bool,
}

/// Cuts a segment, and hands each packet to `wire`. `packet` is the place where packets are made.
/// Returns how many there were; none if a packet would be longer than [`PACKET_MAX`], or if the
/// segment has no payload.
pub fn cut(
    segment: Segment<'_>,
    cut: &Cut,
    packet: &mut Vec<u8>,
    wire: &mut impl FnMut(&[u8]),
) -> u32 {
    let stride = match cut.stride {
        0 => segment.payload.len().max(1),
        stride => stride,
    };
    if segment.header.len() + stride.min(segment.payload.len()) > PACKET_MAX {
        return 0;
    }
    let mut packets = 0;
    let mut chunks = segment.payload.chunks(stride).peekable();
    while let Some(payload) = chunks.next() {
        packet.clear();
        packet.extend_from_slice(segment.header);
        packet.extend_from_slice(payload);
        let place = Place {
            number: packets,
            offset: packets.wrapping_mul(stride as u32),
            is_last: chunks.peek().is_none(),
        };
        cut.finish(packet, place);
        wire(packet);
        packets += 1;
    }
    packets
}

/// A segment: headers, and the payload behind them.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The headers, from IP up to the payload.
    pub header: &'a [u8],
    /// The payload.
    pub payload: &'a [u8],
}

/// A packet's place in its segment.
#[derive(Clone, Copy, Debug)]
struct Place {
    number: u32,
    /// Bytes of payload before it.
    offset: u32,
    is_last: bool,
}

impl Cut {
    /// How many packets a payload becomes, and the bytes of the longest.
    #[must_use]
    pub fn packets(&self, payload: usize) -> (u64, usize) {
        let stride = match self.stride {
            0 => payload.max(1),
            stride => stride,
        };
        let longest = self.headers.payload_at + stride.min(payload);
        (payload.div_ceil(stride) as u64, longest)
    }

    /// Changes the copied headers of a packet to its own.
    fn finish(&self, packet: &mut [u8], place: Place) {
        self.finish_transport(packet, place);
        self.finish_ip(packet, place);
        if self.checksums {
            self.write_checksum(packet);
        }
    }

    fn finish_ip(&self, packet: &mut [u8], place: Place) {
        if self.headers.ip == IpVersion::V4 {
            let identification = u16_at(packet, 4).wrapping_add(place.number as u16);
            put_u16(packet, 4, identification);
        }
        self.headers.write_ip_length(packet);
    }

    fn finish_transport(&self, packet: &mut [u8], place: Place) {
        let at = self.headers.transport_at;
        match self.headers.transport {
            // A sealed packet is not cut.
            Transport::Esp => {}
            Transport::Udp => put_u16(packet, at + 4, (packet.len() - at) as u16),
            Transport::Tcp => {
                add_u32(packet, at + 4, place.offset);
                finish_flags(&mut packet[at + 13], place);
            }
            Transport::Smt => {
                if self.counts_smt_sequence {
                    add_u32(packet, at + 4, place.offset);
                }
                finish_flags(&mut packet[at + 13], place);
            }
        }
    }

    fn write_checksum(&self, packet: &mut [u8]) {
        let at = self.headers.transport_at;
        let Some(checksum_at) = self.headers.transport.checksum_at() else {
            return;
        };
        let checksum_at = at + checksum_at;
        put_u16(packet, checksum_at, 0);
        let bytes = packet.len() - at;
        let sum = self.headers.pseudo_header(packet, bytes).add(&packet[at..]);
        let checksum = match (self.headers.transport, sum.checksum()) {
            // Zero says that there is none (RFC 768).
            (Transport::Udp, 0) => 0xFFFF,
            (_, checksum) => checksum,
        };
        put_u16(packet, checksum_at, checksum);
    }
}

/// Takes the flags off that belong to another packet of the segment.
fn finish_flags(flags: &mut u8, place: Place) {
    if !place.is_last {
        *flags &= !(TCP_FIN | TCP_PSH);
    }
    if place.number > 0 {
        *flags &= !TCP_CWR;
    }
}

fn add_u32(bytes: &mut [u8], at: usize, more: u32) {
    let (words, _) = bytes[at..at + 4].as_chunks_mut::<4>();
    for word in words {
        *word = u32::from_be_bytes(*word).wrapping_add(more).to_be_bytes();
    }
}

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

#[cfg(test)]
mod tests;
