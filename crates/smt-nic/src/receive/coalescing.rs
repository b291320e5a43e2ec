// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Coalescing: packets of one message that follow each other become one packet with one header, as
//! LRO merges packets of TCP.
//!
//! Only DATA packets of SMT natively over IP are merged (SPEC §4, §15.2): their payload is a stream
//! with an offset, so a merged packet is a DATA packet with a longer payload, which any receiver
//! reads. A packet joins those before it if
//!
//! 1. all bytes of its headers are theirs, but for lengths, IPv4's identification and checksum, the
//!    flags, the stride and the offset. The traffic class counts: a mark of congestion is never
//!    merged into packets without one (RFC 3168 §5.3),
//! 2. its own offset is where their payload ends, and
//! 3. the whole stays within the length that IP can tell.
//!
//! A packet of a segment that another device has cut gets its own offset first (SPEC §15.2); what
//! was merged has no mark of a segment. A packet that was repeated, or is shorter than those before
//! it, ends a merge.

use alloc::vec::Vec;

use crate::big_endian::{u16_at, u32_at, u64_at};
use crate::headers::{Headers, IpVersion, Transport};
use crate::segmentation::PACKET_MAX;
use crate::tls::receive::{ReceiveFlow, StreamPart};

/// The fields of a DATA header (SPEC §4.1) that a device reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataFields {
    /// The epoch byte.
    pub epoch: u8,
    /// Bytes of the packet, if its header tells them; 0 says up to the datagram's end.
    pub length: u16,
    /// The session index.
    pub session: u64,
    /// The message's id.
    pub id: u64,
    /// The message's bytes; in SMT's record stream each record adds 22 to them (SPEC §5.1).
    pub message_length: u32,
    /// The offset of the payload in that stream, as the packet has it.
    pub offset: u32,
    /// The stride of its segment; 0 if it left alone.
    pub stride: u16,
    /// Whether the flag of a segment's last packet is there (PSH).
    pub is_pushed: bool,
}

impl DataFields {
    /// Reads them. `None` if the packet has no whole DATA header natively over IP.
    #[must_use]
    pub fn read(packet: &[u8], headers: &Headers) -> Option<Self> {
        let at = headers.transport_at + NATIVE_BYTES;
        let header = packet.get(at..headers.payload_at)?;
        let header = header.first_chunk::<DATA_BYTES>()?;
        let is_data = headers.transport == Transport::Smt
            && headers.payload_at == at + DATA_BYTES
            && header[1] == DATA;
        is_data.then(|| Self {
            epoch: header[2],
            length: u16_at(header, 6),
            session: u64_at(header, 12),
            id: u64_at(header, 20),
            message_length: u32_at(header, 28),
            offset: u32_at(header, OFFSET),
            stride: u16_at(header, STRIDE),
            is_pushed: header[FLAGS] & PSH != 0,
        })
    }

    /// The packet's own offset (SPEC §15.2): a segment's packets all have the segment's.
    pub(crate) fn own_offset(&self, packet: &[u8], headers: &Headers) -> Option<u32> {
        if self.stride == 0 {
            return Some(self.offset);
        }
        let place = match headers.ip {
            IpVersion::V4 => u16_at(packet, 4).checked_sub(1)?,
            IpVersion::V6 => u16::from(self.is_pushed),
        };
        let distance = u32::from(place) * u32::from(self.stride);
        self.offset.checked_add(distance)
    }
}

/// Packets that are merged: one, or several that follow each other.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Merge {
    headers: Headers,
    /// The first packet as it came, up to the end of what IP says is its length, and the payloads
    /// of the others.
    bytes: Vec<u8>,
    /// The first packet's headers without all that may differ between packets of one message.
    common: Vec<u8>,
    /// The own offset of the first packet.
    offset: u32,
    /// Bytes of the first packet's payload.
    payload: usize,
    data: DataFields,
    packets: u32,
    /// Whether the headers are still those of the first packet: it is alone, and was not cut.
    is_as_it_came: bool,
}

/// The answer to a packet that was to be appended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Merged {
    /// It was appended, and more may follow.
    Open,
    /// It was appended, and is the last.
    Closed,
    /// It does not go on where the others end.
    No,
}

impl Merge {
    /// A merge of one packet. `None` if packets of its kind are not merged.
    #[must_use]
    pub fn begin(packet: &[u8], headers: &Headers) -> Option<Self> {
        let data = DataFields::read(packet, headers)?;
        let length = headers.ip_length(packet);
        let payload = length.checked_sub(headers.payload_at)?;
        Some(Self {
            headers: *headers,
            bytes: packet.get(..length)?.to_vec(),
            common: common(packet.get(..headers.payload_at)?, headers),
            offset: data.own_offset(packet, headers)?,
            payload: Some(payload).filter(|bytes| *bytes > 0)?,
            data,
            packets: 1,
            is_as_it_came: true,
        })
    }

    /// Whether packets of this merge and of the other are of one message, and their headers differ
    /// in nothing that counts.
    #[must_use]
    pub fn is_of_message(&self, other: &Self) -> bool {
        self.headers == other.headers && self.common == other.common
    }

    /// Appends a packet of the same message.
    pub fn append(&mut self, next: &Self) -> Merged {
        let end = self.end();
        // A packet that tells its length may have others behind it, and cannot grow.
        let is_next = end == Some(next.offset)
            && next.data.length == 0
            && next.payload <= self.payload
            && self.bytes.len() + next.payload <= PACKET_MAX;
        if !is_next {
            return Merged::No;
        }
        let payload = &next.bytes[next.headers.payload_at..];
        self.bytes.extend_from_slice(payload);
        self.packets += next.packets;
        self.is_as_it_came = false;
        match next.payload == self.payload && self.may_go_on() {
            true => Merged::Open,
            false => Merged::Closed,
        }
    }

    /// Whether there is room and a place for another packet behind.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        // The attestation engine's messages end here. Behind it are 22 bytes a record of SMT's,
        // which arrive by themselves.
        let has_room = self.bytes.len() + self.payload <= PACKET_MAX;
        has_room && self.end().is_some_and(|end| end < self.data.message_length)
    }

    /// The packets that were merged.
    #[must_use]
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// The packet that the host gets: a single one as it came, several with headers of their own.
    #[must_use]
    pub fn into_packet(mut self) -> Vec<u8> {
        if !self.is_as_it_came {
            self.write_headers();
        }
        self.bytes
    }

    /// The session and the epoch of the packets.
    #[must_use]
    pub fn flow(&self) -> ReceiveFlow {
        ReceiveFlow { session: self.data.session, epoch: self.data.epoch }
    }

    /// The part of the message's record stream that the payload claims to be.
    #[must_use]
    pub fn stream_part(&self) -> StreamPart {
        StreamPart {
            id: self.data.id,
            message_length: self.data.message_length,
            offset: self.offset,
        }
    }

    /// Where the payload begins in the packet.
    #[must_use]
    pub fn payload_at(&self) -> usize {
        self.headers.payload_at
    }

    /// The bytes of the record stream. A packet that tells its length may have others behind it.
    pub fn stream_payload(&mut self) -> &mut [u8] {
        let at = self.headers.payload_at;
        let end = match self.data.length {
            0 => self.bytes.len(),
            length => self.headers.transport_at + NATIVE_BYTES + usize::from(length),
        };
        let end = end.clamp(at, self.bytes.len());
        &mut self.bytes[at..end]
    }

    /// Cuts the payload in two at this place, and returns the part behind it. `None`, and nothing
    /// is cut, if a part would be empty, or there would be more parts than packets have come.
    #[must_use]
    pub fn split(&mut self, at: usize) -> Option<Self> {
        let place = self.headers.payload_at + at;
        if self.packets < 2 || at == 0 || place >= self.bytes.len() {
            return None;
        }
        let mut rest = self.clone();
        rest.bytes.drain(self.headers.payload_at..place);
        rest.offset = rest.offset.checked_add(u32::try_from(at).ok()?)?;
        self.bytes.truncate(place);
        (self.packets, rest.packets) = (1, self.packets - 1);
        rest.is_as_it_came = false;
        self.is_as_it_came = false;
        Some(rest)
    }

    /// The offset behind the payload.
    fn end(&self) -> Option<u32> {
        let bytes = self.bytes.len() - self.headers.payload_at;
        self.offset.checked_add(u32::try_from(bytes).ok()?)
    }

    fn write_headers(&mut self) {
        write_alone(&mut self.bytes, &self.headers, self.offset);
        self.headers.write_ip_length(&mut self.bytes);
    }
}

/// Gives a DATA packet this offset, and takes the marks of a segment off.
pub(crate) fn write_alone(packet: &mut [u8], headers: &Headers, offset: u32) {
    let at = headers.transport_at + NATIVE_BYTES;
    packet[at + FLAGS] = 0;
    packet[at + STRIDE..at + STRIDE + 2].fill(0);
    packet[at + OFFSET..at + OFFSET + 4].copy_from_slice(&offset.to_be_bytes());
}

/// Headers without all that may differ between packets of one message.
fn common(header: &[u8], headers: &Headers) -> Vec<u8> {
    let mut bytes = header.to_vec();
    match headers.ip {
        IpVersion::V4 => {
            bytes[2..6].fill(0);
            bytes[10..12].fill(0);
        }
        IpVersion::V6 => bytes[4..6].fill(0),
    }
    // The sequence field, which some devices count.
    let at = headers.transport_at;
    bytes[at + 4..at + 8].fill(0);
    let at = at + NATIVE_BYTES;
    bytes[at + FLAGS] = 0;
    bytes[at + STRIDE..at + STRIDE + 2].fill(0);
    bytes[at + OFFSET..at + OFFSET + 4].fill(0);
    bytes
}

/// Bytes of the header natively before a datagram (SPEC §15.2).
const NATIVE_BYTES: usize = 8;
/// The type of a DATA packet, and bytes of its header (SPEC §4.1).
const DATA: u8 = 0x01;
const DATA_BYTES: usize = 36;
/// Places in a DATA header: the flags, the stride, the offset.
const FLAGS: usize = 5;
const STRIDE: usize = 10;
const OFFSET: usize = 32;
const PSH: u8 = 0x08;
