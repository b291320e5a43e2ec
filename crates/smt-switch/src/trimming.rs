// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trimming: a DATA packet that finds a long queue is cut to its header, which tells the receiver
//! what it misses (SPEC §9.10, NDP).

use crate::checksum::{checksum, sum};
use crate::data_header::{DATA_HEADER_BYTES, DataHeader};
use crate::ip_packet::{IpPacket, IpVersion, Recognition, TRANSPORT_BYTES, Transport};
use crate::ip_packet::{set_ipv4_word, set_traffic_class, traffic_class};

/// DSCP of a trimmed packet, in the place of its traffic class: the highest of SMT's priorities
/// (SPEC §9.10, §15.1). ECN stays.
pub const TRIMMED_CLASS: u8 = 7 << 5;

/// The length that a datagram is cut to; `None` if it is not to be trimmed: it does not begin with
/// DATA, or has more packets behind it, which would be lost without being asked for.
#[must_use]
pub fn trimmed_bytes(datagram: &[u8]) -> Option<usize> {
    let header = DataHeader::read(datagram)?;
    header.is_alone.then_some(DATA_HEADER_BYTES)
}

/// Cuts a packet, from its IP header on, to the header of its DATA packet, and gives it the highest
/// priority; lengths and checksums of IP and UDP are those of what is left. Returns that length.
/// `None`: the packet is not to be trimmed, and is as it was.
pub fn trim(packet: &mut [u8], recognition: &Recognition) -> Option<usize> {
    let read = IpPacket::read(packet, recognition)?;
    let datagram = packet.get(read.datagram.clone())?;
    let length = read.datagram.start + trimmed_bytes(datagram)?;
    let class = TRIMMED_CLASS | traffic_class(packet)? & ECN;
    let packet = &mut packet[..length];
    set_traffic_class(packet, class);
    write_ip_length(packet, &read);
    if read.transport == Transport::Udp {
        write_udp_length(packet, &read);
    }
    Some(length)
}

fn write_ip_length(packet: &mut [u8], read: &IpPacket) {
    match read.ip {
        IpVersion::V4 => {
            let total = (packet.len() as u16).to_be_bytes();
            set_ipv4_word(packet, 2, total);
        }
        IpVersion::V6 => {
            let behind = (packet.len() - read.transport_at) as u16;
            packet[4..6].copy_from_slice(&behind.to_be_bytes());
        }
    }
}

/// A checksum of 0 says that there is none, and stays (RFC 768).
fn write_udp_length(packet: &mut [u8], read: &IpPacket) {
    let at = read.transport_at;
    let bytes = (TRANSPORT_BYTES + DATA_HEADER_BYTES) as u16;
    packet[at + 4..at + 6].copy_from_slice(&bytes.to_be_bytes());
    if packet[at + 6..at + 8] == [0, 0] {
        return;
    }
    let addresses = match read.ip {
        IpVersion::V4 => sum(&packet[12..20]),
        IpVersion::V6 => sum(&packet[8..40]),
    };
    packet[at + 6..at + 8].fill(0);
    let pseudo_header = addresses + u32::from(UDP) + u32::from(bytes);
    let checksum = match checksum(pseudo_header, &packet[at..]) {
        0 => 0xFFFF,
        checksum => checksum,
    };
    packet[at + 6..at + 8].copy_from_slice(&checksum.to_be_bytes());
}

const ECN: u8 = 0b11;
const UDP: u8 = 17;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::samples::{Carrier, data, packet, slow_checksum, udp_checksum};
    use std::vec::Vec;

    fn trimmed(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        let before = bytes.clone();
        let length = trim(&mut bytes, &Recognition::default());
        if length.is_none() {
            assert_eq!(bytes, before, "a packet that is not trimmed was changed");
        }
        length.map(|length| bytes[..length].to_vec())
    }

    #[test]
    fn a_wrong_checksum_of_ipv4_stays_wrong() {
        for carrier in Carrier::ALL {
            let mut bytes = packet(carrier, &data(9, 1_000));
            if bytes[0] >> 4 == 4 {
                bytes[10] ^= 1;
                let cut = trimmed(bytes).unwrap();
                assert_ne!(slow_checksum(&cut[..20]), 0);
            }
        }
    }

    #[test]
    fn a_trimmed_packet_is_its_header_at_the_highest_priority_with_right_checksums() {
        for carrier in Carrier::ALL {
            let whole = data(9, 1_000);
            let bytes = packet(carrier, &whole);
            let read = IpPacket::read(&bytes, &Recognition::default()).unwrap();
            let at = read.transport_at;
            let cut = trimmed(bytes).unwrap();
            assert_eq!(cut.len(), at + 8 + 36);
            assert_eq!(cut[at + 8..], whole[..36]);
            assert_eq!(traffic_class(&cut), Some(0xE2), "ECN stays");
            let again = IpPacket::read(&cut, &Recognition::default()).unwrap();
            assert_eq!(again.datagram.end, cut.len());
            if again.ip == IpVersion::V4 {
                assert_eq!(slow_checksum(&cut[..at]), 0);
            }
            if again.transport == Transport::Udp {
                assert_eq!(udp_checksum(&cut, at), 0);
            }
        }
    }

    #[test]
    fn a_udp_packet_without_a_checksum_gets_none() {
        let mut bytes = packet(Carrier::Udp4, &data(9, 1_000));
        bytes[26..28].fill(0);
        assert_eq!(trimmed(bytes).unwrap()[26..28], [0, 0]);
    }

    #[test]
    fn a_packet_is_trimmed_once() {
        let cut = trimmed(packet(Carrier::Native4, &data(9, 1_000))).unwrap();
        assert_eq!(trimmed(cut), None);
    }

    #[test]
    fn control_packets_several_packets_tcp_and_short_ones_pass_untouched() {
        let mut control = data(9, 100);
        (control[1], control[4]) = (0x21, 0x50);
        let mut several = data(9, 100);
        several[6..8].copy_from_slice(&136u16.to_be_bytes());
        several.extend_from_slice(&control);
        for datagram in [&control, &several] {
            assert_eq!(trimmed(packet(Carrier::Udp4, datagram)), None);
            assert_eq!(trimmed_bytes(datagram), None);
        }
        let mut tcp = packet(Carrier::Native4, &data(9, 100));
        tcp[9] = 6;
        assert_eq!(trimmed(tcp.clone()), None);
        for length in 0..tcp.len() {
            let mut short = packet(Carrier::Udp4, &data(9, 100));
            short.truncate(length);
            assert_eq!(trimmed(short), None, "{length} bytes");
        }
    }
}
