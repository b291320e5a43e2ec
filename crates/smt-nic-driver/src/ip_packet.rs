// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IP packets with SMT natively in them (SPEC §15.2): the headers of those that leave, and the
//! datagram in one that has come.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use smt_wire::native::{FIRST_IDENTIFICATION, NativeHeader, unmark_segment};
use thiserror::Error;

/// The two ends of packets that leave. Both are of one IP version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OutgoingAddresses {
    /// The sender.
    pub source: SocketAddr,
    /// The receiver.
    pub destination: SocketAddr,
}

impl OutgoingAddresses {
    /// The headers before a datagram: those of IP, and the native one. Lengths and checksums are
    /// the device's work. `priority` becomes the top bits of DSCP. `None` if the ends are of two IP
    /// versions.
    #[must_use]
    pub fn headers(&self, protocol: u8, priority: u8) -> Option<Vec<u8>> {
        let class = priority << 5;
        let mut bytes = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut header = vec![0; 20];
                header[0] = 0x45;
                header[1] = class;
                header[4..6].copy_from_slice(&FIRST_IDENTIFICATION.to_be_bytes());
                header[6] = DONT_FRAGMENT;
                header[8] = HOPS;
                header[9] = protocol;
                header[12..16].copy_from_slice(&source.octets());
                header[16..20].copy_from_slice(&destination.octets());
                header
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut header = vec![0; 40];
                header[0] = 0x60 | class >> 4;
                header[1] = class << 4;
                header[6] = protocol;
                header[7] = HOPS;
                header[8..24].copy_from_slice(&source.octets());
                header[24..40].copy_from_slice(&destination.octets());
                header
            }
            _ => return None,
        };
        let native =
            NativeHeader { source: self.source.port(), destination: self.destination.port() };
        bytes.extend_from_slice(&native.to_bytes());
        Some(bytes)
    }
}

/// A native packet that has come.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NativePacket {
    /// The sender, as the packet says.
    pub source: SocketAddr,
    /// The receiver, as the packet says.
    pub destination: SocketAddr,
    /// IPv4's TOS or IPv6's traffic class.
    pub traffic_class: u8,
    /// Where the datagram is in the packet. A packet of a segment has got its own offset.
    pub datagram: Range<usize>,
}

/// A packet that is no native packet of SMT.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum PacketError {
    /// It is no IP packet, cut short, or a fragment.
    #[error("no whole IP packet")]
    NotIp,
    /// It is of another protocol.
    #[error("a packet of another protocol")]
    OtherProtocol,
    /// It claims to be of a segment, and has no place in any.
    #[error("a packet without a place in its segment")]
    NoPlace,
}

impl NativePacket {
    /// Reads an IP packet where SMT has this protocol number, and gives a packet of a segment its
    /// own offset.
    ///
    /// # Errors
    /// [`PacketError`]; the packet is to be dropped.
    pub fn parse(packet: &mut [u8], protocol: u8) -> Result<Self, PacketError> {
        let ip = IpHeader::parse(packet).ok_or(PacketError::NotIp)?;
        if ip.protocol != protocol {
            return Err(PacketError::OtherProtocol);
        }
        let native = packet.get(ip.payload.clone()).ok_or(PacketError::NotIp)?;
        let (native, _) = NativeHeader::parse(native).ok_or(PacketError::NotIp)?;
        let datagram = ip.payload.start + NativeHeader::LEN..ip.payload.end;
        unmark_segment(&mut packet[datagram.clone()], ip.identification)
            .map_err(|_| PacketError::NoPlace)?;
        Ok(Self {
            source: SocketAddr::new(ip.source, native.source),
            destination: SocketAddr::new(ip.destination, native.destination),
            traffic_class: ip.traffic_class,
            datagram,
        })
    }
}

/// The header of IP, as far as it is read.
struct IpHeader {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    traffic_class: u8,
    /// IPv4's identification.
    identification: Option<u16>,
    payload: Range<usize>,
}

impl IpHeader {
    fn parse(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::of_v4(packet),
            6 => Self::of_v6(packet),
            _ => None,
        }
    }

    fn of_v4(packet: &[u8]) -> Option<Self> {
        let header = packet.first_chunk::<20>()?;
        let start = usize::from(header[0] & 0xF) * 4;
        let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let is_fragment = u16::from_be_bytes([header[6], header[7]]) & FRAGMENT != 0;
        let is_whole = !is_fragment && start >= 20 && start <= end && end <= packet.len();
        let address = |at: usize| {
            let [a, b, c, d] = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            IpAddr::from([a, b, c, d])
        };
        is_whole.then(|| Self {
            source: address(12),
            destination: address(16),
            protocol: header[9],
            traffic_class: header[1],
            identification: Some(u16::from_be_bytes([header[4], header[5]])),
            payload: start..end,
        })
    }

    fn of_v6(packet: &[u8]) -> Option<Self> {
        let header = packet.first_chunk::<40>()?;
        let end = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&header[at..at + 16]);
            IpAddr::from(octets)
        };
        (end <= packet.len()).then(|| Self {
            source: address(8),
            destination: address(24),
            protocol: header[6],
            traffic_class: header[0] << 4 | header[1] >> 4,
            identification: None,
            payload: 40..end,
        })
    }
}

const HOPS: u8 = 64;
const DONT_FRAGMENT: u8 = 0x40;
/// More fragments, or an offset of one.
const FRAGMENT: u16 = 0x3FFF;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: &str, destination: &str) -> Vec<u8> {
        let addresses = OutgoingAddresses {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        };
        let mut bytes = addresses.headers(253, 5).unwrap();
        bytes.extend_from_slice(b"datagram");
        let length = bytes.len() as u16;
        match bytes[0] >> 4 {
            4 => bytes[2..4].copy_from_slice(&length.to_be_bytes()),
            _ => bytes[4..6].copy_from_slice(&(length - 40).to_be_bytes()),
        }
        bytes
    }

    const V4: [&str; 2] = ["192.0.2.1:7", "192.0.2.2:9"];
    const V6: [&str; 2] = ["[2001:db8::1]:7", "[2001:db8::2]:9"];

    #[test]
    fn packets_of_both_versions_are_read_as_they_were_written() {
        for [source, destination] in [V4, V6] {
            let mut bytes = packet(source, destination);
            let read = NativePacket::parse(&mut bytes, 253).unwrap();
            assert_eq!(read.source, source.parse().unwrap());
            assert_eq!(read.destination, destination.parse().unwrap());
            assert_eq!(read.traffic_class, 5 << 5);
            assert_eq!(&bytes[read.datagram], b"datagram");
        }
    }

    #[test]
    fn other_protocols_fragments_and_packets_cut_short_are_refused() {
        for [source, destination] in [V4, V6] {
            let whole = packet(source, destination);
            let other = NativePacket::parse(&mut whole.clone(), 252);
            assert_eq!(other, Err(PacketError::OtherProtocol));
            for length in 0..whole.len() {
                let mut cut = whole[..length].to_vec();
                assert_eq!(NativePacket::parse(&mut cut, 253), Err(PacketError::NotIp));
            }
        }
        let mut fragment = packet(V4[0], V4[1]);
        fragment[6] = 0x20;
        assert_eq!(NativePacket::parse(&mut fragment, 253), Err(PacketError::NotIp));
    }

    #[test]
    fn ends_of_two_versions_have_no_packet() {
        let addresses = OutgoingAddresses {
            source: V4[0].parse().unwrap(),
            destination: V6[0].parse().unwrap(),
        };
        assert_eq!(addresses.headers(253, 0), None);
    }
}
