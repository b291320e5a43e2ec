// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of Ethernet with a native datagram of SMT inside (SPEC §15.2): written and read whole.

use smt_wire::native::NativeHeader;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

/// Bytes of Ethernet's header.
pub(super) const ETHERNET_BYTES: usize = 14;
pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86DD;

/// An address of Ethernet.
pub(super) type HardwareAddress = [u8; 6];

/// All that is in front of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Headers {
    pub(super) hardware_source: HardwareAddress,
    pub(super) hardware_target: HardwareAddress,
    pub(super) source: SocketAddr,
    /// The version of IP is that of the source.
    pub(super) target: SocketAddr,
    pub(super) protocol: u8,
    /// DSCP and ECN.
    pub(super) traffic_class: u8,
}

impl Headers {
    /// Bytes of the headers of IP and SMT.
    pub(super) const fn ip_bytes(is_ipv4: bool) -> usize {
        NativeHeader::LEN + if is_ipv4 { 20 } else { 40 }
    }

    /// Writes a packet, and tells its length; 0 if there is no room, or addresses are of two
    /// versions.
    pub(super) fn write(&self, datagram: &[u8], packet: &mut [u8]) -> usize {
        let ip_bytes = Self::ip_bytes(self.source.is_ipv4());
        let length = ETHERNET_BYTES + ip_bytes + datagram.len();
        let Some(packet) = packet.get_mut(..length) else {
            return 0;
        };
        let (ethernet, ip) = packet.split_at_mut(ETHERNET_BYTES);
        let (headers, rest) = ip.split_at_mut(ip_bytes);
        let (ip, native) = headers.split_at_mut(ip_bytes - NativeHeader::LEN);
        let behind = NativeHeader::LEN + datagram.len();
        let kind = match (self.source.ip(), self.target.ip()) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                self.write_ipv4([source, target], behind, ip);
                ETHERTYPE_IPV4
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                self.write_ipv6([source, target], behind, ip);
                ETHERTYPE_IPV6
            }
            _ => return 0,
        };
        ethernet[..6].copy_from_slice(&self.hardware_target);
        ethernet[6..12].copy_from_slice(&self.hardware_source);
        ethernet[12..].copy_from_slice(&kind.to_be_bytes());
        let header = NativeHeader { source: self.source.port(), destination: self.target.port() };
        native.copy_from_slice(&header.to_bytes());
        rest.copy_from_slice(datagram);
        length
    }

    fn write_ipv4(&self, [source, target]: [Ipv4Addr; 2], behind: usize, ip: &mut [u8]) {
        ip[0] = 0x45;
        ip[1] = self.traffic_class;
        ip[2..4].copy_from_slice(&((20 + behind) as u16).to_be_bytes());
        // Identification 0, and DF (RFC 6864).
        ip[4..8].copy_from_slice(&[0, 0, 0x40, 0]);
        ip[8] = HOPS;
        ip[9] = self.protocol;
        ip[10..12].fill(0);
        ip[12..16].copy_from_slice(&source.octets());
        ip[16..20].copy_from_slice(&target.octets());
        let checksum = !ones_complement_sum(ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn write_ipv6(&self, [source, target]: [Ipv6Addr; 2], behind: usize, ip: &mut [u8]) {
        // Version, traffic class, and no flow label.
        let first = 6 << 28 | u32::from(self.traffic_class) << 20;
        ip[..4].copy_from_slice(&first.to_be_bytes());
        ip[4..6].copy_from_slice(&(behind as u16).to_be_bytes());
        ip[6] = self.protocol;
        ip[7] = HOPS;
        ip[8..24].copy_from_slice(&source.octets());
        ip[24..40].copy_from_slice(&target.octets());
    }

    /// The headers of a packet, and where its datagram is. `None` for all that [`Self::write`]
    /// could not have written but for its length, which the link may have filled up, and its hops.
    pub(super) fn parse(packet: &[u8]) -> Option<(Self, Range<usize>)> {
        let (ethernet, ip) = packet.split_at_checked(ETHERNET_BYTES)?;
        let addresses = match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
            ETHERTYPE_IPV4 => parse_ipv4(ip)?,
            ETHERTYPE_IPV6 => parse_ipv6(ip)?,
            _ => return None,
        };
        let native = ip.get(addresses.header_bytes..addresses.packet_bytes)?;
        let (header, datagram) = NativeHeader::parse(native)?;
        let headers = Self {
            hardware_target: *ethernet.first_chunk()?,
            hardware_source: *ethernet[6..].first_chunk()?,
            source: SocketAddr::new(addresses.source, header.source),
            target: SocketAddr::new(addresses.target, header.destination),
            protocol: addresses.protocol,
            traffic_class: addresses.traffic_class,
        };
        let end = ETHERNET_BYTES + addresses.packet_bytes;
        Some((headers, end - datagram.len()..end))
    }

    /// The identification of an IPv4 packet; `None` for one of IPv6.
    pub(super) fn identification(packet: &[u8]) -> Option<u16> {
        let (ethernet, ip) = packet.split_at_checked(ETHERNET_BYTES)?;
        let is_ipv4 = ethernet[12..] == ETHERTYPE_IPV4.to_be_bytes();
        let bytes = ip.get(4..6)?.first_chunk()?;
        is_ipv4.then(|| u16::from_be_bytes(*bytes))
    }
}

/// The header of IP.
struct IpHeader {
    source: IpAddr,
    target: IpAddr,
    protocol: u8,
    traffic_class: u8,
    header_bytes: usize,
    packet_bytes: usize,
}

fn parse_ipv4(ip: &[u8]) -> Option<IpHeader> {
    let header = ip.first_chunk::<20>()?;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0;
    // The sum over a header with its checksum is all ones.
    if header[0] != 0x45 || is_fragment || ones_complement_sum(header) != 0xFFFF {
        return None;
    }
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    Some(IpHeader {
        source: address(12).into(),
        target: address(16).into(),
        protocol: header[9],
        traffic_class: header[1],
        header_bytes: 20,
        packet_bytes: u16::from_be_bytes([header[2], header[3]]).into(),
    })
}

fn parse_ipv6(ip: &[u8]) -> Option<IpHeader> {
    let header = ip.first_chunk::<40>()?;
    let address = |at: usize| Some(Ipv6Addr::from(*header[at..].first_chunk::<16>()?));
    (header[0] >> 4 == 6).then_some(())?;
    Some(IpHeader {
        source: address(8)?.into(),
        target: address(24)?.into(),
        protocol: header[6],
        traffic_class: header[0] << 4 | header[1] >> 4,
        header_bytes: 40,
        packet_bytes: 40 + usize::from(u16::from_be_bytes([header[4], header[5]])),
    })
}

/// The checksum's sum (RFC 1071).
fn ones_complement_sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2);
    let mut sum: u32 = words.map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// Hops that a packet may take.
const HOPS: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(source: &str, target: &str) -> Headers {
        Headers {
            hardware_source: [2, 0, 0, 0, 0, 1],
            hardware_target: [2, 0, 0, 0, 0, 2],
            source: source.parse().unwrap(),
            target: target.parse().unwrap(),
            protocol: 253,
            traffic_class: 0xA3,
        }
    }

    #[test]
    fn a_packet_is_read_as_it_was_written_and_padding_of_the_link_is_passed_over() {
        for headers in [headers("10.0.0.1:7", "10.0.0.2:8"), headers("[fd00::1]:7", "[fd00::2]:8")]
        {
            let mut packet = [0xEE; 100];
            let length = headers.write(b"abc", &mut packet);
            assert_eq!(length, ETHERNET_BYTES + Headers::ip_bytes(headers.source.is_ipv4()) + 3);
            let (read, place) = Headers::parse(&packet).unwrap();
            assert_eq!((read, &packet[place]), (headers, &b"abc"[..]));
            for end in 0..length {
                assert_eq!(Headers::parse(&packet[..end]), None, "{end}");
            }
        }
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // The header of https://en.wikipedia.org/wiki/Internet_checksum, whose checksum is 0xB861.
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xC0, 0xA8, 0, 1, 0xC0, 0xA8, 0,
            0xC7,
        ];
        assert_eq!(!ones_complement_sum(&header), 0xB861);
    }

    #[test]
    fn damaged_headers_fragments_and_options_are_none() {
        let headers = headers("10.0.0.1:7", "10.0.0.2:8");
        let mut packet = [0; 100];
        headers.write(b"abc", &mut packet);
        for at in [0, 1, 2, 6, 8, 9, 12, 19] {
            let mut damaged = packet;
            damaged[ETHERNET_BYTES + at] ^= 0x20;
            assert_eq!(Headers::parse(&damaged), None, "{at}");
        }
    }

    #[test]
    fn a_packet_that_does_not_fit_is_not_written() {
        let headers = headers("10.0.0.1:7", "10.0.0.2:8");
        assert_eq!(headers.write(b"abc", &mut [0; 44]), 0);
    }
}
