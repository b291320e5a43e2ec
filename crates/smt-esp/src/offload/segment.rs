// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A super-packet is cut into segments (what Linux's `tcp_gso_segment`, `__udp_gso_segment` and
//! `inet_gso_segment` do).

use crate::buffer::{HEADROOM, PacketBuffer};
use crate::checksum::Sum;
use crate::error::SealError;
use crate::ip::{self, Headers, protocol};
use crate::offload::header::{Checksum, Offload, SegmentKind, Segmentation};
use crate::offload::transport::{
    CWR, FIN, PSH, RST, SYN, TCP_CHECKSUM, TCP_DATA_OFFSET, TCP_FLAGS, TCP_HEADER_LEN,
    TCP_SEQUENCE, TCP_URGENT, UDP_CHECKSUM, UDP_HEADER_LEN, UDP_LENGTH, URG, get_u16, get_u32,
    put_u16, put_u32,
};

/// The segments of a super-packet, one after another; a packet that is none is its only segment.
///
/// Each segment is complete: lengths, IPv4 identification and checksum, sequence number, flags and
/// transport checksum.
#[derive(Debug)]
pub struct Segments<'a> {
    packet: &'a [u8],
    headers: Headers,
    plan: Plan,
    /// Bytes of payload that have been given out.
    sent: usize,
    /// Segments that have been given out.
    index: u16,
    finished: bool,
}

#[derive(Clone, Copy, Debug)]
enum Plan {
    Whole(Checksum),
    Cut {
        tcp: bool,
        /// Bytes of IP and transport header.
        header_len: usize,
        /// Bytes of payload in each segment but the last.
        size: usize,
    },
}

impl<'a> Segments<'a> {
    /// Plans how `packet` is cut into packets of at most `limit` bytes.
    ///
    /// A segment of TCP may become shorter than the super-packet says. A datagram may not: its
    /// bounds are the application's.
    ///
    /// # Errors
    /// [`SealError::TooBig`] if a packet or datagram is longer than `limit`, and
    /// [`SealError::Malformed`] if `offload` is not true of the packet.
    pub fn new(packet: &'a [u8], offload: &Offload, limit: usize) -> Result<Self, SealError> {
        let headers = Headers::parse(packet)?;
        let packet = &packet[..headers.length];
        let plan = match offload.segmentation {
            Some(segmentation) => plan_cuts(packet, &headers, segmentation, limit)?,
            None if packet.len() > limit => return Err(SealError::TooBig { limit }),
            None => Plan::Whole(offload.checksum),
        };
        Ok(Self { packet, headers, plan, sent: 0, index: 0, finished: false })
    }

    /// Writes the next segment to [`HEADROOM`] of `memory`; nothing once all are written.
    ///
    /// # Errors
    /// [`SealError::NoRoom`] if `memory` is too short, [`SealError::Malformed`] if the place of
    /// the checksum is not inside the packet.
    pub fn write_next<'m>(
        &mut self,
        memory: &'m mut [u8],
    ) -> Result<Option<PacketBuffer<'m>>, SealError> {
        if self.finished {
            return Ok(None);
        }
        match self.plan {
            Plan::Whole(checksum) => {
                self.finished = true;
                let mut buffer =
                    PacketBuffer::with_copy(memory, self.packet).ok_or(SealError::NoRoom)?;
                complete_checksum(buffer.packet_mut(), checksum, self.headers.upper.protocol)?;
                Ok(Some(buffer))
            }
            Plan::Cut { tcp, header_len, size } => {
                self.write_cut(memory, tcp, header_len, size).map(Some)
            }
        }
    }

    fn write_cut<'m>(
        &mut self,
        memory: &'m mut [u8],
        tcp: bool,
        header_len: usize,
        size: usize,
    ) -> Result<PacketBuffer<'m>, SealError> {
        let (header, payload) = self.packet.split_at(header_len);
        let payload_len = size.min(payload.len() - self.sent);
        let payload = &payload[self.sent..self.sent + payload_len];
        self.finished = self.sent + payload_len == self.packet.len() - header_len;

        let length = header_len + payload_len;
        let out = memory.get_mut(HEADROOM..HEADROOM + length);
        let out = out.ok_or(SealError::NoRoom)?;
        out[..header_len].copy_from_slice(header);
        out[header_len..].copy_from_slice(payload);
        if self.headers.is_v4() {
            let identification = get_u16(header, 4).wrapping_add(self.index);
            put_u16(out, 4, identification);
        }
        ip::set_length(out, length);

        let segment = &mut out[self.headers.upper.at..];
        if tcp {
            self.complete_tcp(segment);
        } else {
            self.complete_udp(segment);
        }
        self.sent += payload_len;
        self.index = self.index.wrapping_add(1);
        PacketBuffer::new(memory, HEADROOM..HEADROOM + length).ok_or(SealError::NoRoom)
    }

    fn complete_tcp(&self, segment: &mut [u8]) {
        // A super-packet has less than 2^16 bytes.
        let sequence = get_u32(segment, TCP_SEQUENCE).wrapping_add(self.sent as u32);
        put_u32(segment, TCP_SEQUENCE, sequence);
        // RFC 3168 §6.1.2: the window was reduced once.
        if self.index > 0 {
            segment[TCP_FLAGS] &= !CWR;
        }
        if !self.finished {
            segment[TCP_FLAGS] &= !(FIN | PSH);
        }
        self.move_urgent(segment);
        put_u16(segment, TCP_CHECKSUM, 0);
        let sum = self.headers.pseudo_sum(segment.len()).add(segment);
        put_u16(segment, TCP_CHECKSUM, sum.checksum());
    }

    /// The urgent pointer counts from the segment's own sequence number (RFC 9293 §3.8.5).
    fn move_urgent(&self, segment: &mut [u8]) {
        if segment[TCP_FLAGS] & URG == 0 {
            return;
        }
        let pointer = usize::from(get_u16(segment, TCP_URGENT));
        match pointer.checked_sub(self.sent) {
            Some(left) if left > 0 => put_u16(segment, TCP_URGENT, left as u16),
            _ => {
                segment[TCP_FLAGS] &= !URG;
                put_u16(segment, TCP_URGENT, 0);
            }
        }
    }

    fn complete_udp(&self, datagram: &mut [u8]) {
        put_u16(datagram, UDP_LENGTH, datagram.len() as u16);
        put_u16(datagram, UDP_CHECKSUM, 0);
        let sum = self.headers.pseudo_sum(datagram.len()).add(datagram);
        put_u16(datagram, UDP_CHECKSUM, sum.udp_checksum());
    }
}

fn plan_cuts(
    packet: &[u8],
    headers: &Headers,
    segmentation: Segmentation,
    limit: usize,
) -> Result<Plan, SealError> {
    let tcp = segmentation.kind != SegmentKind::Udp;
    let of_kind = match segmentation.kind {
        SegmentKind::TcpV4 => headers.is_v4() && headers.upper.protocol == protocol::TCP,
        SegmentKind::TcpV6 => !headers.is_v4() && headers.upper.protocol == protocol::TCP,
        SegmentKind::Udp => headers.upper.protocol == protocol::UDP,
    };
    if !of_kind || headers.fragment || segmentation.size == 0 {
        return Err(SealError::Malformed);
    }
    let transport = &packet[headers.upper.at..];
    let transport_len = if tcp { tcp_header_len(transport)? } else { UDP_HEADER_LEN };
    if transport_len >= transport.len() {
        return Err(SealError::Malformed);
    }
    let header_len = headers.upper.at + transport_len;
    let room = limit.saturating_sub(header_len);
    let wanted = usize::from(segmentation.size);
    let longest = wanted.min(transport.len() - transport_len);
    if room == 0 || (!tcp && longest > room) {
        return Err(SealError::TooBig { limit });
    }
    Ok(Plan::Cut { tcp, header_len, size: wanted.min(room) })
}

/// The length of a TCP header whose segment may be cut.
fn tcp_header_len(segment: &[u8]) -> Result<usize, SealError> {
    let header: &[u8; TCP_HEADER_LEN] = segment.first_chunk().ok_or(SealError::Malformed)?;
    let length = usize::from(header[TCP_DATA_OFFSET] >> 4) * 4;
    // A connection's first and last packets have sequence numbers of their own.
    if length < TCP_HEADER_LEN || header[TCP_FLAGS] & (SYN | RST) != 0 {
        return Err(SealError::Malformed);
    }
    Ok(length)
}

/// Completes a checksum that has the sum of the pseudo-header in its place.
fn complete_checksum(packet: &mut [u8], checksum: Checksum, protocol: u8) -> Result<(), SealError> {
    let Checksum::Partial { start, offset } = checksum else {
        return Ok(());
    };
    let bytes = packet.get_mut(usize::from(start)..);
    let bytes = bytes.ok_or(SealError::Malformed)?;
    let place = usize::from(offset)..usize::from(offset) + 2;
    if bytes.len() < place.end {
        return Err(SealError::Malformed);
    }
    let sum = Sum::default().add(bytes);
    let value = if protocol == protocol::UDP { sum.udp_checksum() } else { sum.checksum() };
    bytes[place].copy_from_slice(&value.to_be_bytes());
    Ok(())
}
