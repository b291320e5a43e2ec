// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet that may be coalesced with its neighbours: the rules of Linux's `tcp_gro_receive`,
//! `udp_gro_receive_segment` and `inet_gro_receive`.

use crate::checksum::Sum;
use crate::ip::{Headers, IPV4_HEADER_LEN, IPV6_HEADER_LEN, protocol};
use crate::offload::transport::{
    CWR, FIN, PSH, RST, SYN, TCP_DATA_OFFSET, TCP_FLAGS, TCP_HEADER_LEN, TCP_SEQUENCE,
    UDP_CHECKSUM, UDP_HEADER_LEN, UDP_LENGTH, URG, get_u16, get_u32,
};

/// A packet of TCP or UDP with a payload and a right checksum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) packet: &'a [u8],
    pub(crate) headers: Headers,
    /// Bytes of IP and transport header.
    pub(crate) header_len: usize,
}

impl<'a> Candidate<'a> {
    /// Looks at a packet; nothing if it must travel alone.
    pub(crate) fn new(packet: &'a [u8], headers: &Headers) -> Option<Self> {
        let packet = &packet[..headers.length];
        let plain_header = if headers.is_v4() {
            // An IPv4 header without options, and its checksum.
            headers.upper.at == IPV4_HEADER_LEN
                && Sum::default().add(&packet[..IPV4_HEADER_LEN]).checksum() == 0
        } else {
            headers.upper.at == IPV6_HEADER_LEN
        };
        if !plain_header || headers.fragment {
            return None;
        }
        let transport = &packet[headers.upper.at..];
        let transport_len = match headers.upper.protocol {
            protocol::TCP => tcp_header_len(transport)?,
            protocol::UDP => udp_header_len(transport)?,
            _ => return None,
        };
        let candidate =
            Self { packet, headers: *headers, header_len: headers.upper.at + transport_len };
        let sum = headers.pseudo_sum(transport.len()).add(transport);
        (candidate.payload_len() > 0 && sum.checksum() == 0).then_some(candidate)
    }

    pub(crate) const fn is_tcp(&self) -> bool {
        self.headers.upper.protocol == protocol::TCP
    }

    pub(crate) const fn payload_len(&self) -> usize {
        self.packet.len() - self.header_len
    }

    pub(crate) fn payload(&self) -> &'a [u8] {
        &self.packet[self.header_len..]
    }

    pub(crate) fn transport(&self) -> &'a [u8] {
        &self.packet[self.headers.upper.at..]
    }

    /// The packet's flags, of TCP.
    pub(crate) fn flags(&self) -> u8 {
        if self.is_tcp() { self.transport()[TCP_FLAGS] } else { 0 }
    }

    pub(crate) fn sequence(&self) -> u32 {
        get_u32(self.transport(), TCP_SEQUENCE)
    }

    /// The IPv4 identification, and whether the packet must not be fragmented.
    pub(crate) fn identification(&self) -> Option<(u16, bool)> {
        let v4 = self.headers.is_v4();
        v4.then(|| (get_u16(self.packet, 4), self.packet[6] & 0x40 != 0))
    }

    /// Whether the packet ends a super-packet of segments of `size` bytes.
    pub(crate) fn is_last(&self, size: usize) -> bool {
        self.payload_len() < size || self.flags() & (FIN | PSH) != 0
    }

    /// Whether all headers are those of `first` where the segments of a super-packet agree.
    pub(crate) fn has_headers_of(&self, first: &[u8]) -> bool {
        let ip_len = self.headers.upper.at;
        let (ip, first_ip) = (&self.packet[..ip_len], &first[..ip_len]);
        // The rest: lengths, IPv4 identification and checksum.
        let same_ip = if self.headers.is_v4() {
            ip[..2] == first_ip[..2] && ip[6..10] == first_ip[6..10] && ip[12..] == first_ip[12..]
        } else {
            ip[..4] == first_ip[..4] && ip[6..] == first_ip[6..]
        };
        same_ip && self.has_transport_of(&first[ip_len..])
    }

    fn has_transport_of(&self, first: &[u8]) -> bool {
        let transport_len = self.header_len - self.headers.upper.at;
        let header = &self.transport()[..transport_len];
        if !self.is_tcp() {
            return header[..4] == first[..4];
        }
        let flags = |header: &[u8]| header[TCP_FLAGS] & !(FIN | PSH | CWR);
        // Ports; acknowledgement and data offset; window; urgent pointer and options. A segment
        // with CWR begins a new super-packet, where only the first segment has it.
        header[..4] == first[..4]
            && header[8..13] == first[8..13]
            && flags(header) == flags(first)
            && header[TCP_FLAGS] & CWR == 0
            && header[14..16] == first[14..16]
            && first.get(18..transport_len).is_some_and(|rest| header[18..] == *rest)
    }
}

fn tcp_header_len(segment: &[u8]) -> Option<usize> {
    let header: &[u8; TCP_HEADER_LEN] = segment.first_chunk()?;
    let length = usize::from(header[TCP_DATA_OFFSET] >> 4) * 4;
    let alone = header[TCP_FLAGS] & (SYN | RST | URG) != 0;
    (!alone && (TCP_HEADER_LEN..=segment.len()).contains(&length)).then_some(length)
}

fn udp_header_len(datagram: &[u8]) -> Option<usize> {
    let header: &[u8; UDP_HEADER_LEN] = datagram.first_chunk()?;
    let whole = usize::from(get_u16(header, UDP_LENGTH)) == datagram.len();
    // Without a checksum nothing tells whether the datagram is right.
    (whole && get_u16(header, UDP_CHECKSUM) != 0).then_some(UDP_HEADER_LEN)
}
