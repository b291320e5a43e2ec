// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's knowledge of the network: which interface has an address, and by which interface
//! and neighbour another one is reached.

use super::frame::HardwareAddress;
use super::netlink::{Netlink, Question, push_attribute};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// An interface of Ethernet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Interface {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) address: HardwareAddress,
    pub(super) mtu: usize,
}

/// The neighbour to whom packets for an address are sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NextHop {
    pub(super) interface: u32,
    /// `None` as long as the kernel has not found it out.
    pub(super) address: Option<HardwareAddress>,
    /// Whether the kernel has heard of the neighbour lately.
    pub(super) is_confirmed: bool,
}

impl Netlink {
    /// The interface that has an address; `None` if none has, or it is none of Ethernet.
    pub(super) fn interface_of(&mut self, ip: IpAddr) -> io::Result<Option<Interface>> {
        let mut body = vec![family(ip)];
        body.resize(ADDRESS_BYTES, 0);
        let addresses =
            self.ask(&Question { kind: RTM_GETADDR, is_about_all: true, body: &body })?;
        let octets = octets(ip);
        let found = addresses.iter().find(|answer| {
            // The local address is told apart from the peer's only where they differ.
            let local = answer.attribute(ADDRESS_BYTES, IFA_LOCAL);
            let own = local.or_else(|| answer.attribute(ADDRESS_BYTES, IFA_ADDRESS));
            own == Some(&octets)
        });
        let Some(found) = found else {
            return Ok(None);
        };
        let [.., a, b, c, d] = found.fixed::<ADDRESS_BYTES>();
        self.interface(u32::from_ne_bytes([a, b, c, d]))
    }

    fn interface(&mut self, index: u32) -> io::Result<Option<Interface>> {
        let mut body = vec![0; LINK_BYTES];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        let links = self.ask(&Question { kind: RTM_GETLINK, is_about_all: false, body: &body })?;
        let interface = links.first().and_then(|link| {
            let name = link.attribute(LINK_BYTES, IFLA_IFNAME)?;
            let address = link.attribute(LINK_BYTES, IFLA_ADDRESS)?;
            Some(Interface {
                index,
                name: String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name)).into_owned(),
                address: address.try_into().ok()?,
                mtu: link.number(LINK_BYTES, IFLA_MTU)? as usize,
            })
        });
        Ok(interface)
    }

    /// The way to an address, from one of this host's.
    pub(super) fn next_hop(&mut self, remote: SocketAddr, local: IpAddr) -> io::Result<NextHop> {
        let target = remote.ip();
        let bits = octets(target).len() as u8 * 8;
        let mut body = vec![0; ROUTE_BYTES];
        body[..3].copy_from_slice(&[family(target), bits, bits]);
        push_attribute(&mut body, RTA_DST, &octets(target));
        push_attribute(&mut body, RTA_SRC, &octets(local));
        if let SocketAddr::V6(remote) = remote
            && remote.scope_id() != 0
        {
            push_attribute(&mut body, RTA_OIF, &remote.scope_id().to_ne_bytes());
        }
        let routes =
            self.ask(&Question { kind: RTM_GETROUTE, is_about_all: false, body: &body })?;
        let route = routes.first().ok_or(io::ErrorKind::NotFound)?;
        let interface = route.number(ROUTE_BYTES, RTA_OIF);
        let interface = interface.ok_or(io::ErrorKind::NotFound)?;
        let gateway = route.attribute(ROUTE_BYTES, RTA_GATEWAY);
        let neighbour = gateway.map_or_else(|| octets(target), <[u8]>::to_vec);
        self.neighbour(interface, &neighbour)
    }

    /// The kernel's knowledge of a neighbour, by the bytes of its address.
    fn neighbour(&mut self, interface: u32, ip: &[u8]) -> io::Result<NextHop> {
        let mut body = vec![0; NEIGHBOUR_BYTES];
        body[0] = match ip.len() {
            4 => libc::AF_INET as u8,
            _ => libc::AF_INET6 as u8,
        };
        body[4..8].copy_from_slice(&interface.to_ne_bytes());
        push_attribute(&mut body, NDA_DST, ip);
        let unknown = NextHop { interface, address: None, is_confirmed: false };
        let asked = self.ask(&Question { kind: RTM_GETNEIGH, is_about_all: false, body: &body });
        // The kernel has no entry before it had to send something.
        let Ok(neighbours) = asked else {
            return Ok(unknown);
        };
        let Some(neighbour) = neighbours.first() else {
            return Ok(unknown);
        };
        let header = neighbour.fixed::<NEIGHBOUR_BYTES>();
        let state = u16::from_ne_bytes([header[8], header[9]]);
        let address = neighbour.attribute(NEIGHBOUR_BYTES, NDA_LLADDR);
        let is_usable = state & (NUD_INCOMPLETE | NUD_FAILED) == 0;
        Ok(NextHop {
            address: address.filter(|_| is_usable).and_then(|address| address.try_into().ok()),
            is_confirmed: state & (NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP) != 0,
            ..unknown
        })
    }
}

fn family(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

// Messages, their fixed parts and their attributes (linux/rtnetlink.h, if_addr.h, if_link.h,
// neighbour.h).
const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
const RTM_GETNEIGH: u16 = 30;
const ADDRESS_BYTES: usize = 8;
const LINK_BYTES: usize = 16;
const ROUTE_BYTES: usize = 12;
const NEIGHBOUR_BYTES: usize = 12;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_INCOMPLETE: u16 = 0x01;
const NUD_REACHABLE: u16 = 0x02;
const NUD_FAILED: u16 = 0x20;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address_and_is_the_way_to_itself() {
        let mut netlink = Netlink::open().unwrap();
        let local: IpAddr = "127.0.0.1".parse().unwrap();
        let interface = netlink.interface_of(local).unwrap().unwrap();
        assert_eq!((&interface.name[..], interface.address), ("lo", [0; 6]));
        let way = netlink.next_hop(SocketAddr::new(local, 9), local).unwrap();
        assert_eq!(way.interface, interface.index);
        assert!(interface.mtu >= 1_280, "{interface:?}");
    }

    #[test]
    fn an_address_of_another_host_is_of_no_interface() {
        let mut netlink = Netlink::open().unwrap();
        let found = netlink.interface_of("192.0.2.1".parse().unwrap()).unwrap();
        assert_eq!(found, None);
    }
}
