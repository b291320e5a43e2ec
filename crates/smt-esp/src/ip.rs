// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IP headers: where they end, where ESP goes and what it protects (RFC 791, RFC 8200).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::Sum;

/// Protocol numbers that ESP has to know (IANA, "Protocol Numbers").
pub(crate) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const IPV4: u8 = 4;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const DCCP: u8 = 33;
    pub(crate) const IPV6: u8 = 41;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const ESP: u8 = 50;
    pub(crate) const NO_NEXT: u8 = 59;
    pub(crate) const DESTINATION: u8 = 60;
    pub(crate) const SCTP: u8 = 132;
    pub(crate) const UDP_LITE: u8 = 136;
}

pub(crate) const IPV4_HEADER_LEN: usize = 20;
pub(crate) const IPV6_HEADER_LEN: usize = 40;

/// More extension headers than this before the payload are taken for an attack.
const EXTENSION_HEADERS: usize = 8;

/// The bytes are no whole IP packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not a whole IP packet")]
pub struct MalformedIp;

/// A header after the first: where it begins, what it is, and the byte that says so.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    pub(crate) at: usize,
    pub(crate) protocol: u8,
    pub(crate) next_header_at: usize,
}

/// The fields of an IP packet's headers that ESP has to know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Headers {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// The whole packet's length, by its header; bytes behind it are the link's padding.
    pub(crate) length: usize,
    /// DSCP and ECN.
    pub(crate) traffic_class: u8,
    /// A part of a datagram. An IPv6 packet that is its only fragment is none (RFC 6946).
    pub(crate) fragment: bool,
    /// The part that ESP protects in transport mode: all behind the headers that routers read.
    pub(crate) protected: Place,
    /// The first header that is no extension header.
    pub(crate) upper: Place,
}

impl Headers {
    /// Reads a packet's headers; `packet` may be longer than the packet.
    pub(crate) fn parse(packet: &[u8]) -> Result<Self, MalformedIp> {
        match packet.first().ok_or(MalformedIp)? >> 4 {
            4 => parse_v4(packet).ok_or(MalformedIp),
            6 => parse_v6(packet).ok_or(MalformedIp),
            _ => Err(MalformedIp),
        }
    }

    pub(crate) const fn is_v4(&self) -> bool {
        self.source.is_ipv4()
    }

    /// The sum of the pseudo-header of `upper`'s protocol for `length` bytes.
    pub(crate) fn pseudo_sum(&self, length: usize) -> Sum {
        Sum::pseudo(self.source, self.destination, self.upper.protocol, length)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn parse_v4(packet: &[u8]) -> Option<Headers> {
    let header: &[u8; IPV4_HEADER_LEN] = packet.first_chunk()?;
    let header_len = usize::from(header[0] & 0xF) * 4;
    let length = usize::from(u16_at(header, 2)?);
    if header_len < IPV4_HEADER_LEN || length < header_len || length > packet.len() {
        return None;
    }
    let address = |at: usize| {
        let octets: [u8; 4] = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        IpAddr::V4(Ipv4Addr::from(octets))
    };
    let payload = Place { at: header_len, protocol: header[9], next_header_at: 9 };
    Some(Headers {
        source: address(12),
        destination: address(16),
        length,
        traffic_class: header[1],
        // More fragments, or an offset.
        fragment: u16_at(header, 6)? & 0x3FFF != 0,
        protected: payload,
        upper: payload,
    })
}

fn parse_v6(packet: &[u8]) -> Option<Headers> {
    let header: &[u8; IPV6_HEADER_LEN] = packet.first_chunk()?;
    let length = IPV6_HEADER_LEN + usize::from(u16_at(header, 4)?);
    let packet = packet.get(..length)?;
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::V6(Ipv6Addr::from(octets)))
    };
    let chain = walk(packet, header[6])?;
    Some(Headers {
        source: address(8)?,
        destination: address(24)?,
        length,
        traffic_class: (header[0] << 4) | (header[1] >> 4),
        fragment: chain.fragment,
        protected: chain.protected,
        upper: chain.upper,
    })
}

struct Chain {
    protected: Place,
    upper: Place,
    fragment: bool,
}

/// Walks the extension headers. ESP goes behind hop-by-hop options, routing and fragment header,
/// and before destination options that only the final destination reads (RFC 4303 §3.1.1).
fn walk(packet: &[u8], first: u8) -> Option<Chain> {
    let mut place = Place { at: IPV6_HEADER_LEN, protocol: first, next_header_at: 6 };
    let mut protected = place;
    for _ in 0..=EXTENSION_HEADERS {
        let read_by_routers = match place.protocol {
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::FRAGMENT => true,
            protocol::DESTINATION => false,
            _ => {
                return Some(Chain { protected, upper: place, fragment: false });
            }
        };
        let header = packet.get(place.at..).filter(|rest| rest.len() >= 8)?;
        let fragment = place.protocol == protocol::FRAGMENT;
        let length = if fragment { 8 } else { (usize::from(header[1]) + 1) * 8 };
        if length > header.len() {
            return None;
        }
        // An offset, or more fragments.
        let is_part = fragment && u16_at(header, 2)? & 0xFFF9 != 0;
        place = Place { at: place.at + length, protocol: header[0], next_header_at: place.at };
        if read_by_routers {
            protected = place;
        }
        if is_part {
            return Some(Chain { protected, upper: place, fragment: true });
        }
    }
    None
}

/// Writes the length of a packet into its header, and an IPv4 header's checksum.
///
/// # Panics
/// If `packet` has no whole header, or `length` does not fit its field.
pub(crate) fn set_length(packet: &mut [u8], length: usize) {
    if packet[0] >> 4 == 6 {
        packet[4..6].copy_from_slice(&field(length - IPV6_HEADER_LEN));
    } else {
        packet[2..4].copy_from_slice(&field(length));
        set_v4_checksum(packet);
    }
}

fn field(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("lengths are checked before they are written").to_be_bytes()
}

/// The longest packet of a version, by its length field.
pub(crate) const fn longest(v4: bool) -> usize {
    if v4 { 0xFFFF } else { 0xFFFF + IPV6_HEADER_LEN }
}

/// Writes the checksum of an IPv4 header.
///
/// # Panics
/// If `packet` has no whole IPv4 header.
pub(crate) fn set_v4_checksum(packet: &mut [u8]) {
    let header_len = usize::from(packet[0] & 0xF) * 4;
    packet[10..12].fill(0);
    let checksum = Sum::default().add(&packet[..header_len]).checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v6(extensions: &[(u8, &[u8])], upper: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        let mut next_at = 6;
        for (protocol, body) in extensions {
            packet[next_at] = *protocol;
            next_at = packet.len();
            packet.extend_from_slice(body);
        }
        packet[next_at] = upper;
        packet.extend_from_slice(&[0; 20]);
        let length = packet.len();
        set_length(&mut packet, length);
        packet
    }

    #[test]
    fn esp_goes_behind_a_routing_header_and_before_the_last_destination_options() {
        let options: &[u8] = &[0; 8];
        let chain: [(u8, &[u8]); 4] = [(0, options), (60, options), (43, options), (60, options)];
        let headers = Headers::parse(&v6(&chain, protocol::TCP)).unwrap();
        assert_eq!(headers.protected.at, 40 + 24);
        assert_eq!(headers.protected.protocol, protocol::DESTINATION);
        assert_eq!(headers.protected.next_header_at, 40 + 16);
        assert_eq!(headers.upper.at, 40 + 32);
        assert_eq!(headers.upper.protocol, protocol::TCP);
    }

    #[test]
    fn a_chain_of_too_many_extension_headers_is_refused() {
        let options: &[u8] = &[0; 8];
        let chain = vec![(60, options); EXTENSION_HEADERS];
        assert!(Headers::parse(&v6(&chain, protocol::TCP)).is_ok());
        let chain = vec![(60, options); EXTENSION_HEADERS + 1];
        assert!(Headers::parse(&v6(&chain, protocol::TCP)).is_err());
    }

    #[test]
    fn an_only_fragment_is_a_whole_datagram() {
        let whole = v6(&[(44, &[0; 8])], protocol::TCP);
        assert!(!Headers::parse(&whole).unwrap().fragment);
        let part = v6(&[(44, &[0, 0, 0, 1, 0, 0, 0, 0])], protocol::TCP);
        assert!(Headers::parse(&part).unwrap().fragment);
    }

    #[test]
    fn a_packet_that_is_cut_is_malformed() {
        let packet = v6(&[(0, &[0; 8])], protocol::TCP);
        for length in 0..packet.len() {
            assert_eq!(Headers::parse(&packet[..length]), Err(MalformedIp));
        }
    }
}
