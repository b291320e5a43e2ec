// SPDX-License-Identifier: Apache-2.0 OR MIT
//! ESP: hostile packets, peers that have the keys, super-packets, and packets that are coalesced.
//!
//! - Nothing from the network opens without the keys.
//! - A packet that a peer seals, malformed or not, opens as a whole IP packet or is refused.
//! - Segments of any super-packet fit, and have all of its payload.
//! - Packets that were coalesced are, once they are cut again, the packets that came.

use std::net::IpAddr;
use std::time::Duration;

use arbitrary::Arbitrary;
use smt_esp::offload::{Coalescer, Offload, Segments};
use smt_esp::{
    Database, Encapsulation, Flow, HEADROOM, InboundAssociation, KeyMaterial, Mode,
    OutboundAssociation, PacketBuffer, Parameters, Suite, TAILROOM, TunnelHeader,
};

const NOW: Duration = Duration::ZERO;
const SPI: u32 = 0x0101_0101;
const LONGEST: usize = 65_575;

/// One case.
#[derive(Arbitrary, Debug)]
pub enum Case {
    /// Packets of an attacker.
    Network {
        /// The association of their receiver.
        association: Association,
        /// The packets, with a right length and SPI if `mended`.
        packets: Vec<Vec<u8>>,
        /// Whether lengths, protocol and SPI are made right.
        mended: bool,
    },
    /// A packet of a peer that has the keys.
    Peer {
        /// The association of both ends.
        association: Association,
        /// IPv6, not IPv4.
        v6: bool,
        /// The trailer's next header.
        protocol: u8,
        /// The protected bytes.
        payload: Vec<u8>,
    },
    /// A super-packet of the stack above.
    SuperPacket {
        /// Its virtio-net header.
        header: [u8; 10],
        /// The longest segment.
        limit: u16,
        /// Its bytes.
        packet: Vec<u8>,
    },
    /// Packets of a few flows.
    Stream(Vec<Piece>),
}

/// Suite and mode.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Association {
    suite: u8,
    tunnel: bool,
    in_udp: bool,
    extended: bool,
}

/// A packet of a stream.
#[derive(Arbitrary, Debug)]
pub struct Piece {
    v6: bool,
    udp: bool,
    /// Bytes that are skipped before it.
    gap: u8,
    flags: u8,
    /// Steps of the IPv4 identification.
    step: u8,
    traffic_class: u8,
    length: u16,
    wrong_checksum: bool,
}

/// Runs the case.
pub fn check(case: &Case) {
    match case {
        Case::Network { association, packets, mended } => {
            check_network(*association, packets, *mended)
        }
        Case::Peer { association, v6, protocol, payload } => {
            check_peer(*association, &packet(*v6, *protocol, payload))
        }
        Case::SuperPacket { header, limit, packet } => {
            check_super_packet(header, usize::from(*limit), packet)
        }
        Case::Stream(pieces) => check_stream(pieces),
    }
}

impl Association {
    fn parameters(self, tunnel: bool) -> Parameters {
        let suite = Suite::ALL[usize::from(self.suite) % Suite::ALL.len()];
        let material = vec![7; suite.key_material_len()];
        let key = KeyMaterial::new(suite, &material).expect("the suite's length");
        let outer = TunnelHeader::new(IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let mode = if tunnel { Mode::Tunnel(outer) } else { Mode::Transport };
        let mut parameters = Parameters::new(SPI, key, mode);
        parameters.encapsulation = self.in_udp.then(Encapsulation::default);
        parameters.extended_numbers = self.extended;
        parameters
    }

    fn receiver(self) -> Database {
        let mut database = Database::new();
        let association = InboundAssociation::new(self.parameters(self.tunnel), NOW);
        let added = database.add_inbound(association.expect("parameters in range"));
        added.expect("the first association");
        database
    }
}

fn check_network(association: Association, packets: &[Vec<u8>], mended: bool) {
    let mut database = association.receiver();
    for packet in packets {
        let mut memory = packet.clone();
        if mended {
            mend(&mut memory, association.in_udp);
        }
        let range = 0..memory.len();
        let mut buffer = PacketBuffer::new(&mut memory, range).expect("the whole of it");
        // Without policies nothing passes in the clear; a datagram for IKE does.
        let _ = database.open(&mut buffer, NOW);
    }
    assert_eq!(database.statistics().opened, 0, "a packet without the keys");
    assert_eq!(database.inbound(SPI)[0].highest_number(), 0, "the window moved");
}

/// Makes an IPv4 packet that reaches an association.
fn mend(packet: &mut [u8], in_udp: bool) {
    let length = packet.len();
    let esp_at = if in_udp { 28 } else { 20 };
    if length < esp_at + 8 || length > 0xFFFF {
        return;
    }
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    packet[6..8].fill(0);
    packet[9] = if in_udp { 17 } else { 50 };
    if in_udp {
        packet[22..24].copy_from_slice(&4500u16.to_be_bytes());
        packet[24..26].copy_from_slice(&((length - 20) as u16).to_be_bytes());
    }
    packet[esp_at..esp_at + 4].copy_from_slice(&SPI.to_be_bytes());
}

/// Transport mode writes any next header and payload: also what a tunnel's receiver sees.
fn check_peer(association: Association, packet: &[u8]) {
    let mut memory = vec![0; HEADROOM + packet.len() + TAILROOM];
    let mut buffer = PacketBuffer::with_copy(&mut memory, packet).expect("room for it");
    let sender = OutboundAssociation::new(association.parameters(false), NOW);
    let sealed = sender.expect("parameters in range").seal(&mut buffer, NOW);
    if sealed.is_err() {
        return;
    }
    let mut database = association.receiver();
    let opened = database.open(&mut buffer, NOW);
    assert_eq!(database.inbound(SPI)[0].highest_number(), 1, "it authenticated");
    if let Ok(smt_esp::Arrival::Opened(opened)) = opened
        && !opened.dummy
    {
        assert!(Flow::of_packet(buffer.packet()).is_ok(), "a whole packet");
        let length = buffer.packet().len();
        assert!(length <= packet.len(), "bytes came from nowhere");
    }
}

fn check_super_packet(header: &[u8; 10], limit: usize, packet: &[u8]) {
    let Ok(offload) = Offload::from_virtio(header) else {
        return;
    };
    assert_eq!(Offload::from_virtio(&offload.to_virtio()), Ok(offload));
    let Ok(mut segments) = Segments::new(packet, &offload, limit) else {
        return;
    };
    let mut memory = vec![0; HEADROOM + LONGEST + TAILROOM];
    let (mut count, mut longest, mut total) = (0usize, 0, 0);
    while let Ok(Some(buffer)) = segments.write_next(&mut memory) {
        let length = buffer.packet().len();
        assert!(length <= limit, "a segment is too long");
        assert!(Flow::of_packet(buffer.packet()).is_ok(), "a whole packet");
        (count, longest, total) = (count + 1, longest.max(length), total + length);
    }
    if offload.segmentation.is_some() {
        assert!(count > 0, "no segment");
        assert!(total >= packet.len().min(longest), "payload is lost");
    }
}

fn check_stream(pieces: &[Piece]) {
    let mut came = packets_of(pieces);
    let mut again = Vec::new();
    let mut memory = vec![0; HEADROOM + LONGEST + TAILROOM];
    let mut deliver = |packet: &[u8], offload: Offload| {
        assert!(packet.len() <= smt_esp::limits::LONGEST_SUPER_PACKET);
        let segments = Segments::new(packet, &offload, LONGEST);
        let mut segments = segments.expect("a super-packet may be cut");
        while let Some(buffer) = segments.write_next(&mut memory).expect("room") {
            again.push(normalized(buffer.packet()));
        }
    };
    let mut coalescer = Coalescer::new(2);
    for packet in &came {
        coalescer.push(packet, &mut deliver);
    }
    coalescer.flush(&mut deliver);
    came = came.iter().map(|packet| normalized(packet)).collect();
    came.sort();
    again.sort();
    assert_eq!(came, again, "other packets than those that came");
}

/// A packet without the fields that coalescing may change: an IPv4 packet that is not fragmented
/// needs no identification.
fn normalized(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 4 {
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    packet
}

fn packets_of(pieces: &[Piece]) -> Vec<Vec<u8>> {
    let (mut sequence, mut identification) = (u32::MAX - 5000, 0u16);
    let mut packets = Vec::new();
    for piece in pieces.iter().take(200) {
        let payload = vec![piece.gap; usize::from(piece.length) % 3000];
        sequence = sequence.wrapping_add(u32::from(piece.gap % 4 == 3));
        identification = identification.wrapping_add(u16::from(piece.step % 3));
        let mut transport = vec![0x10, 0x01, 0, 80];
        if piece.udp {
            transport.extend(((8 + payload.len()) as u16).to_be_bytes());
            transport.extend([0, 0]);
        } else {
            transport.extend(sequence.to_be_bytes());
            transport.extend([0, 0, 0, 9, 0x50, piece.flags, 1, 0, 0, 0, 0, 0]);
            sequence = sequence.wrapping_add(payload.len() as u32);
        }
        transport.extend(payload);
        let protocol = if piece.udp { 17 } else { 6 };
        let mut packet = packet(piece.v6, protocol, &transport);
        if !piece.v6 {
            packet[1] = piece.traffic_class % 4;
            packet[4..6].copy_from_slice(&identification.to_be_bytes());
        }
        write_checksums(&mut packet, protocol, piece.wrong_checksum);
        packets.push(packet);
    }
    packets
}

/// An IP packet without its checksum.
fn packet(v6: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len().min(60_000);
    let mut packet = if v6 {
        let mut header = vec![0; 40];
        header[0] = 0x60;
        header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        header[6..8].copy_from_slice(&[protocol, 64]);
        header
    } else {
        let mut header = vec![0; 20];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&(20 + length as u16).to_be_bytes());
        header[6] = 0x40;
        header[8..10].copy_from_slice(&[64, protocol]);
        header
    };
    packet.extend_from_slice(&payload[..length]);
    packet
}

fn write_checksums(packet: &mut [u8], protocol: u8, wrong: bool) {
    let at = if packet[0] >> 4 == 4 {
        let checksum = !sum(&packet[..20], 0);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        20
    } else {
        40
    };
    // The addresses are zero.
    let transport = &packet[at..];
    let pseudo = u32::from(protocol) + transport.len() as u32;
    let mut checksum = !sum(transport, pseudo);
    if protocol == 17 && checksum == 0 {
        checksum = 0xFFFF;
    }
    let place = at + if protocol == 6 { 16 } else { 6 };
    packet[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
    if wrong {
        packet[place] ^= 1;
    }
}

fn sum(bytes: &[u8], start: u32) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum = start + words.sum::<u32>();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}
