// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A datagram on the wire, and the hosts' addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use smt_wire::{PacketType, parse};

/// A host's number, from 0.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(pub u32);

/// A datagram between two hosts.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Who sent it.
    pub from: HostId,
    /// Who is to get it.
    pub to: HostId,
    /// The UDP payload.
    pub bytes: Bytes,
    /// 0 to 7, 7 most urgent.
    pub priority: u8,
    /// A switch had a long queue (ECN, "congestion experienced").
    pub is_marked: bool,
    /// A switch has cut it to its first bytes.
    pub is_trimmed: bool,
    /// What equal-cost paths are chosen by: the same for packets that must stay together.
    pub entropy: u64,
}

impl Packet {
    /// Bytes that it takes on an Ethernet link, with everything that goes with it.
    pub fn wire_len(&self) -> u64 {
        wire_len(self.bytes.len())
    }
}

impl HostId {
    /// Its UDP address.
    pub fn address(self) -> SocketAddr {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::from(self.ip())), PORT)
    }

    /// Its IPv4 address.
    pub(crate) fn ip(self) -> [u8; 4] {
        let [_, b, c, d] = self.0.to_be_bytes();
        [10, b, c, d]
    }

    /// Whose address this is. `None` if it is none of ours.
    pub fn of(address: SocketAddr) -> Option<Self> {
        match address.ip() {
            IpAddr::V4(ip) if ip.octets()[0] == 10 && address.port() == PORT => {
                let [_, b, c, d] = ip.octets();
                Some(Self(u32::from_be_bytes([0, b, c, d])))
            }
            _ => None,
        }
    }
}

/// The packets of a datagram, up to what is none: their types and their bytes.
pub(crate) fn packets_of(datagram: &[u8]) -> impl Iterator<Item = (PacketType, &[u8])> + '_ {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let (packet, further) = parse(smt_wire::VERSION, rest).ok()?;
        let (bytes, _) = rest.split_at(rest.len() - further.len());
        rest = further;
        Some((packet.packet_type(), bytes))
    })
}

/// Bytes on an Ethernet link for a UDP payload: preamble 8, Ethernet 14, IPv4 20, UDP 8, FCS 4, gap 12; at
/// least 84.
pub fn wire_len(payload: usize) -> u64 {
    (payload as u64 + FRAME_OVERHEAD).max(FRAME_MIN)
}

/// Everything on the wire but the UDP payload.
pub const FRAME_OVERHEAD: u64 = 8 + 14 + 20 + 8 + 4 + 12;
/// The shortest frame of 64 bytes, with preamble and gap.
const FRAME_MIN: u64 = 84;
/// Of all hosts.
const PORT: u16 = 17_379;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_their_hosts() {
        for host in [0, 1, 255, 256, 70_000] {
            assert_eq!(HostId::of(HostId(host).address()), Some(HostId(host)));
        }
        assert_eq!(HostId::of("192.0.2.1:17379".parse().unwrap()), None);
        assert_eq!(HostId::of("10.0.0.1:17380".parse().unwrap()), None);
    }

    #[test]
    fn a_full_ethernet_frame_is_1538_bytes() {
        assert_eq!(wire_len(1_472), 1_538);
        assert_eq!(wire_len(1), 84);
    }
}
