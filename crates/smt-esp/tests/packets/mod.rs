// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets and associations for tests, written without the crate's own header code.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::net::IpAddr;
use std::time::Duration;

use smt_esp::{
    Action, Arrival, Database, Departure, HEADROOM, InboundAssociation, KeyMaterial, Mode,
    OpenError, OutboundAssociation, OutboundId, PacketBuffer, Parameters, Policy, SealError,
    Sealed, Selectors, Suite, TAILROOM, TunnelHeader,
};

pub(crate) const NOW: Duration = Duration::from_secs(10);
pub(crate) const SPI: u32 = 0x1234;

/// A sum of 16-bit words, word by word: another way than the crate's.
pub(crate) fn internet_checksum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// An IP packet around a payload, of the version of its addresses.
pub(crate) fn ip(source: &str, destination: &str, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = match (source.parse().unwrap(), destination.parse().unwrap()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let length = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
            let mut header = vec![0x45, 0, length[0], length[1], 0xAB, 0xC0, 0x40, 0, 63, protocol];
            header.extend([0, 0]);
            header.extend(source.octets());
            header.extend(destination.octets());
            let checksum = internet_checksum(&[&header]);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            header
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
            let mut header = vec![0x60, 0x01, 0x23, 0x45, length[0], length[1], protocol, 63];
            header.extend(source.octets());
            header.extend(destination.octets());
            header
        }
        _ => panic!("one version"),
    };
    packet.extend_from_slice(payload);
    packet
}

pub(crate) const V4: (&str, &str) = ("10.0.0.1", "10.0.0.2");
pub(crate) const V6: (&str, &str) = ("fd00::1", "fd00::2");

fn addresses(packet: &[u8]) -> &[u8] {
    if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] }
}

/// Whether a transport checksum is right; `at` is where the transport header begins.
pub(crate) fn is_checksum_right(packet: &[u8], at: usize, protocol: u8) -> bool {
    let transport = &packet[at..];
    let length = u32::try_from(transport.len()).unwrap().to_be_bytes();
    let pseudo = [addresses(packet), &length, &[0, 0, 0, protocol]].concat();
    internet_checksum(&[&pseudo, transport]) == 0
}

/// Writes a right transport checksum.
pub(crate) fn set_checksum(packet: &mut [u8], at: usize, protocol: u8) {
    let offset = at + if protocol == 6 { 16 } else { 6 };
    packet[offset..offset + 2].fill(0);
    let transport = packet[at..].to_vec();
    let length = u32::try_from(transport.len()).unwrap().to_be_bytes();
    let pseudo = [addresses(packet), &length, &[0, 0, 0, protocol]].concat();
    let checksum = internet_checksum(&[&pseudo, &transport]);
    packet[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// A packet of UDP with a right checksum.
pub(crate) fn udp((source, destination): (&str, &str), payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
    let mut datagram = vec![0x10, 0x01, 0x20, 0x02, length[0], length[1], 0, 0];
    datagram.extend_from_slice(payload);
    let mut packet = ip(source, destination, 17, &datagram);
    let at = packet.len() - datagram.len();
    set_checksum(&mut packet, at, 17);
    packet
}

/// A packet of TCP with a right checksum and a timestamp option.
pub(crate) fn tcp(
    (source, destination): (&str, &str),
    sequence: u32,
    flags: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut segment = vec![0x10, 0x01, 0x00, 0x50];
    segment.extend(sequence.to_be_bytes());
    segment.extend(77u32.to_be_bytes());
    segment.extend([0x80, flags, 0x20, 0x00, 0, 0, 0, 0]);
    segment.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    segment.extend_from_slice(payload);
    let mut packet = ip(source, destination, 6, &segment);
    let at = packet.len() - segment.len();
    set_checksum(&mut packet, at, 6);
    packet
}

pub(crate) fn parameters(suite: Suite, mode: Mode) -> Parameters {
    let material: Vec<u8> = (1..).take(suite.key_material_len()).collect();
    Parameters::new(SPI, KeyMaterial::new(suite, &material).unwrap(), mode)
}

pub(crate) fn tunnel_v4() -> Mode {
    let header = TunnelHeader::new("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    Mode::Tunnel(header)
}

pub(crate) fn tunnel_v6() -> Mode {
    let (source, destination) = ("2001:db8::1", "2001:db8::2");
    Mode::Tunnel(TunnelHeader::new(source.parse().unwrap(), destination.parse().unwrap()))
}

/// A database that seals all packets by one association and opens by another of the same keys.
pub(crate) fn database(outbound: Parameters, inbound: Parameters) -> (Database, OutboundId) {
    let mut database = Database::new();
    let outbound = OutboundAssociation::new(outbound, NOW).unwrap();
    let id = database.add_outbound(outbound);
    database.add_policy(Policy { selectors: Selectors::default(), action: Action::Protect(id) });
    let inbound = InboundAssociation::new(inbound, NOW).unwrap();
    database.add_inbound(inbound).unwrap();
    (database, id)
}

pub(crate) fn plain_database(suite: Suite, mode: Mode) -> Database {
    database(parameters(suite, mode), parameters(suite, mode)).0
}

pub(crate) fn room(packet: &[u8]) -> Vec<u8> {
    vec![0; HEADROOM + packet.len() + TAILROOM]
}

pub(crate) fn seal(database: &mut Database, packet: &[u8]) -> Result<(Sealed, Vec<u8>), SealError> {
    let mut memory = room(packet);
    let mut buffer = PacketBuffer::with_copy(&mut memory, packet).unwrap();
    let departure = database.seal(&mut buffer, NOW)?;
    Ok((sealed(departure), buffer.packet().to_vec()))
}

fn sealed(departure: Departure) -> Sealed {
    match departure {
        Departure::Sealed(sealed) => sealed,
        Departure::Bypass => panic!("the packet was not sealed"),
    }
}

pub(crate) fn open(
    database: &mut Database,
    packet: &[u8],
) -> Result<(Arrival, Vec<u8>), OpenError> {
    let mut memory = packet.to_vec();
    let range = 0..memory.len();
    let mut buffer = PacketBuffer::new(&mut memory, range).unwrap();
    let arrival = database.open(&mut buffer, NOW)?;
    Ok((arrival, buffer.packet().to_vec()))
}
