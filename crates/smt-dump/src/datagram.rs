// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A datagram in an IP packet, of version 4 or 6: behind UDP's header, or behind that of SMT
//! natively over IP (SPEC §15.2).
//!
//! Fragments are none of ours: SMT's datagrams are never fragmented (SPEC §15.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Addresses and payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Datagram<'a> {
    pub(crate) carrier: CarrierKind,
    pub(crate) source: SocketAddr,
    pub(crate) target: SocketAddr,
    pub(crate) payload: &'a [u8],
    /// Bytes of the payload that the capture cut off.
    pub(crate) missing: usize,
    /// The IP packet that it is in, up to the payload's end.
    pub(crate) packet: &'a [u8],
    /// Where the payload begins in the packet.
    pub(crate) payload_at: usize,
}

/// The header in front of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CarrierKind {
    Native,
    Udp,
}

impl CarrierKind {
    /// As JSON names it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Udp => "udp",
        }
    }
}

/// The datagram in an IP packet of which `missing` bytes were not captured; `None` if there is
/// none. Native ones are those of this protocol number.
pub(crate) fn of_ip(packet: &[u8], missing: usize, native: Option<u8>) -> Option<Datagram<'_>> {
    let headers = match packet.first()? >> 4 {
        4 => ipv4(packet)?,
        _ => ipv6(packet)?,
    };
    let carrier = match headers.protocol {
        UDP => CarrierKind::Udp,
        protocol if Some(protocol) == native => CarrierKind::Native,
        _ => return None,
    };
    let (header, rest) = packet.get(headers.length..)?.split_first_chunk::<8>()?;
    let [s, p, t, q, a, b, ..] = *header;
    let told = match carrier {
        CarrierKind::Udp => usize::from(u16::from_be_bytes([a, b])),
        CarrierKind::Native => headers.payload_length.unwrap_or(0),
    };
    // A length of 0 stands for one that does not fit; else what follows it is the link's padding.
    let length = match told.checked_sub(8) {
        Some(length) => length,
        None => rest.len() + missing,
    };
    let payload = &rest[..length.min(rest.len())];
    let payload_at = headers.length + 8;
    Some(Datagram {
        carrier,
        source: SocketAddr::new(headers.addresses[0], u16::from_be_bytes([s, p])),
        target: SocketAddr::new(headers.addresses[1], u16::from_be_bytes([t, q])),
        payload,
        missing: length - payload.len(),
        packet: &packet[..payload_at + payload.len()],
        payload_at,
    })
}

/// The contents of IP's headers.
struct IpHeaders {
    /// Source and destination.
    addresses: [IpAddr; 2],
    /// The protocol behind them.
    protocol: u8,
    /// Bytes of all of them.
    length: usize,
    /// Bytes behind them; `None` if they are too many to tell, or nonsense.
    payload_length: Option<usize>,
}

fn ipv4(packet: &[u8]) -> Option<IpHeaders> {
    let header = packet.first_chunk::<20>()?;
    let length = usize::from(header[0] & 0x0F) * 4;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0;
    if length < 20 || is_fragment {
        return None;
    }
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    Some(IpHeaders {
        addresses: [address(12).into(), address(16).into()],
        protocol: header[9],
        length,
        payload_length: total.checked_sub(length),
    })
}

fn ipv6(packet: &[u8]) -> Option<IpHeaders> {
    let (header, mut rest) = packet.split_first_chunk::<40>()?;
    let mut protocol = header[6];
    while matches!(protocol, HOP_BY_HOP | ROUTING | DESTINATION) {
        let &[after, words] = rest.first_chunk()?;
        protocol = after;
        rest = rest.get((usize::from(words) + 1) * 8..)?;
    }
    let address = |bytes: &[u8]| Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).into());
    let length = packet.len() - rest.len();
    let total = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    Some(IpHeaders {
        addresses: [address(&header[8..])?, address(&header[24..])?],
        protocol,
        length,
        payload_length: total.checked_sub(length),
    })
}

const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION: u8 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// Ports 1 and 2, payload `abc`, and two bytes that are the link's.
    const DATAGRAM: [u8; 13] = [0, 1, 0, 2, 0, 11, 0, 0, b'a', b'b', b'c', 0, 0];

    fn v4() -> Vec<u8> {
        let mut packet = vec![
            0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        packet.extend(DATAGRAM);
        packet
    }

    fn v6() -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        packet[6] = DESTINATION;
        packet[23] = 1;
        packet[39] = 2;
        packet.extend([UDP, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend(DATAGRAM);
        packet
    }

    mod of_ip {
        use super::*;

        #[test]
        fn both_versions_are_understood() {
            for (packet, source, target) in [
                (v4(), "10.0.0.1:1", "10.0.0.2:2"),
                (v6(), "[::1]:1", "[::2]:2"),
            ] {
                let datagram = of_ip(&packet, 0, None).unwrap();
                assert_eq!(datagram.source, source.parse().unwrap());
                assert_eq!(datagram.target, target.parse().unwrap());
                assert_eq!((datagram.payload, datagram.missing), (&b"abc"[..], 0));
            }
        }

        #[test]
        fn what_was_cut_off_is_counted() {
            let packet = v4();
            let datagram = of_ip(&packet[..30], 3, None).unwrap();
            assert_eq!((datagram.payload, datagram.missing), (&b"ab"[..], 1));
        }

        #[test]
        fn fragments_other_protocols_and_short_packets_are_none() {
            let (mut fragment, mut tcp) = (v4(), v4());
            fragment[6] = 0x20;
            tcp[9] = 6;
            assert_eq!(of_ip(&fragment, 0, None), None);
            assert_eq!(of_ip(&tcp, 0, None), None);
            for (packet, end) in [(v4(), 28), (v6(), 56)] {
                for end in 0..end {
                    assert_eq!(of_ip(&packet[..end], 0, None), None, "{end}");
                }
            }
        }

        #[test]
        fn a_native_packet_ends_where_ip_says() {
            for (mut packet, length_at, length, protocol_at) in
                [(v4(), 2, 31, 9), (v6(), 4, 8 + 11, 40)]
            {
                packet[protocol_at] = 253;
                packet[length_at + 1] = length;
                let datagram = of_ip(&packet, 0, Some(253)).unwrap();
                assert_eq!(datagram.carrier, CarrierKind::Native);
                assert_eq!((datagram.source.port(), datagram.target.port()), (1, 2));
                assert_eq!((datagram.payload, datagram.missing), (&b"abc"[..], 0));
                assert_eq!(datagram.packet[datagram.payload_at..], *b"abc");
                assert_eq!(of_ip(&packet, 0, Some(254)), None);
                assert_eq!(of_ip(&packet, 0, None), None);
                // Segmentation offload leaves 0 there.
                packet[length_at + 1] = 0;
                assert_eq!(of_ip(&packet, 0, Some(253)).unwrap().payload, b"abc\0\0");
            }
        }
    }
}
