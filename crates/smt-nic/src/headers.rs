// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The headers of packets, as far as a device reads them: IPv4 or IPv6, and TCP, UDP, ESP or SMT
//! behind (SPEC §15.2).
//!
//! SMT's native header has TCP's shape. Its data offset ends the header, and its identity is the IP
//! protocol number alone.

use crate::big_endian::{put_u16, u16_at};
use crate::checksum::Sum;
use crate::esp;

/// Where the parts of a packet's headers are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Headers {
    /// The IP version.
    pub ip: IpVersion,
    /// The protocol behind IP.
    pub transport: Transport,
    /// Where the transport header begins, from the first byte of the IP header.
    pub transport_at: usize,
    /// Where the payload begins.
    pub payload_at: usize,
}

/// The version of IP.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6 without extension headers.
    V6,
}

/// The protocol behind IP.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SMT natively, in a header of TCP's shape.
    Smt,
    /// ESP: the header is SPI and number, and all behind is the payload.
    Esp,
}

impl IpVersion {
    /// Where the IP header names what follows it.
    pub(crate) fn next_header_at(self) -> usize {
        match self {
            Self::V4 => 9,
            Self::V6 => 6,
        }
    }
}

impl Headers {
    /// The length of the packet as IP says.
    pub(crate) fn ip_length(&self, packet: &[u8]) -> usize {
        match self.ip {
            IpVersion::V4 => usize::from(u16_at(packet, 2)),
            IpVersion::V6 => 40 + usize::from(u16_at(packet, 4)),
        }
    }

    /// Reads the headers at the beginning of `bytes`, where SMT has the IP protocol number
    /// `smt_protocol`. `None` if they are of another protocol, a fragment, or cut short.
    #[must_use]
    pub fn parse(bytes: &[u8], smt_protocol: u8) -> Option<Self> {
        let (ip, transport_at, protocol) = match bytes.first()? >> 4 {
            4 => {
                let header = bytes.get(..20)?;
                let length = usize::from(header[0] & 0xF) * 4;
                let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0;
                if length < 20 || is_fragment {
                    return None;
                }
                (IpVersion::V4, length, header[9])
            }
            6 => (IpVersion::V6, 40, *bytes.get(6)?),
            _ => return None,
        };
        let transport = match protocol {
            TCP => Transport::Tcp,
            UDP => Transport::Udp,
            esp::PROTOCOL => Transport::Esp,
            of if of == smt_protocol => Transport::Smt,
            _ => return None,
        };
        let length = match transport {
            Transport::Udp | Transport::Esp => 8,
            Transport::Tcp | Transport::Smt => {
                let words = *bytes.get(transport_at + DATA_OFFSET)? >> 4;
                usize::from(words) * 4
            }
        };
        let payload_at = transport_at + length;
        let is_whole = length >= transport.header_bytes_min() && payload_at <= bytes.len();
        is_whole.then_some(Self { ip, transport, transport_at, payload_at })
    }

    /// Writes a packet's own length, and over IPv4 the checksum of the header.
    pub(crate) fn write_ip_length(&self, packet: &mut [u8]) {
        match self.ip {
            IpVersion::V4 => {
                put_u16(packet, 2, packet.len() as u16);
                put_u16(packet, 10, 0);
                let sum = Sum::default().add(&packet[..self.transport_at]);
                put_u16(packet, 10, sum.checksum());
            }
            IpVersion::V6 => put_u16(packet, 4, (packet.len() - 40) as u16),
        }
    }

    /// Whether IP's header has the checksum that it must have: that of IPv6 has none.
    pub(crate) fn is_ip_checksum_right(&self, packet: &[u8]) -> bool {
        let sum = || Sum::default().add(&packet[..self.transport_at]);
        self.ip == IpVersion::V6 || sum().checksum() == 0
    }

    /// The two addresses of a packet that begins with these headers.
    pub(crate) fn addresses<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        match self.ip {
            IpVersion::V4 => &packet[12..20],
            IpVersion::V6 => &packet[8..40],
        }
    }

    /// The sum of the pseudo header of TCP and UDP (RFC 9293 §3.1, RFC 8200 §8.1) for a packet
    /// that begins with these headers, and of `bytes` bytes behind IP.
    pub(crate) fn pseudo_header(&self, packet: &[u8], bytes: usize) -> Sum {
        let protocol = packet[self.ip.next_header_at()];
        Sum::default().add(self.addresses(packet)).add_word(protocol.into()).add_word(bytes as u16)
    }
}

impl Transport {
    /// Bytes of the shortest header.
    fn header_bytes_min(self) -> usize {
        match self {
            Self::Udp | Self::Esp => 8,
            Self::Tcp | Self::Smt => 20,
        }
    }

    /// Where the checksum is in the header, if it has one.
    pub(crate) fn checksum_at(self) -> Option<usize> {
        match self {
            Self::Udp => Some(6),
            Self::Tcp | Self::Smt => Some(16),
            Self::Esp => None,
        }
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Where TCP's header has its own length, in words, in the high half of the byte.
const DATA_OFFSET: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const SMT: u8 = 253;

    fn ipv4(protocol: u8, words: u8) -> Vec<u8> {
        let mut bytes = std::vec![0; 20 + 60];
        bytes[0] = 0x45;
        bytes[9] = protocol;
        bytes[20 + DATA_OFFSET] = words << 4;
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Headers> {
        Headers::parse(bytes, SMT)
    }

    #[test]
    fn the_header_of_smt_ends_where_its_data_offset_says() {
        let headers = parse(&ipv4(SMT, 11)).map(|of| (of.transport, of.payload_at));
        assert_eq!(headers, Some((Transport::Smt, 20 + 44)));
    }

    #[test]
    fn options_of_ip_are_passed_over() {
        let mut bytes = ipv4(TCP, 0);
        bytes[0] = 0x46;
        bytes[24 + DATA_OFFSET] = 5 << 4;
        let headers = parse(&bytes).map(|of| (of.transport_at, of.payload_at));
        assert_eq!(headers, Some((24, 44)));
    }

    #[test]
    fn ipv6_has_its_transport_behind_forty_bytes() {
        let mut bytes = std::vec![0; 60];
        bytes[0] = 0x60;
        bytes[6] = UDP;
        let headers = parse(&bytes).map(|of| (of.ip, of.payload_at));
        assert_eq!(headers, Some((IpVersion::V6, 48)));
    }

    #[test]
    fn the_header_of_esp_is_spi_and_number() {
        let headers = parse(&ipv4(50, 0)).map(|of| (of.transport, of.payload_at));
        assert_eq!(headers, Some((Transport::Esp, 28)));
        assert_eq!(parse(&ipv4(50, 0)[..27]), None);
    }

    #[test]
    fn fragments_other_protocols_and_headers_cut_short_are_none() {
        let mut fragment = ipv4(SMT, 11);
        fragment[7] = 1;
        let whole = ipv4(SMT, 15);
        assert!(parse(&whole).is_some());
        for bytes in [&fragment[..], &ipv4(1, 5), &ipv4(TCP, 4), &whole[..79], &[]] {
            assert_eq!(parse(bytes), None);
        }
    }

    #[test]
    fn no_prefix_of_a_packet_panics() {
        for bytes in [ipv4(SMT, 15), ipv4(UDP, 0)] {
            for length in 0..bytes.len() {
                _ = parse(&bytes[..length]);
            }
        }
    }
}
