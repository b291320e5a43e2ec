// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets for tests, made by the specification and not by the code under test.

use std::vec;
use std::vec::Vec;

/// A carrier of datagrams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Carrier {
    Udp4,
    Udp6,
    Native4,
    Native6,
}

impl Carrier {
    pub(crate) const ALL: [Self; 4] = [Self::Udp4, Self::Udp6, Self::Native4, Self::Native6];
}

/// A DATA packet of session 5 with so many bytes of payload.
pub(crate) fn data(id: u64, payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; 36];
    (bytes[0], bytes[1], bytes[4]) = (1, 0x01, 0xB0);
    bytes[19] = 5;
    bytes[20..28].copy_from_slice(&id.to_be_bytes());
    bytes[28..32].copy_from_slice(&100_000u32.to_be_bytes());
    bytes.extend((0..payload).map(|at| at as u8));
    bytes
}

/// An IP packet from host 1 to host 2, with right checksums.
pub(crate) fn packet(carrier: Carrier, datagram: &[u8]) -> Vec<u8> {
    let behind = 8 + datagram.len();
    let is_udp = matches!(carrier, Carrier::Udp4 | Carrier::Udp6);
    let protocol = if is_udp { 17 } else { 253 };
    let mut bytes = match carrier {
        Carrier::Udp4 | Carrier::Native4 => {
            let mut header = vec![0x45, 0x42, 0, 0, 0, 7, 0x40, 0, 64, protocol, 0, 0];
            header.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            header[2..4].copy_from_slice(&(20 + behind as u16).to_be_bytes());
            let checksum = slow_checksum(&header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            header
        }
        Carrier::Udp6 | Carrier::Native6 => {
            let mut header = vec![0x64, 0x20, 0, 0, 0, 0, protocol, 64];
            header[4..6].copy_from_slice(&(behind as u16).to_be_bytes());
            for last in [1, 2] {
                header.extend_from_slice(&[0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
            }
            header
        }
    };
    let at = bytes.len();
    bytes.extend_from_slice(&40_000u16.to_be_bytes());
    bytes.extend_from_slice(&17_379u16.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    if is_udp {
        bytes[at + 4..at + 6].copy_from_slice(&(behind as u16).to_be_bytes());
    }
    bytes.extend_from_slice(datagram);
    if is_udp {
        let checksum = udp_checksum(&bytes, at);
        bytes[at + 6..at + 8].copy_from_slice(&checksum.to_be_bytes());
    }
    bytes
}

/// The checksum over UDP's pseudo header and all behind IP; 0 if what is there is right, or is
/// 0xFFFF in the place of 0.
pub(crate) fn udp_checksum(packet: &[u8], transport_at: usize) -> u16 {
    let mut all = match packet[0] >> 4 {
        4 => packet[12..20].to_vec(),
        _ => packet[8..40].to_vec(),
    };
    let behind = (packet.len() - transport_at) as u16;
    all.extend_from_slice(&[0, 17]);
    all.extend_from_slice(&behind.to_be_bytes());
    all.extend_from_slice(&packet[transport_at..]);
    slow_checksum(&all)
}

/// RFC 1071, word by word.
pub(crate) fn slow_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}
