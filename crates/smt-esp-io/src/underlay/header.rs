// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IP and UDP headers that a socket takes off a packet, or puts before it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use smt_io::EspArrival;

const V4_LEN: usize = 20;
const V6_LEN: usize = 40;
const UDP_LEN: usize = 8;
const UDP: u8 = 17;
const ESP: u8 = 50;
/// Hops are not told by a socket, and nothing is forwarded behind a tunnel's end without its own.
const HOP_LIMIT: u8 = 64;

/// The headers of a sealed packet that leaves in UDP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct SealedHeader {
    pub(super) to: SocketAddr,
    pub(super) traffic_class: u8,
    /// Where ESP begins.
    pub(super) payload_at: usize,
}

impl SealedHeader {
    /// Reads them. Nothing if the packet is not ESP in UDP right behind its IP header: a socket of
    /// UDP cannot send extension headers.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let (udp_at, protocol, traffic_class) = match packet.first()? >> 4 {
            4 => (4 * usize::from(packet[0] & 0xF), *packet.get(9)?, *packet.get(1)?),
            6 => {
                let class = (packet[0] << 4) | (packet.get(1)? >> 4);
                (V6_LEN, *packet.get(6)?, class)
            }
            _ => return None,
        };
        let port = packet.get(udp_at + 2..udp_at + 4)?;
        (protocol == UDP && packet.len() > udp_at + UDP_LEN).then_some(Self {
            to: SocketAddr::new(destination(packet)?, u16::from_be_bytes([port[0], port[1]])),
            traffic_class,
            payload_at: udp_at + UDP_LEN,
        })
    }
}

/// The destination of an IP packet.
pub(super) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => {
            let octets: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets).into())
        }
        6 => {
            let octets: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            Some(Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}

/// Writes the headers of a payload in `memory` before it, of UDP too if a port is given, and tells
/// where they begin. There must be room for 48 bytes.
pub(super) fn write_header(
    memory: &mut [u8],
    payload: Range<usize>,
    arrival: &EspArrival,
    local_port: Option<u16>,
) -> usize {
    let udp_len = if local_port.is_some() { UDP_LEN } else { 0 };
    let length = payload.len() + udp_len;
    let protocol = if local_port.is_some() { UDP } else { ESP };
    if let Some(port) = local_port {
        let udp = &mut memory[payload.start - UDP_LEN..payload.start];
        udp[..2].copy_from_slice(&arrival.from.port().to_be_bytes());
        udp[2..4].copy_from_slice(&port.to_be_bytes());
        udp[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        // The kernel has checked it.
        udp[6..].fill(0);
    }
    let header_end = payload.start - udp_len;
    match (arrival.from.ip(), arrival.local) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let start = header_end - V6_LEN;
            let header = &mut memory[start..header_end];
            header.fill(0);
            header[0] = 0x60 | (arrival.traffic_class >> 4);
            header[1] = arrival.traffic_class << 4;
            header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            header[6] = protocol;
            header[7] = HOP_LIMIT;
            header[8..24].copy_from_slice(&from.octets());
            header[24..].copy_from_slice(&to.octets());
            start
        }
        (from, to) => {
            let start = header_end - V4_LEN;
            let header = &mut memory[start..header_end];
            header.fill(0);
            header[0] = 0x45;
            header[1] = arrival.traffic_class;
            header[2..4].copy_from_slice(&((length + V4_LEN) as u16).to_be_bytes());
            // Don't Fragment: without it each packet would need an identification of its own.
            header[6] = 0x40;
            header[8] = HOP_LIMIT;
            header[9] = protocol;
            header[12..16].copy_from_slice(&v4_octets(from));
            header[16..].copy_from_slice(&v4_octets(to));
            start
        }
    }
}

fn v4_octets(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(_) => [0; 4],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(from: &str, local: &str) -> EspArrival {
        EspArrival {
            from: from.parse().unwrap(),
            local: local.parse().unwrap(),
            traffic_class: 0xB9,
            length: 8,
            segment_size: 8,
        }
    }

    #[test]
    fn a_header_that_is_written_is_read_again() {
        for (from, local) in [("192.0.2.1:4500", "192.0.2.2"), ("[fd00::1]:4500", "fd00::2")] {
            let mut memory = [7; 80];
            let arrival = arrival(from, local);
            let start = write_header(&mut memory, 64..80, &arrival, Some(4501));
            let header = SealedHeader::of(&memory[start..]).unwrap();
            assert_eq!(header.to, SocketAddr::new(arrival.local, 4501));
            assert_eq!(header.traffic_class, 0xB9);
            assert_eq!(start + header.payload_at, 64);
        }
    }

    #[test]
    fn a_packet_without_udp_is_not_sent_as_a_datagram() {
        let mut memory = [0; 80];
        let arrival = arrival("192.0.2.1:0", "192.0.2.2");
        let start = write_header(&mut memory, 64..80, &arrival, None);
        assert_eq!(SealedHeader::of(&memory[start..]), None);
        for length in 0..28 {
            assert_eq!(SealedHeader::of(&memory[start..start + length.min(20)]), None);
        }
    }
}
