// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The link-layer header before an IP packet in a frame, by the link type of the capture.

/// A number of <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LinkType(pub(crate) u32);

/// The IP packet in a frame; `None` if there is none.
pub(crate) fn ip_packet(link: LinkType, frame: &[u8]) -> Option<&[u8]> {
    match link.0 {
        ETHERNET => ethernet(frame),
        LINUX_COOKED => with_protocol(frame, 14, 16),
        LINUX_COOKED_V2 => with_protocol(frame, 0, 20),
        // An address family, whose value differs between systems: the packet tells its version
        // itself.
        NULL | LOOP => ip(frame.get(4..)?),
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => ip(frame),
        _ => None,
    }
}

fn ethernet(frame: &[u8]) -> Option<&[u8]> {
    let mut place = 12;
    while matches!(u16_at(frame, place)?, VLAN | VLAN_SERVICE) {
        place += 4;
    }
    with_protocol(frame, place, place + 2)
}

fn with_protocol(frame: &[u8], protocol: usize, packet: usize) -> Option<&[u8]> {
    match u16_at(frame, protocol)? {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => ip(frame.get(packet..)?),
        _ => None,
    }
}

fn ip(packet: &[u8]) -> Option<&[u8]> {
    matches!(packet.first()? >> 4, 4 | 6).then_some(packet)
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const RAW_BSD: u32 = 12;
const RAW_OPENBSD: u32 = 14;
const RAW: u32 = 101;
const LOOP: u32 = 108;
const LINUX_COOKED: u32 = 113;
const IPV4: u32 = 228;
const IPV6: u32 = 229;
const LINUX_COOKED_V2: u32 = 276;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86DD;
const VLAN: u16 = 0x8100;
const VLAN_SERVICE: u16 = 0x88A8;

#[cfg(test)]
mod tests {
    mod ip_packet {
        use super::super::*;

        const PACKET: [u8; 3] = [0x45, 1, 2];

        fn frame(before: &[u8]) -> Vec<u8> {
            [before, &PACKET].concat()
        }

        #[test]
        fn is_found_behind_every_kind_of_header() {
            let mut cooked = [0; 16];
            cooked[14..].copy_from_slice(&[8, 0]);
            let mut cooked_v2 = [0; 20];
            cooked_v2[..2].copy_from_slice(&[8, 0]);
            let mut ethernet = [0; 14];
            ethernet[12..].copy_from_slice(&[8, 0]);
            let mut tagged = [0; 22];
            tagged[12..14].copy_from_slice(&[0x88, 0xA8]);
            tagged[16..18].copy_from_slice(&[0x81, 0]);
            tagged[20..].copy_from_slice(&[8, 0]);
            for (link, before) in [
                (ETHERNET, &ethernet[..]),
                (ETHERNET, &tagged),
                (LINUX_COOKED, &cooked),
                (LINUX_COOKED_V2, &cooked_v2),
                (NULL, &[2, 0, 0, 0]),
                (LOOP, &[0, 0, 0, 2]),
                (RAW, &[]),
                (IPV4, &[]),
            ] {
                let frame = frame(before);
                assert_eq!(ip_packet(LinkType(link), &frame), Some(&PACKET[..]), "{link}");
                for end in 0..before.len() {
                    assert_eq!(
                        ip_packet(LinkType(link), &frame[..end]),
                        None,
                        "{link} cut to {end}"
                    );
                }
            }
        }

        #[test]
        fn other_protocols_and_links_have_none() {
            let mut arp = [0; 14];
            arp[12..].copy_from_slice(&[8, 6]);
            assert_eq!(ip_packet(LinkType(ETHERNET), &frame(&arp)), None);
            assert_eq!(ip_packet(LinkType(RAW), &[0x15, 0]), None);
            assert_eq!(ip_packet(LinkType(9_999), &PACKET), None);
        }
    }
}
