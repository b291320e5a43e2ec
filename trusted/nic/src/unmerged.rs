// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that are not merged. The host gets those in which it can find no DATA, since DATA that
//! the kernel has not taken must not reach it by another form of packet.

/// Bytes of SMT's header natively before a datagram (SPEC §15.2), and of a packet's prefix (§3.1).
pub(crate) const NATIVE_BYTES: usize = 8;
const PREFIX_BYTES: usize = 12;
/// The type of a DATA packet (SPEC §3.2).
const DATA: u8 = 0x01;

/// Headers that may stand between IP and a protocol: hop by hop, routing, fragment, authentication,
/// destination, mobility, HIP and shim6 (RFC 8200 §4, RFC 7045 §4).
const EXTENSIONS: [u8; 8] = [0, 43, FRAGMENT, AUTHENTICATION, 60, 135, 139, 140];
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

/// The part of a packet that the host may see: without what follows behind the length that IP
/// tells, if its protocol is SMT's. `None` if the host could find DATA in it.
pub(crate) fn without_data(packet: &[u8], smt_protocol: u8) -> Option<&[u8]> {
    let (mut protocol, mut at, end, mut is_fragment) = match packet.first()? >> 4 {
        4 => {
            let header = packet.first_chunk::<20>()?;
            let is_fragment = u16_at(header, 6) & 0x3FFF != 0;
            let (at, end) = (usize::from(header[0] & 0xF) * 4, usize::from(u16_at(header, 2)));
            (header[9], at, end, is_fragment)
        }
        6 => {
            let header = packet.first_chunk::<40>()?;
            (header[6], 40, 40 + usize::from(u16_at(header, 4)), false)
        }
        // No host takes it for IP.
        _ => return None,
    };
    let mut is_direct = at >= 20;
    while EXTENSIONS.contains(&protocol) {
        // Another fragment has what follows.
        if is_fragment {
            return None;
        }
        let header = packet.get(at..)?.first_chunk::<8>()?;
        let bytes = match protocol {
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        // All but two reserved bits: the offset, and whether more fragments follow.
        is_fragment = protocol == FRAGMENT && u16_at(header, 2) & 0xFFF9 != 0;
        (protocol, at, is_direct) = (header[0], at + bytes, false);
    }
    if protocol != smt_protocol {
        return Some(packet);
    }
    // Merged packets have SMT right behind IP, and are whole.
    if is_fragment || !is_direct {
        return None;
    }
    has_no_data(packet.get(at + NATIVE_BYTES..end)?).then(|| &packet[..end])
}

/// Walks over the packets of a datagram by their lengths (SPEC §3), as the host does, which passes
/// over packets of unknown types (§3.2).
fn has_no_data(mut datagram: &[u8]) -> bool {
    while !datagram.is_empty() {
        let Some(prefix) = datagram.first_chunk::<PREFIX_BYTES>() else {
            return false;
        };
        let length = usize::from(u16_at(prefix, 6));
        if prefix[1] == DATA || length < PREFIX_BYTES {
            return false;
        }
        match datagram.get(length..) {
            Some(rest) => datagram = rest,
            None => return false,
        }
    }
    true
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const SMT: u8 = 253;
    const UDP: u8 = 17;

    fn ipv4(protocol: u8, behind: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[9] = protocol;
        packet.extend(behind);
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet
    }

    fn ipv6(protocol: u8, behind: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&(behind.len() as u16).to_be_bytes());
        packet[6] = protocol;
        packet.extend(behind);
        packet
    }

    /// A packet of SMT of this type and length, as it stands in a datagram.
    fn packet(ty: u8, length: u8) -> Vec<u8> {
        let mut bytes = vec![0; length.into()];
        (bytes[0], bytes[1], bytes[7]) = (1, ty, length);
        bytes
    }

    fn native(packets: &[Vec<u8>]) -> Vec<u8> {
        [vec![0; NATIVE_BYTES], packets.concat()].concat()
    }

    fn passes(packet: &[u8]) -> bool {
        without_data(packet, SMT).is_some()
    }

    #[test]
    fn each_packet_of_a_datagram_is_looked_at() {
        let (control, unknown, data) = (packet(0x21, 44), packet(0x77, 12), packet(DATA, 40));
        for around in [ipv4, ipv6] {
            let is_passed = |packets: &[Vec<u8>]| passes(&around(SMT, &native(packets)));
            assert!(is_passed(std::slice::from_ref(&control)));
            assert!(is_passed(&[control.clone(), unknown.clone(), control.clone()]));
            assert!(!is_passed(std::slice::from_ref(&data)));
            assert!(!is_passed(&[unknown.clone(), data.clone()]));
            assert!(!is_passed(&[control.clone(), unknown.clone(), data.clone()]));
        }
    }

    #[test]
    fn a_length_that_leads_nowhere_is_refused() {
        for length in [0, 1, 11, 45, 255] {
            let mut control = packet(0x21, 44);
            control[7] = length;
            assert!(!passes(&ipv4(SMT, &native(&[control]))), "{length}");
        }
        for cut in 1..12 {
            let rest = packet(0x21, 44)[..cut].to_vec();
            assert!(!passes(&ipv4(SMT, &native(&[packet(0x21, 44), rest]))), "{cut}");
        }
    }

    #[test]
    fn a_length_of_ip_that_the_packet_has_not_is_refused() {
        let good = ipv4(SMT, &native(&[packet(0x21, 44)]));
        assert!(passes(&good));
        for length in [0, 19, 27, good.len() as u16 - 1, good.len() as u16 + 1, u16::MAX] {
            let mut bad = good.clone();
            bad[2..4].copy_from_slice(&length.to_be_bytes());
            assert!(!passes(&bad), "{length}");
        }
    }

    #[test]
    fn bytes_behind_the_end_of_ip_do_not_reach_the_host() {
        let good = ipv4(SMT, &native(&[packet(0x21, 44)]));
        let padded = [good.clone(), packet(DATA, 40)].concat();
        assert_eq!(without_data(&padded, SMT), Some(&good[..]));
    }

    #[test]
    fn a_fragment_of_smt_is_refused_and_one_of_another_protocol_passes() {
        for (place, bits) in [(6, 0x20), (6, 0x01), (7, 0x01)] {
            for (protocol, is_passed) in [(SMT, false), (UDP, true)] {
                let mut fragment = ipv4(protocol, &native(&[packet(0x21, 44)]));
                fragment[place] |= bits;
                assert_eq!(passes(&fragment), is_passed, "protocol {protocol}");
                // Over IPv6 with a header of its own, in the first fragment and in later ones.
                let mut header = vec![protocol, 0, 0, 0, 0, 0, 0, 0];
                (header[2], header[3]) = (0x01 & bits, u8::from(place == 6));
                let behind = [header, native(&[packet(0x21, 44)])].concat();
                assert_eq!(passes(&ipv6(FRAGMENT, &behind)), is_passed, "protocol {protocol}");
            }
        }
    }

    #[test]
    fn smt_behind_extension_headers_is_refused() {
        for extension in EXTENSIONS {
            for (protocol, is_passed) in [(SMT, false), (UDP, true)] {
                // Eight bytes: a length of 0, in whatever units.
                let header = |next| vec![next, 0, 0, 0, 0, 0, 0, 0];
                let behind = [header(protocol), native(&[packet(0x21, 44)])].concat();
                assert_eq!(passes(&ipv6(extension, &behind)), is_passed, "{extension}");
                let two = [header(extension), behind.clone()].concat();
                assert_eq!(passes(&ipv6(60, &two)), is_passed, "{extension}");
                // A longer one, behind which the protocol is another one.
                if ![FRAGMENT, AUTHENTICATION].contains(&extension) {
                    let mut longer = [header(60), header(UDP), header(protocol)].concat();
                    longer[1] = 1;
                    let behind = [longer, native(&[packet(0x21, 44)])].concat();
                    assert_eq!(passes(&ipv6(extension, &behind)), is_passed, "{extension}");
                }
                assert!(!passes(&ipv6(extension, &behind[..7])), "{extension}");
            }
        }
    }

    #[test]
    fn other_protocols_pass_and_what_is_no_ip_does_not() {
        assert!(passes(&ipv4(UDP, &native(&[packet(DATA, 40)]))));
        assert!(passes(&ipv6(6, &[])));
        for bytes in [&[][..], &[0x45; 19], &[0x60; 39], &[0x10; 60]] {
            assert!(!passes(bytes));
        }
        let mut short = ipv4(SMT, &native(&[packet(0x21, 44)]));
        short[0] = 0x44;
        assert!(!passes(&short));
    }

    #[test]
    fn no_prefix_of_a_packet_panics() {
        let behind = [vec![SMT, 0, 0, 0, 0, 0, 0, 0], native(&[packet(0x21, 44)])].concat();
        for whole in [ipv4(SMT, &native(&[packet(0x21, 44)])), ipv6(60, &behind)] {
            for length in 0..whole.len() {
                _ = passes(&whole[..length]);
            }
        }
    }
}
