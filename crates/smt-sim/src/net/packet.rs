// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A datagram on the wire, and the hosts' addresses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use smt_wire::{PacketType, parse};

/// A host's number, from 0, and one of its sockets: the number alone is the first one.
///
/// The highest byte says which socket: two bits of the network, six of the port ([`Self::socket`]).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(pub u32);

/// A datagram between two hosts.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The sender.
    pub from: HostId,
    /// The receiver.
    pub to: HostId,
    /// The UDP payload.
    pub bytes: Bytes,
    /// 0 to 7, 7 most urgent.
    pub priority: u8,
    /// A switch had a long queue (ECN, "congestion experienced").
    pub is_marked: bool,
    /// A switch has trimmed it to its first bytes.
    pub is_trimmed: bool,
    /// The value by which equal-cost paths are chosen for other protocols than SMT: the same for
    /// packets that must stay together. Those of SMT tell their message themselves.
    pub entropy: u64,
    /// The protocol, as IP's header tells it.
    pub protocol: Protocol,
}

/// The protocol of a packet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Protocol {
    /// SMT, by UDP.
    #[default]
    Smt,
    /// A byte stream.
    Tcp,
    /// SMT in a packet that a NIC has sealed, by UDP to PSP's port (SPEC §15.3).
    Psp,
}

impl Packet {
    /// Bytes that it takes on an Ethernet link, with everything that goes with it.
    pub fn wire_len(&self) -> u64 {
        wire_len(self.bytes.len())
    }
}

impl HostId {
    /// Another socket of this host. Each network has an address for each host: what is in one /24
    /// of a network is in one of every network. A host's packets take its one cable, from whichever
    /// socket they are.
    ///
    /// # Panics
    /// If the network is above 3, or the port above 63.
    #[must_use]
    pub fn socket(self, network: u8, port: u8) -> Self {
        assert!(network < NETWORKS && port < PORTS, "there is no such socket");
        Self(u32::from(network * PORTS + port) << SOCKET_SHIFT | self.cable().0)
    }

    /// The host alone, whichever socket was meant.
    #[must_use]
    pub fn cable(self) -> Self {
        Self(self.0 & HOST_MASK)
    }

    /// Its UDP address.
    pub fn address(self) -> SocketAddr {
        let port = PORT + u16::from(self.socket_number() % PORTS);
        SocketAddr::new(IpAddr::V4(Ipv4Addr::from(self.ip())), port)
    }

    /// Its IPv4 address.
    pub(crate) fn ip(self) -> [u8; 4] {
        let [_, b, c, d] = self.0.to_be_bytes();
        [FIRST_NETWORK + self.socket_number() / PORTS, b, c, d]
    }

    /// Whose address this is. `None` if it is none of ours.
    pub fn of(address: SocketAddr) -> Option<Self> {
        let IpAddr::V4(ip) = address.ip() else {
            return None;
        };
        let [network, b, c, d] = ip.octets();
        let network = network.checked_sub(FIRST_NETWORK)?;
        let port = u8::try_from(address.port().checked_sub(PORT)?).ok()?;
        let host = Self(u32::from_be_bytes([0, b, c, d]));
        (network < NETWORKS && port < PORTS).then(|| host.socket(network, port))
    }

    /// The first socket at this address of IPv4, whatever its port.
    pub(crate) fn of_ip(ip: [u8; 4]) -> Option<Self> {
        Self::of(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), PORT))
    }

    fn socket_number(self) -> u8 {
        (self.0 >> SOCKET_SHIFT) as u8
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

/// Bytes on an Ethernet link for a UDP payload: preamble 8, Ethernet 14, IPv4 20, UDP 8, FCS 4, gap
/// 12; at least 84.
pub fn wire_len(payload: usize) -> u64 {
    (payload as u64 + FRAME_OVERHEAD).max(FRAME_MIN)
}

/// Everything on the wire but the UDP payload.
pub const FRAME_OVERHEAD: u64 = 8 + 14 + 20 + 8 + 4 + 12;
/// The shortest frame of 64 bytes, with preamble and gap.
const FRAME_MIN: u64 = 84;
/// The port of each host's first socket.
const PORT: u16 = 17_379;
/// Ports of an address.
const PORTS: u8 = 64;
/// Networks, of which every host has an address.
const NETWORKS: u8 = 4;
/// The highest byte of the addresses of the first network.
const FIRST_NETWORK: u8 = 10;
/// Where the socket stands in a [`HostId`], above the host.
const SOCKET_SHIFT: u32 = 24;
const HOST_MASK: u32 = (1 << SOCKET_SHIFT) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_their_hosts() {
        for host in [0, 1, 255, 256, 70_000] {
            assert_eq!(HostId::of(HostId(host).address()), Some(HostId(host)));
        }
        assert_eq!(HostId::of("192.0.2.1:17379".parse().unwrap()), None);
        assert_eq!(HostId::of("10.0.0.1:17378".parse().unwrap()), None);
        assert_eq!(HostId::of("10.0.0.1:17443".parse().unwrap()), None);
        assert_eq!(HostId::of("14.0.0.1:17379".parse().unwrap()), None);
    }

    #[test]
    fn a_host_has_sockets_of_several_networks_and_ports() {
        let host = HostId(70_000);
        assert_eq!(host.socket(0, 0), host);
        let socket = host.socket(3, 63);
        assert_eq!(socket.address(), "13.1.17.112:17442".parse().unwrap());
        assert_eq!(HostId::of(socket.address()), Some(socket));
        assert_eq!(socket.cable(), host);
        assert_eq!(socket.socket(0, 5).address(), "10.1.17.112:17384".parse().unwrap());
    }

    #[test]
    fn a_full_ethernet_frame_is_1538_bytes() {
        assert_eq!(wire_len(1_472), 1_538);
        assert_eq!(wire_len(1), 84);
    }
}
