// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Congestion marks: "congestion experienced" on packets whose sender knows of ECN (RFC 3168).

use crate::ip_packet::{IpPacket, Recognition, set_traffic_class, traffic_class};

/// The outcome of marking a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Marking {
    /// The packet has the mark now.
    Marked,
    /// It had it before.
    WasMarked,
    /// Its sender does not know of ECN: a mark is forbidden (RFC 3168 §5), and it may be dropped.
    NotCapable,
    /// It is none of SMT's.
    Other,
}

/// Marks a packet, from its IP header on, with the checksum of IPv4.
pub fn mark(packet: &mut [u8], recognition: &Recognition) -> Marking {
    if IpPacket::read(packet, recognition).is_none() {
        return Marking::Other;
    }
    let Some(class) = traffic_class(packet) else {
        return Marking::Other;
    };
    match class & CE {
        NOT_CAPABLE => return Marking::NotCapable,
        CE => return Marking::WasMarked,
        _ => {}
    }
    set_traffic_class(packet, class | CE);
    Marking::Marked
}

const NOT_CAPABLE: u8 = 0b00;
const CE: u8 = 0b11;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{Carrier, data, packet, slow_checksum};

    #[test]
    fn a_capable_packet_is_marked_and_nothing_else_of_it_changes() {
        for carrier in Carrier::ALL {
            for class in 0..=255 {
                let mut bytes = packet(carrier, &data(1, 50));
                let is_v4 = bytes[0] >> 4 == 4;
                set_traffic_class(&mut bytes, class);
                if is_v4 {
                    bytes[10..12].fill(0);
                    let checksum = slow_checksum(&bytes[..20]);
                    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
                }
                let mut expected = bytes.clone();
                let marking = mark(&mut bytes, &Recognition::default());
                match class & 3 {
                    0 => assert_eq!(marking, Marking::NotCapable),
                    3 => assert_eq!(marking, Marking::WasMarked),
                    _ => {
                        assert_eq!(marking, Marking::Marked);
                        set_traffic_class(&mut expected, class | 3);
                        if is_v4 {
                            assert_eq!(slow_checksum(&bytes[..20]), 0);
                            expected[10..12].copy_from_slice(&bytes[10..12]);
                        }
                    }
                }
                assert_eq!(bytes, expected, "{carrier:?}, class {class}");
            }
        }
    }

    #[test]
    fn packets_of_others_are_not_marked() {
        let mut tcp = packet(Carrier::Native4, &data(1, 50));
        tcp[9] = 6;
        let before = tcp.clone();
        assert_eq!(mark(&mut tcp, &Recognition::default()), Marking::Other);
        assert_eq!(tcp, before);
        for length in 0..tcp.len() {
            assert_eq!(mark(&mut tcp[..length], &Recognition::default()), Marking::Other);
        }
    }
}
