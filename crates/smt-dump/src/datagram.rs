// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A UDP datagram in an IP packet, of version 4 or 6.
//!
//! Fragments are none of ours: SMT's datagrams are never fragmented (SPEC §15.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Addresses and payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Datagram<'a> {
    pub(crate) source: SocketAddr,
    pub(crate) target: SocketAddr,
    pub(crate) payload: &'a [u8],
    /// Bytes of the payload that the capture cut off.
    pub(crate) missing: usize,
}

/// The datagram in an IP packet of which `missing` bytes were not captured; `None` if there is
/// none.
pub(crate) fn udp(packet: &[u8], missing: usize) -> Option<Datagram<'_>> {
    let (addresses, udp) = match packet.first()? >> 4 {
        4 => ipv4(packet)?,
        _ => ipv6(packet)?,
    };
    let (header, rest) = udp.split_first_chunk::<8>()?;
    let [s, p, t, q, a, b, ..] = *header;
    let length = usize::from(u16::from_be_bytes([a, b]));
    // A length of 0 stands for one that does not fit; else what follows it is the link's padding.
    let length = match length.checked_sub(8) {
        Some(length) => length,
        None => rest.len() + missing,
    };
    let payload = &rest[..length.min(rest.len())];
    Some(Datagram {
        source: SocketAddr::new(addresses[0], u16::from_be_bytes([s, p])),
        target: SocketAddr::new(addresses[1], u16::from_be_bytes([t, q])),
        payload,
        missing: length - payload.len(),
    })
}

fn ipv4(packet: &[u8]) -> Option<([IpAddr; 2], &[u8])> {
    let header = packet.first_chunk::<20>()?;
    let header_length = usize::from(header[0] & 0x0F) * 4;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0;
    if header_length < 20 || is_fragment || header[9] != UDP {
        return None;
    }
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    Some((
        [address(12).into(), address(16).into()],
        packet.get(header_length..)?,
    ))
}

fn ipv6(packet: &[u8]) -> Option<([IpAddr; 2], &[u8])> {
    let (header, mut rest) = packet.split_first_chunk::<40>()?;
    let mut next = header[6];
    while matches!(next, HOP_BY_HOP | ROUTING | DESTINATION) {
        let &[after, words] = rest.first_chunk()?;
        next = after;
        rest = rest.get((usize::from(words) + 1) * 8..)?;
    }
    if next != UDP {
        return None;
    }
    let address = |bytes: &[u8]| Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).into());
    Some(([address(&header[8..])?, address(&header[24..])?], rest))
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

    mod udp {
        use super::*;

        #[test]
        fn both_versions_are_understood() {
            for (packet, source, target) in [
                (v4(), "10.0.0.1:1", "10.0.0.2:2"),
                (v6(), "[::1]:1", "[::2]:2"),
            ] {
                let datagram = udp(&packet, 0).unwrap();
                assert_eq!(datagram.source, source.parse().unwrap());
                assert_eq!(datagram.target, target.parse().unwrap());
                assert_eq!((datagram.payload, datagram.missing), (&b"abc"[..], 0));
            }
        }

        #[test]
        fn what_was_cut_off_is_counted() {
            let packet = v4();
            let datagram = udp(&packet[..30], 3).unwrap();
            assert_eq!((datagram.payload, datagram.missing), (&b"ab"[..], 1));
        }

        #[test]
        fn fragments_other_protocols_and_short_packets_are_none() {
            let (mut fragment, mut tcp) = (v4(), v4());
            fragment[6] = 0x20;
            tcp[9] = 6;
            assert_eq!(udp(&fragment, 0), None);
            assert_eq!(udp(&tcp, 0), None);
            for (packet, end) in [(v4(), 28), (v6(), 56)] {
                for end in 0..end {
                    assert_eq!(udp(&packet[..end], 0), None, "{end}");
                }
            }
        }
    }
}
