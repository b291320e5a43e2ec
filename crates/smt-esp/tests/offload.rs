// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Super-packets are cut before ESP and made again after it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod packets;

use packets::{
    NOW, V4, V6, internet_checksum, is_checksum_right, parameters, plain_database, set_checksum,
    tcp, tunnel_v4, udp,
};
use proptest::prelude::*;
use smt_esp::offload::{Checksum, Coalescer, Offload, SegmentKind, Segmentation, Segments};
use smt_esp::{
    HEADROOM, InboundPath, Mode, OutboundPath, PacketBuffer, SealError, Suite, TAILROOM,
};

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const CWR: u8 = 0x80;

/// A packet, and how it may be cut.
type SuperPacket = (Vec<u8>, Offload);

fn is_v4(packet: &[u8]) -> bool {
    packet[0] >> 4 == 4
}

fn transport_at(packet: &[u8]) -> usize {
    if is_v4(packet) { 20 } else { 40 }
}

fn flags(packet: &[u8]) -> u8 {
    packet[transport_at(packet) + 13]
}

fn sequence(packet: &[u8]) -> u32 {
    let at = transport_at(packet) + 4;
    u32::from_be_bytes(packet[at..at + 4].try_into().unwrap())
}

/// A super-packet as a stack gives it: its checksum is the pseudo-header's sum.
fn super_packet(mut packet: Vec<u8>, size: u16) -> SuperPacket {
    let at = transport_at(&packet);
    let protocol = if is_v4(&packet) { packet[9] } else { packet[6] };
    let (offset, header_len) = if protocol == 6 { (16, 32) } else { (6, 8) };
    let length = u32::try_from(packet.len() - at).unwrap().to_be_bytes();
    let addresses = if is_v4(&packet) { 12..20 } else { 8..40 };
    let pseudo = [&packet[addresses], &length, &[0, 0, 0, protocol]].concat();
    let sum = !internet_checksum(&[&pseudo]);
    packet[at + offset..at + offset + 2].copy_from_slice(&sum.to_be_bytes());
    let kind = match (protocol, is_v4(&packet)) {
        (17, _) => SegmentKind::Udp,
        (_, true) => SegmentKind::TcpV4,
        (_, false) => SegmentKind::TcpV6,
    };
    let offload = Offload {
        segmentation: Some(Segmentation {
            kind,
            size,
            header_len: u16::try_from(at + header_len).unwrap(),
            ecn: protocol == 6 && flags(&packet) & CWR != 0,
        }),
        checksum: Checksum::Partial {
            start: u16::try_from(at).unwrap(),
            offset: u16::try_from(offset).unwrap(),
        },
    };
    (packet, offload)
}

fn cut(packet: &[u8], offload: &Offload, limit: usize) -> Result<Vec<Vec<u8>>, SealError> {
    let mut segments = Segments::new(packet, offload, limit)?;
    let mut memory = vec![0; HEADROOM + limit + TAILROOM];
    let mut all = Vec::new();
    while let Some(buffer) = segments.write_next(&mut memory)? {
        all.push(buffer.packet().to_vec());
    }
    Ok(all)
}

fn coalesce(packets: &[Vec<u8>]) -> Vec<SuperPacket> {
    let mut all = Vec::new();
    let mut deliver = |packet: &[u8], offload: Offload| all.push((packet.to_vec(), offload));
    let mut coalescer = Coalescer::new(4);
    for packet in packets {
        coalescer.push(packet, &mut deliver);
    }
    coalescer.flush(&mut deliver);
    all
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 % 251) as u8).collect()
}

#[test]
fn segments_of_tcp_have_their_own_numbers_flags_and_checksums() {
    for addresses in [V4, V6] {
        let payload = bytes(2500);
        let packet = tcp(addresses, u32::MAX - 1500, ACK | PSH | FIN | CWR, &payload);
        let (packet, offload) = super_packet(packet, 1000);
        let segments = cut(&packet, &offload, 1500).unwrap();
        let at = transport_at(&packet);
        assert_eq!(segments.len(), 3);
        let expected_flags = [ACK | CWR, ACK, ACK | PSH | FIN];
        let mut seen = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            assert_eq!(flags(segment), expected_flags[index]);
            let offset = u32::try_from(index * 1000).unwrap();
            assert_eq!(sequence(segment), (u32::MAX - 1500).wrapping_add(offset));
            assert!(is_checksum_right(segment, at, 6));
            if is_v4(segment) {
                let identification = u16::from_be_bytes([segment[4], segment[5]]);
                assert_eq!(identification, 0xABC0 + u16::try_from(index).unwrap());
                assert_eq!(internet_checksum(&[&segment[..20]]), 0);
                let length = u16::from_be_bytes([segment[2], segment[3]]);
                assert_eq!(usize::from(length), segment.len());
            } else {
                let length = u16::from_be_bytes([segment[4], segment[5]]);
                assert_eq!(usize::from(length) + 40, segment.len());
            }
            seen.extend_from_slice(&segment[at + 32..]);
        }
        assert_eq!(seen, payload);
    }
}

#[test]
fn an_urgent_pointer_counts_from_its_own_segment() {
    let mut packet = tcp(V4, 1, ACK | 0x20, &bytes(250));
    packet[38..40].copy_from_slice(&150u16.to_be_bytes());
    let (packet, offload) = super_packet(packet, 100);
    let urgent = |segment: &Vec<u8>| {
        let pointer = u16::from_be_bytes([segment[38], segment[39]]);
        (flags(segment) & 0x20 != 0, pointer)
    };
    let segments = cut(&packet, &offload, 1500).unwrap();
    let found: Vec<_> = segments.iter().map(urgent).collect();
    assert_eq!(found, [(true, 150), (true, 50), (false, 0)]);
}

#[test]
fn segments_of_tcp_shrink_to_what_fits_and_datagrams_do_not() {
    let (packet, offload) = super_packet(tcp(V4, 1, ACK, &bytes(3000)), 1448);
    let segments = cut(&packet, &offload, 1000).unwrap();
    assert_eq!(segments.iter().map(Vec::len).max(), Some(1000));
    let (packet, offload) = super_packet(udp(V4, &bytes(3000)), 1448);
    let refused = cut(&packet, &offload, 1000);
    assert_eq!(refused, Err(SealError::TooBig { limit: 1000 }));
}

#[test]
fn datagrams_keep_their_bounds() {
    for addresses in [V4, V6] {
        let (packet, offload) = super_packet(udp(addresses, &bytes(250)), 100);
        let segments = cut(&packet, &offload, 1500).unwrap();
        let at = transport_at(&packet);
        let lengths: Vec<_> = segments.iter().map(|segment| segment.len() - at - 8).collect();
        assert_eq!(lengths, [100, 100, 50]);
        for segment in &segments {
            assert!(is_checksum_right(segment, at, 17));
            let length = u16::from_be_bytes([segment[at + 4], segment[at + 5]]);
            assert_eq!(usize::from(length), segment.len() - at);
        }
    }
}

#[test]
fn a_packet_alone_gets_its_checksum() {
    let (packet, offload) = super_packet(tcp(V6, 1, ACK, b"alone"), 1000);
    let alone = Offload { segmentation: None, ..offload };
    let segments = cut(&packet, &alone, 1500).unwrap();
    assert_eq!(segments, [tcp(V6, 1, ACK, b"alone")]);
    let refused = cut(&packet, &alone, packet.len() - 1);
    assert!(matches!(refused, Err(SealError::TooBig { .. })));
}

#[test]
fn a_description_that_is_not_true_is_refused() {
    let (packet, offload) = super_packet(tcp(V4, 1, ACK, &bytes(100)), 50);
    let kind = |kind| {
        let mut offload = offload;
        offload.segmentation.as_mut().unwrap().kind = kind;
        cut(&packet, &offload, 1500)
    };
    assert!(kind(SegmentKind::TcpV4).is_ok());
    assert_eq!(kind(SegmentKind::TcpV6), Err(SealError::Malformed));
    assert_eq!(kind(SegmentKind::Udp), Err(SealError::Malformed));
    let (syn, offload) = super_packet(tcp(V4, 1, 0x02, &bytes(100)), 50);
    assert_eq!(cut(&syn, &offload, 1500), Err(SealError::Malformed));
    let outside =
        Offload { segmentation: None, checksum: Checksum::Partial { start: 20, offset: 131 } };
    assert_eq!(cut(&packet, &outside, 1500), Err(SealError::Malformed));
}

proptest! {
    #[test]
    fn a_super_packet_that_is_cut_and_coalesced_is_the_same(
        v4: bool,
        is_tcp: bool,
        last_flags in prop::sample::select(vec![0, PSH, FIN, PSH | FIN]),
        reduced: bool,
        size in 8u16..1400,
        length in 2usize..6000,
    ) {
        let length = length.min(usize::from(size) * 60);
        prop_assume!(length > usize::from(size));
        let addresses = if v4 { V4 } else { V6 };
        let packet = if is_tcp {
            let cwr = if reduced { CWR } else { 0 };
            tcp(addresses, u32::MAX - 100, ACK | last_flags | cwr, &bytes(length))
        } else {
            udp(addresses, &bytes(length))
        };
        let (packet, offload) = super_packet(packet, size);
        let segments = cut(&packet, &offload, 1500).unwrap();
        prop_assert_eq!(segments.len(), length.div_ceil(usize::from(size)));
        prop_assert_eq!(coalesce(&segments), [(packet, offload)]);
    }
}

/// Packets that must not be coalesced with the one before them.
fn strangers() -> Vec<(&'static str, Vec<u8>)> {
    let follower = || tcp(V4, 101, ACK, &bytes(100));
    let changed = |at: usize, value: u8| {
        let mut packet = follower();
        // The identification of a packet that follows.
        packet[5] += 1;
        packet[at] ^= value;
        packet[10..12].fill(0);
        let checksum = internet_checksum(&[&packet[..20]]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        set_checksum(&mut packet, 20, 6);
        packet
    };
    let mut wrong = changed(5, 0);
    wrong[60] ^= 1;
    vec![
        ("a gap", changed(27, 1)),
        ("another acknowledgement", changed(31, 1)),
        ("another window", changed(35, 1)),
        ("another option", changed(45, 1)),
        ("the flag ECE", changed(33, 0x40)),
        ("the flag CWR", changed(33, CWR)),
        ("another traffic class", changed(1, 3)),
        ("another hop limit", changed(8, 1)),
        ("another identification", changed(4, 1)),
        ("a wrong checksum", wrong),
    ]
}

#[test]
fn a_packet_that_differs_is_not_coalesced() {
    let first = tcp(V4, 1, ACK, &bytes(100));
    let mut fits = tcp(V4, 101, ACK, &bytes(100));
    fits[5] += 1;
    fits[10..12].fill(0);
    let checksum = internet_checksum(&[&fits[..20]]);
    fits[10..12].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(coalesce(&[first.clone(), fits]).len(), 1);
    for (name, stranger) in strangers() {
        let delivered = coalesce(&[first.clone(), stranger.clone()]);
        let packets: Vec<_> = delivered.into_iter().map(|(packet, _)| packet).collect();
        assert_eq!(packets, [first.clone(), stranger], "{name}");
    }
}

#[test]
fn identifications_of_packets_that_are_not_fragmented_may_stand_still() {
    let packets: Vec<_> = (0..3).map(|at| tcp(V4, 1 + at * 100, ACK, &bytes(100))).collect();
    assert_eq!(coalesce(&packets).len(), 1);
    let mut fragmentable = packets;
    for packet in &mut fragmentable {
        packet[6] = 0;
        packet[10..12].fill(0);
        let checksum = internet_checksum(&[&packet[..20]]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    assert_eq!(coalesce(&fragmentable).len(), 3);
}

#[test]
fn a_packet_without_payload_comes_after_what_its_flow_has_gathered() {
    let first = tcp(V6, 1, ACK, &bytes(100));
    let empty = tcp(V6, 101, ACK, b"");
    let other = udp(V6, b"another flow");
    let delivered = coalesce(&[first.clone(), other.clone(), empty.clone()]);
    let packets: Vec<_> = delivered.into_iter().map(|(packet, _)| packet).collect();
    assert_eq!(packets, [first, empty, other]);
}

// Linux before 6.2 refuses super-packets of UDP at its TUN device.
#[test]
fn datagrams_of_udp_stay_alone_for_a_host_that_takes_no_super_packets_of_them() {
    let packets: Vec<_> = (0..4_u8).map(|it| udp(V4, &[it; 100])).collect();
    let segments: Vec<_> = (0..4_u32).map(|it| tcp(V6, 1 + it * 100, ACK, &bytes(100))).collect();
    for (takes_udp, expected) in [(true, 2), (false, 5)] {
        let mut delivered = Vec::new();
        let mut deliver = |packet: &[u8], offload: Offload| {
            delivered.push((packet.to_vec(), offload));
        };
        let mut coalescer = Coalescer::new(4);
        coalescer.set_udp(takes_udp);
        for packet in packets.iter().chain(&segments) {
            coalescer.push(packet, &mut deliver);
        }
        coalescer.flush(&mut deliver);
        assert_eq!(delivered.len(), expected, "{takes_udp}");
        let alone: Vec<_> = { delivered.iter() }
            .filter(|it| it.1.segmentation.is_none())
            .map(|it| it.0.clone())
            .collect();
        let expected = if takes_udp { &packets[..0] } else { &packets };
        assert_eq!(alone, expected);
    }
}

#[test]
fn the_oldest_flow_makes_room_for_a_new_one() {
    let mut delivered = Vec::new();
    let mut deliver = |packet: &[u8], _| delivered.push(packet.to_vec());
    let mut coalescer = Coalescer::new(1);
    let (one, two) = (tcp(V4, 1, ACK, b"one"), tcp(V6, 1, ACK, b"two"));
    coalescer.push(&one, &mut deliver);
    coalescer.push(&two, &mut deliver);
    coalescer.flush(&mut deliver);
    assert_eq!(delivered, [one, two]);
}

fn through(
    database: &mut smt_esp::Database,
    packet: &SuperPacket,
    flows: usize,
) -> (Vec<Vec<u8>>, Vec<SuperPacket>) {
    let mut sealed = Vec::new();
    let count = OutboundPath::new(1500, true)
        .send(database, (&packet.0, &packet.1), NOW, &mut |packet| {
            sealed.push(packet.to_vec());
        })
        .unwrap();
    assert_eq!(count, sealed.len());
    let mut opened = Vec::new();
    let mut deliver = |packet: &[u8], offload| opened.push((packet.to_vec(), offload));
    let mut inbound = InboundPath::new(flows);
    for packet in &sealed {
        let mut memory = packet.clone();
        let range = 0..memory.len();
        let mut buffer = PacketBuffer::new(&mut memory, range).unwrap();
        inbound.receive(database, &mut buffer, NOW, &mut deliver).unwrap();
    }
    inbound.flush(&mut deliver);
    (sealed, opened)
}

#[test]
fn a_super_packet_passes_esp_in_segments_that_fit() {
    for suite in Suite::ALL {
        for mode in [Mode::Transport, tunnel_v4()] {
            for addresses in [V4, V6] {
                let mut database = plain_database(suite, mode);
                let sent = super_packet(tcp(addresses, 7, ACK | PSH, &bytes(60_000)), 1448);
                let (sealed, opened) = through(&mut database, &sent, 4);
                assert!(sealed.len() > 41);
                assert!(sealed.iter().all(|packet| packet.len() <= 1500));
                let [(packet, offload)] = &opened[..] else {
                    panic!("one super-packet");
                };
                assert_eq!(packet, &sent.0);
                assert_eq!(offload.checksum, sent.1.checksum);
                assert_eq!(database.statistics().opened, sealed.len() as u64);
            }
        }
    }
}

#[test]
fn segmentation_and_coalescing_are_switched_off_apart() {
    let mut database = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    let sent = super_packet(tcp(V4, 7, ACK, &bytes(5000)), 1000);
    let (sealed, opened) = through(&mut database, &sent, 0);
    assert_eq!((sealed.len(), opened.len()), (5, 5));
    let mut outbound = OutboundPath::new(1500, false);
    let refused = outbound.send(&mut database, (&sent.0, &sent.1), NOW, &mut |_| {
        panic!("nothing leaves");
    });
    assert!(matches!(refused, Err(SealError::TooBig { .. })));
    assert_eq!(database.statistics().out_too_big, 1);
    let alone = tcp(V4, 7, ACK, &bytes(100));
    let sent = outbound.send(&mut database, (&alone, &Offload::default()), NOW, &mut |_| ());
    assert_eq!(sent, Ok(1));
}

#[test]
fn a_failure_in_the_middle_of_a_super_packet_ends_it() {
    let mut outbound = parameters(Suite::Aes128Gcm16, Mode::Transport);
    outbound.first_number = u64::from(u32::MAX) - 1;
    let inbound = parameters(Suite::Aes128Gcm16, Mode::Transport);
    let (mut database, _) = packets::database(outbound, inbound);
    let sent = super_packet(tcp(V4, 7, ACK, &bytes(5000)), 1000);
    let mut count = 0;
    let failed =
        OutboundPath::new(1500, true)
            .send(&mut database, (&sent.0, &sent.1), NOW, &mut |_| count += 1);
    assert_eq!((failed, count), (Err(SealError::SequenceExhausted), 2));
}
