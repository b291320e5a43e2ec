// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A datagram in an IP packet, of version 4 or 6: behind UDP's header, behind that of SMT natively
//! over IP (SPEC §15.2), or behind both of them and PSP's (SPEC §15.3).
//!
//! Fragments are none of ours: SMT's datagrams are never fragmented (SPEC §15.1). Packets
//! without a datagram are named by their reason (`passed_over`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use smt_wire::native::NativeHeader;

use crate::passed_over::Reason;
use crate::psp::{self, PspPacket};

/// Addresses and payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Datagram<'a> {
    pub(crate) carrier: CarrierKind,
    pub(crate) source: SocketAddr,
    pub(crate) target: SocketAddr,
    /// In a packet of PSP it is ciphertext from the clear bytes on.
    pub(crate) payload: &'a [u8],
    /// Bytes of the payload that the capture cut off.
    pub(crate) missing: usize,
    /// Bytes of the packet that it cut off: behind the payload of a packet of PSP is the ICV.
    pub(crate) cut_off: usize,
    /// The IP packet that it is in, without what the link has put behind it.
    pub(crate) packet: &'a [u8],
    /// Where the payload begins in the packet.
    pub(crate) payload_at: usize,
    /// Where the headers of IP end in the packet.
    pub(crate) transport_at: usize,
    /// Where the packet names the protocol behind the headers of IP.
    pub(crate) protocol_at: usize,
    /// IPv4's identification; `None` over IPv6.
    pub(crate) identification: Option<u16>,
    /// The packet of PSP that it is in.
    pub(crate) psp: Option<PspPacket<'a>>,
}

/// The header in front of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CarrierKind {
    Native,
    Psp,
    Udp,
}

impl CarrierKind {
    /// As JSON names it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Psp => "psp",
            Self::Udp => "udp",
        }
    }
}

/// The datagram in an IP packet of which `missing` bytes were not captured. Native ones are those
/// of this protocol number.
///
/// # Errors
/// Why there is none.
pub(crate) fn of_ip(
    packet: &[u8],
    missing: usize,
    native: Option<u8>,
) -> Result<Datagram<'_>, Reason> {
    let headers = match packet.first().ok_or(Reason::BadHeader)? >> 4 {
        4 => ipv4(packet)?,
        _ => ipv6(packet)?,
    };
    let carrier = match headers.protocol {
        UDP => CarrierKind::Udp,
        protocol if Some(protocol) == native => CarrierKind::Native,
        protocol => return Err(Reason::IpProtocol(protocol)),
    };
    let transport = packet.get(headers.length..).and_then(<[u8]>::split_first_chunk::<8>);
    let (header, rest) = transport.ok_or(Reason::BadHeader)?;
    let [s, p, t, q, a, b, ..] = *header;
    let told = match carrier {
        CarrierKind::Native => headers.payload_length.unwrap_or(0),
        CarrierKind::Psp | CarrierKind::Udp => usize::from(u16::from_be_bytes([a, b])),
    };
    // A length of 0 stands for one that does not fit; else what follows it is the link's padding.
    let length = match told.checked_sub(8) {
        Some(length) => length,
        None => rest.len() + missing,
    };
    let payload = &rest[..length.min(rest.len())];
    let payload_at = headers.length + 8;
    let datagram = Datagram {
        carrier,
        source: SocketAddr::new(headers.addresses[0], u16::from_be_bytes([s, p])),
        target: SocketAddr::new(headers.addresses[1], u16::from_be_bytes([t, q])),
        payload,
        missing: length - payload.len(),
        cut_off: length - payload.len(),
        packet: &packet[..payload_at + payload.len()],
        payload_at,
        transport_at: headers.length,
        protocol_at: headers.protocol_at,
        identification: headers.identification,
        psp: None,
    };
    Ok(native.and_then(|native| datagram.in_psp(native)).unwrap_or(datagram))
}

impl<'a> Datagram<'a> {
    /// The datagram in the packet of PSP that this one is; `None` if it is none, or the native
    /// header in it is not clear.
    fn in_psp(&self, native: u8) -> Option<Self> {
        if self.carrier != CarrierKind::Udp || self.target.port() != psp::PORT {
            return None;
        }
        let psp = PspPacket::parse(self.payload, self.missing, native)?;
        let clear = psp.contents.get(..psp.clear_length)?;
        let (header, _) = NativeHeader::parse(clear)?;
        let (_, payload) = psp.contents.split_at(NativeHeader::LEN);
        let contents_at = psp.aad.len() - psp.clear_length;
        Some(Self {
            carrier: CarrierKind::Psp,
            source: SocketAddr::new(self.source.ip(), header.source),
            target: SocketAddr::new(self.target.ip(), header.destination),
            payload,
            missing: psp.missing,
            payload_at: self.payload_at + contents_at + NativeHeader::LEN,
            psp: Some(psp),
            ..*self
        })
    }
}

/// The contents of IP's headers.
struct IpHeaders {
    /// Source and destination.
    addresses: [IpAddr; 2],
    /// The protocol behind them.
    protocol: u8,
    /// Where that is told.
    protocol_at: usize,
    /// IPv4's.
    identification: Option<u16>,
    /// Bytes of all of them.
    length: usize,
    /// Bytes behind them; `None` if they are too many to tell, or nonsense.
    payload_length: Option<usize>,
}

fn ipv4(packet: &[u8]) -> Result<IpHeaders, Reason> {
    let header = packet.first_chunk::<20>().ok_or(Reason::BadHeader)?;
    let length = usize::from(header[0] & 0x0F) * 4;
    if length < 20 {
        return Err(Reason::BadHeader);
    }
    if u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0 {
        return Err(Reason::Fragment);
    }
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    Ok(IpHeaders {
        addresses: [address(12).into(), address(16).into()],
        protocol: header[9],
        protocol_at: 9,
        identification: Some(u16::from_be_bytes([header[4], header[5]])),
        length,
        payload_length: total.checked_sub(length),
    })
}

fn ipv6(packet: &[u8]) -> Result<IpHeaders, Reason> {
    let (header, mut rest) = packet.split_first_chunk::<40>().ok_or(Reason::BadHeader)?;
    let (mut protocol, mut protocol_at) = (header[6], 6);
    while matches!(protocol, HOP_BY_HOP | ROUTING | DESTINATION) {
        let &[after, words] = rest.first_chunk().ok_or(Reason::BadHeader)?;
        (protocol, protocol_at) = (after, packet.len() - rest.len());
        rest = rest.get((usize::from(words) + 1) * 8..).ok_or(Reason::BadHeader)?;
    }
    if protocol == FRAGMENT {
        return Err(Reason::Fragment);
    }
    let address = |bytes: &[u8]| {
        let bytes = bytes.first_chunk::<16>().ok_or(Reason::BadHeader)?;
        Ok(Ipv6Addr::from(*bytes).into())
    };
    let length = packet.len() - rest.len();
    let total = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    Ok(IpHeaders {
        addresses: [address(&header[8..])?, address(&header[24..])?],
        protocol,
        protocol_at,
        identification: None,
        length,
        payload_length: total.checked_sub(length),
    })
}

const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// Ports 1 and 2, payload `abc`, and two bytes that are the link's.
    const DATAGRAM: [u8; 13] = [0, 1, 0, 2, 0, 11, 0, 0, b'a', b'b', b'c', 0, 0];

    fn v4() -> Vec<u8> {
        let mut packet =
            vec![0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
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
            for (packet, source, target) in
                [(v4(), "10.0.0.1:1", "10.0.0.2:2"), (v6(), "[::1]:1", "[::2]:2")]
            {
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
        fn fragments_other_protocols_and_short_packets_are_named() {
            let (mut fragment, mut fragment_of_v6, mut tcp) = (v4(), v6(), v4());
            fragment[6] = 0x20;
            fragment_of_v6[40] = FRAGMENT;
            tcp[9] = 6;
            assert_eq!(of_ip(&fragment, 0, None), Err(Reason::Fragment));
            assert_eq!(of_ip(&fragment_of_v6, 0, None), Err(Reason::Fragment));
            assert_eq!(of_ip(&tcp, 0, None), Err(Reason::IpProtocol(6)));
            for (packet, end) in [(v4(), 28), (v6(), 56)] {
                for end in 0..end {
                    assert_eq!(of_ip(&packet[..end], 0, None), Err(Reason::BadHeader), "{end}");
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
                let other = Err(Reason::IpProtocol(253));
                assert_eq!(of_ip(&packet, 0, Some(254)), other);
                assert_eq!(of_ip(&packet, 0, None), other);
                // Segmentation offload leaves 0 there.
                packet[length_at + 1] = 0;
                assert_eq!(of_ip(&packet, 0, Some(253)).unwrap().payload, b"abc\0\0");
            }
        }

        #[test]
        fn a_packet_of_psp_has_the_ports_and_the_datagram_behind_its_header() {
            for (mut packet, length_at) in [(v4(), 20 + 4), (v6(), 48 + 4)] {
                let udp_at = length_at - 4;
                packet.truncate(udp_at + 8);
                packet[udp_at + 2..udp_at + 4].copy_from_slice(&psp::PORT.to_be_bytes());
                let contents_at = packet.len() + 16;
                packet.extend([253, 1, 2, 5, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9]);
                packet.extend([0, 3, 0, 4, 0, 0, 0, 0]);
                packet.extend(*b"abc");
                packet.extend([0xEE; psp::ICV_BYTES]);
                packet[length_at + 1] = (packet.len() - udp_at) as u8;
                let end = packet.len();
                // Padding of the link.
                packet.extend([0; 3]);
                let datagram = of_ip(&packet, 0, Some(253)).unwrap();
                assert_eq!(datagram.carrier, CarrierKind::Psp);
                assert_eq!((datagram.source.port(), datagram.target.port()), (3, 4));
                assert_eq!((datagram.payload, datagram.missing), (&b"abc"[..], 0));
                assert_eq!(datagram.packet.len(), end);
                assert_eq!(datagram.payload_at, contents_at + 8);
                assert_eq!(datagram.transport_at, udp_at);
                assert_eq!(packet[datagram.protocol_at], UDP);
                assert_eq!(datagram.psp.unwrap().spi, 7);
                // Another protocol in it, another port, ports that are not clear.
                let others = [(contents_at - 16, 6), (udp_at + 3, 1), (contents_at - 14, 1)];
                for (place, byte) in others {
                    let mut other = packet.clone();
                    other[place] = byte;
                    let datagram = of_ip(&other, 0, Some(253)).unwrap();
                    assert_eq!((datagram.carrier, datagram.psp), (CarrierKind::Udp, None));
                }
            }
        }
    }
}
