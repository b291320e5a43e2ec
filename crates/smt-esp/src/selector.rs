// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which packets an association or a policy is for (RFC 4301 §4.4.1.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use crate::ip::{Headers, MalformedIp, protocol};

/// Addresses and ports of a packet, as selectors see them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flow {
    /// The sender's address.
    pub source: IpAddr,
    /// The receiver's address.
    pub destination: IpAddr,
    /// The protocol above IP and its extension headers.
    pub protocol: u8,
    /// Source and destination port, of a protocol that has ports; a fragment has none.
    pub ports: Option<(u16, u16)>,
}

impl Flow {
    /// Reads the flow of an IP packet.
    ///
    /// # Errors
    /// If the bytes are no whole IP packet.
    pub fn of_packet(packet: &[u8]) -> Result<Self, MalformedIp> {
        Ok(Self::new(packet, &Headers::parse(packet)?))
    }

    pub(crate) fn new(packet: &[u8], headers: &Headers) -> Self {
        let protocol = headers.upper.protocol;
        Self {
            source: headers.source,
            destination: headers.destination,
            protocol,
            ports: (!headers.fragment && has_ports(protocol))
                .then(|| packet.get(headers.upper.at..headers.length)?.first_chunk())
                .flatten()
                .map(|[a, b, c, d]| (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))),
        }
    }
}

const fn has_ports(protocol: u8) -> bool {
    matches!(
        protocol,
        protocol::TCP | protocol::UDP | protocol::DCCP | protocol::SCTP | protocol::UDP_LITE
    )
}

/// A range of addresses of one IP version, or any address.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Addresses(Option<(IpAddr, IpAddr)>);

impl Addresses {
    /// Any address of both versions.
    pub const ANY: Self = Self(None);

    /// One address.
    #[must_use]
    pub const fn one(address: IpAddr) -> Self {
        Self(Some((address, address)))
    }

    /// The addresses from `first` to `last`; nothing if they are not of one version.
    #[must_use]
    pub fn range(first: IpAddr, last: IpAddr) -> Option<Self> {
        (first.is_ipv4() == last.is_ipv4()).then_some(Self(Some((first, last))))
    }

    /// The addresses with the same first `length` bits; nothing if there are not so many bits.
    #[must_use]
    pub fn prefix(address: IpAddr, length: u8) -> Option<Self> {
        let length = u32::from(length);
        match address {
            IpAddr::V4(address) => {
                let host = u32::MAX.checked_shr(length).unwrap_or(0);
                let first = Ipv4Addr::from_bits(address.to_bits() & !host);
                let last = Ipv4Addr::from_bits(address.to_bits() | host);
                (length <= 32).then_some(Self(Some((first.into(), last.into()))))
            }
            IpAddr::V6(address) => {
                let host = u128::MAX.checked_shr(length).unwrap_or(0);
                let first = Ipv6Addr::from_bits(address.to_bits() & !host);
                let last = Ipv6Addr::from_bits(address.to_bits() | host);
                (length <= 128).then_some(Self(Some((first.into(), last.into()))))
            }
        }
    }

    /// Whether an address is among them.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        // Every IPv4 address orders before every IPv6 address, and both ends are of one version.
        self.0.is_none_or(|(first, last)| first <= address && address <= last)
    }
}

/// Which packets an association or a policy is for; a field that is not set is a wildcard.
///
/// A port that is set does not match a packet without ports, such as a fragment: the selector
/// would have to be OPAQUE for that (RFC 4301 §4.4.1.1).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Selectors {
    /// This host's addresses.
    pub local: Addresses,
    /// The peer's addresses.
    pub remote: Addresses,
    /// The protocol above IP and its extension headers.
    pub protocol: Option<u8>,
    /// This host's ports.
    pub local_ports: Option<RangeInclusive<u16>>,
    /// The peer's ports.
    pub remote_ports: Option<RangeInclusive<u16>>,
}

impl Selectors {
    /// Whether a packet of this flow that this host sends is one of them.
    #[must_use]
    pub fn match_outbound(&self, flow: &Flow) -> bool {
        self.local.contains(flow.source)
            && self.remote.contains(flow.destination)
            && self.protocol.is_none_or(|wanted| wanted == flow.protocol)
            && match_port(self.local_ports.as_ref(), flow.ports.map(|ports| ports.0))
            && match_port(self.remote_ports.as_ref(), flow.ports.map(|ports| ports.1))
    }

    /// Whether a packet of this flow that this host receives is one of them.
    #[must_use]
    pub fn match_inbound(&self, flow: &Flow) -> bool {
        self.match_outbound(&Flow {
            source: flow.destination,
            destination: flow.source,
            protocol: flow.protocol,
            ports: flow.ports.map(|(source, destination)| (destination, source)),
        })
    }
}

fn match_port(wanted: Option<&RangeInclusive<u16>>, port: Option<u16>) -> bool {
    wanted.is_none_or(|wanted| port.is_some_and(|port| wanted.contains(&port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> Flow {
        Flow {
            source: "10.0.0.1".parse().unwrap(),
            destination: "10.0.1.2".parse().unwrap(),
            protocol: protocol::TCP,
            ports: Some((1000, 443)),
        }
    }

    #[test]
    fn each_selector_decides_alone() {
        let any = Selectors::default();
        assert!(any.match_outbound(&flow()));
        let others = [
            Selectors { local: Addresses::one("10.0.0.2".parse().unwrap()), ..any.clone() },
            Selectors {
                remote: Addresses::prefix("10.0.0.0".parse().unwrap(), 24).unwrap(),
                ..any.clone()
            },
            Selectors { protocol: Some(protocol::UDP), ..any.clone() },
            Selectors { local_ports: Some(1..=999), ..any.clone() },
            Selectors { remote_ports: Some(444..=444), ..any },
        ];
        for selectors in others {
            assert!(!selectors.match_outbound(&flow()), "{selectors:?}");
        }
    }

    #[test]
    fn a_received_packet_is_seen_from_the_other_side() {
        let selectors = Selectors {
            local: Addresses::one(flow().destination),
            local_ports: Some(443..=443),
            ..Selectors::default()
        };
        assert!(selectors.match_inbound(&flow()));
        assert!(!selectors.match_outbound(&flow()));
    }

    #[test]
    fn a_packet_without_ports_matches_no_port() {
        let selectors = Selectors { remote_ports: Some(0..=u16::MAX), ..Selectors::default() };
        let fragment = Flow { ports: None, ..flow() };
        assert!(!selectors.match_outbound(&fragment));
        assert!(Selectors::default().match_outbound(&fragment));
    }

    #[test]
    fn a_prefix_has_its_first_and_last_address() {
        let prefix = Addresses::prefix("10.1.2.3".parse().unwrap(), 23).unwrap();
        for (address, inside) in [
            ("10.1.1.255", false),
            ("10.1.2.0", true),
            ("10.1.3.255", true),
            ("10.1.4.0", false),
            ("::", false),
        ] {
            assert_eq!(prefix.contains(address.parse().unwrap()), inside, "{address}");
        }
        let all = Addresses::prefix("::1".parse().unwrap(), 0).unwrap();
        assert!(all.contains("ffff::".parse().unwrap()));
        assert!(!all.contains("1.2.3.4".parse().unwrap()));
        assert!(Addresses::prefix("10.1.2.3".parse().unwrap(), 33).is_none());
    }
}
