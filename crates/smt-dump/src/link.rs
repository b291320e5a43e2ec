// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The link-layer header before an IP packet in a frame, by the link type of the capture.

use crate::frame::{LinkType, Order};
use crate::passed_over::Reason;

/// The IP packet in a frame of a capture whose machine has this byte order.
///
/// # Errors
/// There is none, or its header is not read here.
pub(crate) fn ip_packet(link: LinkType, order: Order, frame: &[u8]) -> Result<&[u8], Reason> {
    match link.0 {
        ETHERNET => ethernet(frame),
        LINUX_COOKED => behind_ether_type(u16_at(frame, 14)?, after(frame, 16)?),
        LINUX_COOKED_V2 => behind_ether_type(u16_at(frame, 0)?, after(frame, 20)?),
        // An address family, whose value differs between systems: the packet tells its version
        // itself.
        NULL | LOOP => ip(after(frame, 4)?),
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => ip(frame),
        PPP | PPP_HDLC => ppp(frame.strip_prefix(&PPP_ADDRESS_AND_CONTROL).unwrap_or(frame)),
        PPP_ETHER => pppoe(frame),
        NFLOG => nflog(order, frame),
        IPOIB => {
            behind_ether_type(u16_at(frame, IPOIB_ADDRESSES)?, after(frame, IPOIB_ADDRESSES + 4)?)
        }
        number => Err(Reason::LinkType(number)),
    }
}

fn ethernet(frame: &[u8]) -> Result<&[u8], Reason> {
    let mut place = 12;
    while matches!(u16_at(frame, place)?, VLAN | VLAN_SERVICE) {
        place += 4;
    }
    behind_ether_type(u16_at(frame, place)?, after(frame, place + 2)?)
}

/// The IP packet in what an EtherType names.
fn behind_ether_type(ether_type: u16, bytes: &[u8]) -> Result<&[u8], Reason> {
    match ether_type {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => ip(bytes),
        ETHERTYPE_MPLS | ETHERTYPE_MPLS_UPSTREAM => mpls(bytes),
        ETHERTYPE_PPPOE => pppoe(bytes),
        other => Err(Reason::EtherType(other)),
    }
}

/// Labels of four bytes, the last of which is marked (RFC 3032 §2.1), and an IP packet. Others that
/// MPLS carries tell no protocol, and do not begin as IP does.
fn mpls(mut bytes: &[u8]) -> Result<&[u8], Reason> {
    loop {
        let label = bytes.first_chunk::<4>().ok_or(Reason::BadHeader)?;
        bytes = &bytes[4..];
        if label[2] & 1 == 1 {
            return ip(bytes);
        }
    }
}

/// A session's frame (RFC 2516 §4).
fn pppoe(bytes: &[u8]) -> Result<&[u8], Reason> {
    ppp(after(bytes, 6)?)
}

/// A protocol of two bytes, or of one, which is odd (RFC 1661 §2).
fn ppp(bytes: &[u8]) -> Result<&[u8], Reason> {
    let (protocol, length) = match *bytes.first().ok_or(Reason::BadHeader)? {
        short if short & 1 == 1 => (u16::from(short), 1),
        _ => (u16_at(bytes, 0)?, 2),
    };
    match protocol {
        PPP_IPV4 | PPP_IPV6 => ip(&bytes[length..]),
        other => Err(Reason::PppProtocol(other)),
    }
}

/// A header of four bytes, and attributes with length and type in the order of the machine, each
/// filled up to four bytes; one of them has the packet.
fn nflog(order: Order, frame: &[u8]) -> Result<&[u8], Reason> {
    let mut attributes = after(frame, 4)?;
    loop {
        let length = usize::from(order.u16_at(attributes, 0).ok_or(Reason::BadHeader)?);
        let kind = order.u16_at(attributes, 2).ok_or(Reason::BadHeader)? & NFLOG_KIND;
        if length < 4 {
            return Err(Reason::BadHeader);
        }
        if kind == NFLOG_PAYLOAD {
            // A capture may have cut it off.
            return ip(&attributes[4..length.min(attributes.len())]);
        }
        attributes = after(attributes, length.next_multiple_of(4))?;
    }
}

fn ip(packet: &[u8]) -> Result<&[u8], Reason> {
    match packet.first() {
        Some(first) if matches!(first >> 4, 4 | 6) => Ok(packet),
        _ => Err(Reason::BadHeader),
    }
}

fn after(bytes: &[u8], length: usize) -> Result<&[u8], Reason> {
    bytes.get(length..).ok_or(Reason::BadHeader)
}

fn u16_at(bytes: &[u8], offset: usize) -> Result<u16, Reason> {
    let bytes = bytes.get(offset..).and_then(<[u8]>::first_chunk).ok_or(Reason::BadHeader)?;
    Ok(u16::from_be_bytes(*bytes))
}

const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const PPP: u32 = 9;
const RAW_BSD: u32 = 12;
const RAW_OPENBSD: u32 = 14;
const PPP_HDLC: u32 = 50;
const PPP_ETHER: u32 = 51;
const RAW: u32 = 101;
const LOOP: u32 = 108;
const LINUX_COOKED: u32 = 113;
const IPV4: u32 = 228;
const IPV6: u32 = 229;
const NFLOG: u32 = 239;
const IPOIB: u32 = 242;
const LINUX_COOKED_V2: u32 = 276;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86DD;
const ETHERTYPE_MPLS: u16 = 0x8847;
const ETHERTYPE_MPLS_UPSTREAM: u16 = 0x8848;
const ETHERTYPE_PPPOE: u16 = 0x8864;
const VLAN: u16 = 0x8100;
const VLAN_SERVICE: u16 = 0x88A8;

const PPP_ADDRESS_AND_CONTROL: [u8; 2] = [0xFF, 0x03];
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// Bytes of both hardware addresses in front of the EtherType.
const IPOIB_ADDRESSES: usize = 40;
/// The bits of an attribute's kind that are no flags.
const NFLOG_KIND: u16 = 0x3FFF;
/// The attribute with the packet (`NFULA_PAYLOAD`).
const NFLOG_PAYLOAD: u16 = 9;

#[cfg(test)]
mod tests {
    mod ip_packet {
        use super::super::*;

        const PACKET: [u8; 3] = [0x45, 1, 2];

        fn frame(before: &[u8]) -> Vec<u8> {
            [before, &PACKET].concat()
        }

        fn packet(link: u32, frame: &[u8]) -> Result<&[u8], Reason> {
            ip_packet(LinkType(link), Order::Little, frame)
        }

        /// Zeros, and these bytes at the end.
        fn header(length: usize, end: &[u8]) -> Vec<u8> {
            let mut header = vec![0; length];
            header[length - end.len()..].copy_from_slice(end);
            header
        }

        #[test]
        fn is_found_behind_every_kind_of_header() {
            let mut cooked_v2 = [0; 20];
            cooked_v2[..2].copy_from_slice(&[8, 0]);
            let mut tagged = header(22, &[8, 0]);
            tagged[12..14].copy_from_slice(&[0x88, 0xA8]);
            tagged[16..18].copy_from_slice(&[0x81, 0]);
            // A prefix of three bytes and the packet, of three bytes too.
            let nflog = [2, 0, 0, 5, 7, 0, 10, 0, b'i', b'n', 0, 0, 7, 0, 9, 0];
            let mpls = header(22, &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]);
            let pppoe = [0x11, 0, 0, 1, 0, 5, 0, 0x21];
            for (link, before) in [
                (ETHERNET, &header(14, &[8, 0])[..]),
                (ETHERNET, &tagged),
                (ETHERNET, &mpls),
                (ETHERNET, &[&header(14, &[0x88, 0x64]), &pppoe[..]].concat()),
                (LINUX_COOKED, &header(16, &[8, 0])),
                (LINUX_COOKED_V2, &cooked_v2),
                (NULL, &[2, 0, 0, 0]),
                (LOOP, &[0, 0, 0, 2]),
                (RAW, &[]),
                (IPV4, &[]),
                (PPP, &[0x21]),
                (PPP, &[0, 0x57]),
                (PPP_HDLC, &[0xFF, 3, 0, 0x21]),
                (PPP_ETHER, &pppoe),
                (NFLOG, &nflog),
                (IPOIB, &header(44, &[8, 0, 0, 0])),
            ] {
                let frame = frame(before);
                assert_eq!(packet(link, &frame), Ok(&PACKET[..]), "{link}");
                for end in 0..before.len() {
                    assert!(packet(link, &frame[..end]).is_err(), "{link} cut to {end}");
                }
            }
        }

        #[test]
        fn numbers_of_nflog_have_the_order_of_the_machine() {
            let big = frame(&[2, 0, 0, 5, 0, 7, 0, 9]);
            assert_eq!(ip_packet(LinkType(NFLOG), Order::Big, &big), Ok(&PACKET[..]));
            assert!(packet(NFLOG, &big).is_err());
            assert_eq!(packet(NFLOG, &[2, 0, 0, 5, 3, 0, 9, 0]), Err(Reason::BadHeader));
        }

        #[test]
        fn other_protocols_and_links_are_named() {
            assert_eq!(
                packet(ETHERNET, &frame(&header(14, &[8, 6]))),
                Err(Reason::EtherType(0x806))
            );
            assert_eq!(packet(PPP, &[0xC0, 0x21, 0]), Err(Reason::PppProtocol(0xC021)));
            assert_eq!(packet(RAW, &[0x15, 0]), Err(Reason::BadHeader));
            assert_eq!(packet(9_999, &PACKET), Err(Reason::LinkType(9_999)));
        }
    }
}
