// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Associations seal and open, and refuse: RFC 4303 §3.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod packets;

use packets::{
    NOW, SPI, V4, V6, database, internet_checksum, ip, open, parameters, plain_database, room,
    seal, tcp, tunnel_v4, tunnel_v6, udp,
};
use proptest::prelude::*;
use smt_esp::{
    Addresses, Arrival, DontFragment, Encapsulation, InboundAssociation, Lifetime, Limit, Mode,
    OpenError, Opened, OutboundAssociation, PacketBuffer, ParametersError, SealError, Selectors,
    Suite,
};

fn modes() -> [Mode; 3] {
    [Mode::Transport, tunnel_v4(), tunnel_v6()]
}

proptest! {
    #[test]
    fn every_packet_kind_opens_as_it_was(
        suite in prop::sample::select(Suite::ALL.to_vec()),
        mode in 0usize..3,
        extended: bool,
        in_udp: bool,
        v4: bool,
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let both = || {
            let mut parameters = parameters(suite, modes()[mode]);
            parameters.extended_numbers = extended;
            parameters.encapsulation = in_udp.then(Encapsulation::default);
            parameters
        };
        let (mut database, _) = database(both(), both());
        let packet = udp(if v4 { V4 } else { V6 }, &payload);
        let (sealed, bytes) = seal(&mut database, &packet).unwrap();
        prop_assert_eq!(sealed.number, 1);
        if suite != Suite::NullHmacSha256 && payload.len() >= 16 {
            let leaked = bytes.windows(payload.len()).any(|window| window == payload);
            prop_assert!(!leaked, "the payload is readable");
        }
        let (arrival, opened) = open(&mut database, &bytes).unwrap();
        prop_assert_eq!(opened, packet);
        let expected = Opened { spi: SPI, number: 1, dummy: false, soft_expired: false };
        prop_assert_eq!(arrival, Arrival::Opened(expected));
    }

    #[test]
    fn any_bytes_are_opened_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        version in prop::sample::select(vec![0x45u8, 0x46, 0x60]),
        protocol in prop::sample::select(vec![50u8, 17, 0, 43, 44, 60]),
    ) {
        let mut database = plain_database(Suite::Aes128Gcm16, Mode::Transport);
        let mut packet = bytes;
        let length = packet.len();
        if length >= 40 {
            packet[0] = version;
            if version == 0x60 {
                packet[4..6].copy_from_slice(&u16::try_from(length - 40).unwrap().to_be_bytes());
                packet[6] = protocol;
            } else {
                packet[2..4].copy_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
                packet[6..8].fill(0);
                packet[9] = protocol;
            }
        }
        prop_assert!(open(&mut database, &packet).is_err());
        prop_assert_eq!(database.statistics().opened, 0);
    }
}

#[test]
fn a_changed_packet_is_refused_and_does_not_move_the_window() {
    for suite in Suite::ALL {
        let mut database = plain_database(suite, Mode::Transport);
        let packet = tcp(V4, 1, 0x10, b"payload");
        seal(&mut database, &packet).unwrap();
        let (_, bytes) = seal(&mut database, &packet).unwrap();
        // From the sequence number on; another SPI is another association's.
        for at in 24..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            assert_eq!(open(&mut database, &changed), Err(OpenError::Integrity));
            assert_eq!(database.inbound(SPI)[0].highest_number(), 0);
        }
        let failures = (bytes.len() - 24) as u64;
        assert_eq!(database.inbound(SPI)[0].statistics().failed, failures);
        assert_eq!(database.statistics().in_integrity, failures);
        assert!(open(&mut database, &bytes).is_ok());
        assert_eq!(database.inbound(SPI)[0].highest_number(), 2);
    }
}

#[test]
fn a_replayed_packet_and_one_below_the_window_are_refused() {
    let mut inbound = parameters(Suite::Aes128Ccm8, Mode::Transport);
    inbound.replay_window = 32;
    let outbound = parameters(Suite::Aes128Ccm8, Mode::Transport);
    let (mut database, _) = database(outbound, inbound);
    let packet = udp(V6, b"once");
    let sealed: Vec<_> = (0..33).map(|_| seal(&mut database, &packet).unwrap().1).collect();
    assert!(open(&mut database, &sealed[32]).is_ok());
    assert!(open(&mut database, &sealed[1]).is_ok(), "the window's left");
    assert_eq!(open(&mut database, &sealed[1]), Err(OpenError::Replay));
    assert_eq!(open(&mut database, &sealed[0]), Err(OpenError::BelowWindow));
    let statistics = database.inbound(SPI)[0].statistics();
    assert_eq!((statistics.replay, statistics.replay_window), (1, 1));
    assert_eq!(database.statistics().in_replay, 2);
}

#[test]
fn no_number_is_used_twice_once_all_are_used() {
    let mut outbound = parameters(Suite::Aes256Gcm16, Mode::Transport);
    outbound.first_number = u32::MAX.into();
    let inbound = parameters(Suite::Aes256Gcm16, Mode::Transport);
    let (mut database, id) = database(outbound, inbound);
    let packet = udp(V4, b"last");
    let (sealed, bytes) = seal(&mut database, &packet).unwrap();
    assert_eq!(sealed.number, u32::MAX.into());
    assert_eq!(open(&mut database, &bytes).unwrap().1, packet);
    for _ in 0..2 {
        assert_eq!(seal(&mut database, &packet), Err(SealError::SequenceExhausted));
    }
    assert_eq!(database.statistics().out_sequence_exhausted, 2);
    assert_eq!(database.outbound(id).unwrap().next_number(), None);
}

#[test]
fn extended_numbers_go_on_beyond_32_bits_also_out_of_order() {
    for suite in Suite::ALL {
        let from = |first| {
            let mut parameters = parameters(suite, Mode::Transport);
            parameters.extended_numbers = true;
            parameters.first_number = first;
            parameters
        };
        let border = 7 << 32;
        let (mut database, _) = database(from(border - 4), from(border - 4));
        let packet = udp(V4, b"far");
        let sealed: Vec<_> = (0..8).map(|_| seal(&mut database, &packet).unwrap().1).collect();
        for at in [6, 1, 0, 7, 5, 2, 4, 3] {
            let (arrival, opened) = open(&mut database, &sealed[at]).unwrap();
            assert_eq!(opened, packet);
            let Arrival::Opened(Opened { number, .. }) = arrival else {
                panic!("a packet");
            };
            assert_eq!(number, border - 4 + at as u64);
        }
    }
}

#[test]
fn a_successor_goes_on_beyond_the_numbers_of_its_predecessor() {
    let (mut database, id) = database(
        parameters(Suite::Aes128Gcm16, Mode::Transport),
        parameters(Suite::Aes128Gcm16, Mode::Transport),
    );
    let packet = udp(V4, b"moved");
    seal(&mut database, &packet).unwrap();
    let mut moved = parameters(Suite::Aes128Gcm16, Mode::Transport);
    moved.first_number = database.outbound(id).unwrap().next_number().unwrap() + 1000;
    let moved = OutboundAssociation::new(moved, NOW).unwrap();
    assert!(database.replace_outbound(id, moved).is_some());
    let (sealed, bytes) = seal(&mut database, &packet).unwrap();
    assert_eq!(sealed.number, 1002);
    assert!(open(&mut database, &bytes).is_ok());
}

#[test]
fn a_lifetime_ends_softly_and_then_hard() {
    let limited = || {
        let mut parameters = parameters(Suite::Aes128Gcm16, Mode::Transport);
        let packets = Limit { soft: Some(2), hard: Some(3) };
        parameters.lifetime = Lifetime { packets, ..Lifetime::default() };
        parameters
    };
    let (mut database, _) = database(limited(), limited());
    let packet = udp(V4, b"short");
    for expected in [false, true, false] {
        let (sealed, bytes) = seal(&mut database, &packet).unwrap();
        assert_eq!(sealed.soft_expired, expected);
        let Arrival::Opened(opened) = open(&mut database, &bytes).unwrap().0 else {
            panic!("a packet");
        };
        assert_eq!(opened.soft_expired, expected);
    }
    assert_eq!(seal(&mut database, &packet), Err(SealError::Expired));
    let mut other = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    let bytes: Vec<_> = (0..4).map(|_| seal(&mut other, &packet).unwrap().1).collect();
    assert_eq!(open(&mut database, &bytes[3]), Err(OpenError::Expired));
    let statistics = database.statistics();
    assert_eq!((statistics.out_expired, statistics.in_expired), (1, 1));
}

#[test]
fn a_dummy_is_opened_and_tells_that_it_is_one() {
    for mode in modes() {
        let (mut database, id) =
            database(parameters(Suite::Aes128Gcm16, mode), parameters(Suite::Aes128Gcm16, mode));
        let packet = udp(V4, b"nothing");
        let mut memory = room(&packet);
        let mut buffer = PacketBuffer::with_copy(&mut memory, &packet).unwrap();
        let association = database.outbound_mut(id).unwrap();
        association.seal_dummy(&mut buffer, NOW).unwrap();
        let bytes = buffer.packet().to_vec();
        let Arrival::Opened(opened) = open(&mut database, &bytes).unwrap().0 else {
            panic!("a packet");
        };
        assert!(opened.dummy);
        assert_eq!(database.statistics().dummies, 1);
        assert_eq!(open(&mut database, &bytes), Err(OpenError::Replay));
    }
}

#[test]
fn traffic_flow_padding_is_taken_off() {
    // In transport mode: what follows a datagram within its IP packet.
    let mut database = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    let datagram = udp(V4, b"short");
    let padded = ip(V4.0, V4.1, 17, &[&datagram[20..], &[0; 100][..]].concat());
    let (_, bytes) = seal(&mut database, &padded).unwrap();
    assert_eq!(open(&mut database, &bytes).unwrap().1, datagram);
    // In tunnel mode: what follows the inner packet. A tunnel's packet is also what transport mode
    // makes of IP in IP.
    let (mut database, _) = packets::database(
        parameters(Suite::Aes128Gcm16, Mode::Transport),
        parameters(Suite::Aes128Gcm16, tunnel_v4()),
    );
    let inner = tcp(V4, 1, 0x18, b"inside");
    let padded = ip("192.0.2.1", "192.0.2.2", 4, &[&inner[..], &[0; 100]].concat());
    let (_, bytes) = seal(&mut database, &padded).unwrap();
    assert_eq!(open(&mut database, &bytes).unwrap().1, inner);
}

#[test]
fn a_tunnel_takes_only_whole_packets_of_the_version_that_it_names() {
    let inner = tcp(V4, 1, 0x18, b"inside");
    let cut = &inner[..inner.len() - 1];
    for (protocol, payload) in [(41, &inner[..]), (6, &inner[..]), (4, cut), (4, b"")] {
        let (mut database, _) = database(
            parameters(Suite::Aes128Gcm16, Mode::Transport),
            parameters(Suite::Aes128Gcm16, tunnel_v4()),
        );
        let outer = ip("192.0.2.1", "192.0.2.2", protocol, payload);
        let (_, bytes) = seal(&mut database, &outer).unwrap();
        assert_eq!(open(&mut database, &bytes), Err(OpenError::Inner));
        assert_eq!(database.statistics().in_inner, 1);
    }
}

#[test]
fn an_outer_header_has_what_rfc_4301_says() {
    let mut inner = udp(V4, b"marked");
    inner[1] = (46 << 2) | 0b10;
    inner[6] = 0;
    inner[10..12].fill(0);
    let checksum = internet_checksum(&[&inner[..20]]);
    inner[10..12].copy_from_slice(&checksum.to_be_bytes());
    let Mode::Tunnel(mut header) = tunnel_v4() else {
        panic!("a tunnel");
    };
    for (dscp, dont_fragment, class, flags) in [
        (None, DontFragment::Copy, (46 << 2) | 0b10, 0),
        (Some(10), DontFragment::Set, (10 << 2) | 0b10, 0x40),
        (Some(0), DontFragment::Clear, 0b10, 0),
    ] {
        header.dscp = dscp;
        header.dont_fragment = dont_fragment;
        let mut database = plain_database(Suite::Aes128Gcm16, Mode::Tunnel(header));
        let (_, mut outer) = seal(&mut database, &inner).unwrap();
        assert_eq!((outer[1], outer[6], outer[8]), (class, flags, 64));
        assert_eq!(outer[12..20], [192, 0, 2, 1, 192, 0, 2, 2]);
        assert_eq!(internet_checksum(&[&outer[..20]]), 0);
        // A router marks congestion.
        outer[1] |= 0b11;
        let opened = open(&mut database, &outer).unwrap().1;
        assert_eq!(opened[1], (46 << 2) | 0b11);
        assert_eq!(internet_checksum(&[&opened[..20]]), 0);
        assert_eq!(opened[20..], inner[20..]);
    }
}

#[test]
fn esp_goes_before_the_last_destination_options_of_ipv6() {
    let mut database = plain_database(Suite::NullHmacSha256, Mode::Transport);
    let udp = udp(V6, b"optional");
    // Hop-by-hop options, then destination options, then UDP.
    let chain = [&[60, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0], &udp[40..]].concat();
    let packet = ip(V6.0, V6.1, 0, &chain);
    let (_, bytes) = seal(&mut database, &packet).unwrap();
    assert_eq!(bytes[6], 0, "hop-by-hop options come first");
    assert_eq!(bytes[40], 50, "ESP follows them");
    assert_eq!(bytes[48..52], SPI.to_be_bytes());
    assert_eq!(bytes[56..64], chain[8..16], "the options are protected");
    assert_eq!(bytes[bytes.len() - 17], 60);
    assert_eq!(open(&mut database, &bytes).unwrap().1, packet);
}

#[test]
fn options_of_ipv4_stay_in_the_header() {
    let mut database = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    let mut packet = udp(V4, b"optional");
    // Router alert.
    packet.splice(20..20, [148, 4, 0, 0]);
    packet[0] = 0x46;
    let length = u16::try_from(packet.len()).unwrap().to_be_bytes();
    packet[2..4].copy_from_slice(&length);
    packet[10..12].fill(0);
    let checksum = internet_checksum(&[&packet[..24]]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    let (_, bytes) = seal(&mut database, &packet).unwrap();
    assert_eq!((bytes[9], &bytes[20..24]), (50, &[148, 4, 0, 0][..]));
    assert_eq!(open(&mut database, &bytes).unwrap().1, packet);
}

#[test]
fn a_fragment_is_sealed_in_tunnel_mode_alone() {
    let mut fragment = udp(V4, b"first part");
    fragment[6] = 0x20;
    fragment[10..12].fill(0);
    let checksum = internet_checksum(&[&fragment[..20]]);
    fragment[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut transport = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    assert_eq!(seal(&mut transport, &fragment), Err(SealError::Fragment));
    let mut tunnel = plain_database(Suite::Aes128Gcm16, tunnel_v6());
    let (_, bytes) = seal(&mut tunnel, &fragment).unwrap();
    assert_eq!(open(&mut tunnel, &bytes).unwrap().1, fragment);
}

#[test]
fn a_fragment_of_esp_is_refused() {
    let mut database = plain_database(Suite::Aes128Gcm16, Mode::Transport);
    let (_, mut bytes) = seal(&mut database, &udp(V4, b"whole")).unwrap();
    bytes[6] = 0x20;
    assert_eq!(open(&mut database, &bytes), Err(OpenError::Fragment));
    assert_eq!(database.statistics().in_fragments, 1);
}

#[test]
fn too_little_room_uses_no_number() {
    let (mut database, id) = database(
        parameters(Suite::Aes128Gcm16, Mode::Transport),
        parameters(Suite::Aes128Gcm16, Mode::Transport),
    );
    let packet = udp(V4, b"tight");
    let mut memory = packet.clone();
    let range = 0..memory.len();
    let mut buffer = PacketBuffer::new(&mut memory, range).unwrap();
    assert_eq!(database.seal(&mut buffer, NOW), Err(SealError::NoRoom));
    assert_eq!(buffer.packet(), packet);
    assert_eq!(database.outbound(id).unwrap().next_number(), Some(1));
}

#[test]
fn the_longest_packet_fits_and_one_byte_more_does_not() {
    for suite in Suite::ALL {
        for mode in modes() {
            for in_udp in [false, true] {
                let mut parameters = parameters(suite, mode);
                parameters.encapsulation = in_udp.then(Encapsulation::default);
                let (mut database, id) = database(parameters, packets::parameters(suite, mode));
                for mtu in 576..584 {
                    let longest = database.outbound(id).unwrap().longest_packet(mtu);
                    let payload = vec![0; longest - 28];
                    let (_, bytes) = seal(&mut database, &udp(V4, &payload)).unwrap();
                    assert!(bytes.len() <= mtu, "{suite:?} {mode:?} {mtu}");
                    let payload = vec![0; longest - 27];
                    let (_, bytes) = seal(&mut database, &udp(V4, &payload)).unwrap();
                    assert!(bytes.len() > mtu, "{suite:?} {mode:?} {mtu}");
                }
            }
        }
    }
}

#[test]
fn a_packet_longer_than_its_length_field_is_refused() {
    let mut database = plain_database(Suite::Aes128Gcm16, tunnel_v4());
    let packet = udp(V4, &vec![0; 65_535 - 28]);
    let refused = seal(&mut database, &packet);
    assert!(matches!(refused, Err(SealError::TooBig { limit }) if limit < 65_535));
}

#[test]
fn udp_around_esp_is_demanded_and_refused_by_the_association() {
    let mut outbound = parameters(Suite::Aes128Gcm16, Mode::Transport);
    outbound.encapsulation = Some(Encapsulation::default());
    let inbound = parameters(Suite::Aes128Gcm16, Mode::Transport);
    let (mut database, _) = database(outbound, inbound);
    let (_, bytes) = seal(&mut database, &udp(V6, b"around")).unwrap();
    assert_eq!(bytes[6], 17);
    assert!(packets::is_checksum_right(&bytes, 40, 17), "IPv6 has no UDP without");
    assert_eq!(open(&mut database, &bytes), Err(OpenError::Encapsulation));
    assert_eq!(database.statistics().in_encapsulation, 1);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let with = |change: fn(&mut smt_esp::Parameters)| {
        let mut parameters = parameters(Suite::Aes128Gcm16, Mode::Transport);
        change(&mut parameters);
        InboundAssociation::new(parameters, NOW).err()
    };
    assert_eq!(with(|_| ()), None);
    assert_eq!(with(|p| p.spi = 255), Some(ParametersError::Spi(255)));
    let first = with(|p| p.first_number = 1 << 32);
    assert_eq!(first, Some(ParametersError::FirstNumber(1 << 32)));
    assert_eq!(with(|p| p.replay_window = 31), Some(ParametersError::ReplayWindow(31)));
    let mixed = with(|p| {
        let (v4, v6) = ("192.0.2.1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        p.mode = Mode::Tunnel(smt_esp::TunnelHeader::new(v4, v6));
    });
    assert_eq!(mixed, Some(ParametersError::TunnelAddresses));
}

#[test]
fn a_packet_of_another_flow_is_refused_once_it_is_opened() {
    let mut inbound = parameters(Suite::Aes128Gcm16, tunnel_v4());
    inbound.selectors =
        Selectors { remote: Addresses::one("10.0.0.7".parse().unwrap()), ..Selectors::default() };
    let (mut database, _) = database(parameters(Suite::Aes128Gcm16, tunnel_v4()), inbound);
    let (_, bytes) = seal(&mut database, &udp(V4, b"another's")).unwrap();
    assert_eq!(open(&mut database, &bytes), Err(OpenError::Selectors));
    let (_, bytes) = seal(&mut database, &udp(("10.0.0.7", V4.1), b"its own")).unwrap();
    assert!(open(&mut database, &bytes).is_ok());
}
