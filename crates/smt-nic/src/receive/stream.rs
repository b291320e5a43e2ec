// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Coalescing of TCP: segments of one stream that follow each other become one segment (LRO).
//!
//! A segment joins those before it if
//!
//! 1. its checksums are right, of IPv4's header and of TCP: the merged segment's are made anew, and
//!    would hide that they were wrong,
//! 2. all bytes of its headers are theirs, but for lengths, identification, checksums, the sequence
//!    number and the flag PSH. The traffic class, the acknowledgement, the window and the options
//!    count,
//! 3. its sequence number is where their payload ends, and
//! 4. over IPv4 its identification follows theirs, or it must not be fragmented (RFC 6864 §4.1).
//!
//! Segments with another flag than ACK and PSH go up alone, as do those without payload. A segment
//! that is pushed, or shorter than those before it, ends a merge. Any packet of a connection that
//! does not join the segments that wait comes behind them: FIN must not overtake data.

use alloc::vec::Vec;

use super::coalescing::Merged;
use crate::big_endian::{put_u16, u16_at, u32_at};
use crate::checksum::Sum;
use crate::headers::{Headers, IpVersion, Transport};
use crate::segmentation::PACKET_MAX;

/// Segments that are merged: one, or several that follow each other.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamMerge {
    headers: Headers,
    /// The first segment, and the payloads of the others.
    bytes: Vec<u8>,
    /// The first segment's headers without what may differ.
    common: Vec<u8>,
    /// Bytes of the first segment's payload.
    payload: usize,
    packets: u16,
    is_pushed: bool,
}

impl StreamMerge {
    /// A merge of one segment. `None` if it must go up alone.
    #[must_use]
    pub fn begin(packet: &[u8], headers: &Headers) -> Option<Self> {
        let length = headers.ip_length(packet);
        let packet = packet.get(..length)?;
        let payload = length.checked_sub(headers.payload_at)?;
        let is_plain = headers.transport == Transport::Tcp
            && (headers.ip == IpVersion::V6 || headers.transport_at == 20)
            && payload > 0;
        if !is_plain {
            return None;
        }
        let flags = packet[headers.transport_at + FLAGS];
        let is_data = flags & !PSH == ACK && are_checksums_right(packet, headers);
        is_data.then(|| Self {
            headers: *headers,
            bytes: packet.to_vec(),
            common: common(&packet[..headers.payload_at], headers),
            payload,
            packets: 1,
            is_pushed: flags & PSH != 0,
        })
    }

    /// Whether segments of this merge and of the other are of one stream, and their headers differ
    /// in nothing that counts.
    #[must_use]
    pub fn is_of_stream(&self, other: &Self) -> bool {
        self.headers == other.headers && self.common == other.common
    }

    /// Whether a packet with these headers, of TCP, is of the same connection and direction:
    /// addresses and ports are those of the segments.
    #[must_use]
    pub fn is_of_connection(&self, packet: &[u8], headers: &Headers) -> bool {
        self.headers.ip == headers.ip && ends(&self.bytes, &self.headers) == ends(packet, headers)
    }

    /// Appends a segment of the same stream.
    pub fn append(&mut self, next: &Self) -> Merged {
        let end = self.sequence().wrapping_add(self.payload_bytes() as u32);
        let is_next = next.sequence() == end
            && next.payload <= self.payload
            && self.bytes.len() + next.payload <= PACKET_MAX
            && self.is_identification_next(next);
        if !is_next {
            return Merged::No;
        }
        self.bytes.extend_from_slice(&next.bytes[next.headers.payload_at..]);
        self.packets += 1;
        self.is_pushed = next.is_pushed;
        match next.payload == self.payload && self.may_go_on() {
            true => Merged::Open,
            false => Merged::Closed,
        }
    }

    /// Whether there may be another segment behind.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        !self.is_pushed && self.bytes.len() + self.payload <= PACKET_MAX
    }

    /// The segments that were merged.
    #[must_use]
    pub fn packets(&self) -> u32 {
        self.packets.into()
    }

    /// The packet that the host gets: a single one as it came, several with headers of their own.
    #[must_use]
    pub fn into_packet(mut self) -> Vec<u8> {
        if self.packets > 1 {
            let at = self.headers.transport_at;
            self.bytes[at + FLAGS] |= if self.is_pushed { PSH } else { 0 };
            self.headers.write_ip_length(&mut self.bytes);
            put_u16(&mut self.bytes, at + CHECKSUM, 0);
            let checksum = sum_of_tcp(&self.bytes, &self.headers).checksum();
            put_u16(&mut self.bytes, at + CHECKSUM, checksum);
        }
        self.bytes
    }

    fn sequence(&self) -> u32 {
        u32_at(&self.bytes, self.headers.transport_at + SEQUENCE)
    }

    fn payload_bytes(&self) -> usize {
        self.bytes.len() - self.headers.payload_at
    }

    fn is_identification_next(&self, next: &Self) -> bool {
        let must_not_be_fragmented = self.bytes[6] & 0x40 != 0;
        self.headers.ip == IpVersion::V6
            || must_not_be_fragmented
            || u16_at(&next.bytes, 4) == u16_at(&self.bytes, 4).wrapping_add(self.packets)
    }
}

/// Addresses and ports of a packet.
fn ends<'a>(packet: &'a [u8], headers: &Headers) -> [&'a [u8]; 2] {
    let ports = headers.transport_at..headers.transport_at + SEQUENCE;
    [headers.addresses(packet), &packet[ports]]
}

fn are_checksums_right(packet: &[u8], headers: &Headers) -> bool {
    headers.is_ip_checksum_right(packet) && sum_of_tcp(packet, headers).checksum() == 0
}

fn sum_of_tcp(packet: &[u8], headers: &Headers) -> Sum {
    let segment = &packet[headers.transport_at..];
    headers.pseudo_header(packet, segment.len()).add(segment)
}

/// Headers without all that may differ between segments of one stream.
fn common(header: &[u8], headers: &Headers) -> Vec<u8> {
    let mut bytes = header.to_vec();
    match headers.ip {
        IpVersion::V4 => {
            bytes[2..6].fill(0);
            bytes[10..12].fill(0);
        }
        IpVersion::V6 => bytes[4..6].fill(0),
    }
    let at = headers.transport_at;
    bytes[at + SEQUENCE..at + SEQUENCE + 4].fill(0);
    bytes[at + FLAGS] &= !PSH;
    put_u16(&mut bytes, at + CHECKSUM, 0);
    bytes
}

/// Places in TCP's header (RFC 9293 §3.1).
const SEQUENCE: usize = 4;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
