// SPDX-License-Identifier: Apache-2.0 OR MIT
use super::*;
use crate::net::packet::{HostId, Protocol};
use smt_wire::{DataHeader, MessageId, PacketType, SessionIndex, Unavailable, VERSION};

fn packet(number: u8) -> Packet {
    Packet {
        from: HostId(0),
        to: HostId(1),
        bytes: Bytes::from(vec![number; 100]),
        priority: 0,
        is_marked: false,
        is_trimmed: false,
        entropy: 0,
        protocol: Protocol::Smt,
    }
}

/// The packets that arrive of 200, one each microsecond, while a fault strikes half of them.
fn arrivals(kind: FaultKind, chance: u32, extent: u64) -> (Vec<(Packet, u64)>, u64) {
    let strikes = Rc::new(RefCell::new(Strikes::default()));
    let fault = LinkFault {
        kind,
        from: Time::default(),
        until: Time::from_nanos(1_000_000),
        pair: None,
        chance,
        extent,
    };
    let mut links = FaultyLinks::new(vec![fault], Random::new(7), Rc::clone(&strikes));
    let mut out = Vec::new();
    for number in 0..200 {
        let now = Time::from_nanos(u64::from(number) * 1_000);
        links.pass(now, packet(number), &mut out);
    }
    let count = strikes.borrow().of(kind);
    (out, count)
}

const HALF: u32 = 500_000;

#[test]
fn loss_partition_and_types_take_packets() {
    let (left, struck) = arrivals(FaultKind::Loss, HALF, 0);
    assert!(left.len() as u64 == 200 - struck && (60..140).contains(&struck));
    assert!(arrivals(FaultKind::Partition, 1_000_000, 0).0.is_empty());
    assert!(arrivals(FaultKind::Shrink, 0, 99).0.is_empty());
    assert_eq!(arrivals(FaultKind::Shrink, 0, 100).0.len(), 200);
}

#[test]
fn a_burst_takes_packets_in_a_row_and_ends() {
    let (left, struck) = arrivals(FaultKind::BurstLoss, 20_000, 30);
    assert_eq!(left.len() as u64, 200 - struck);
    let gaps: Vec<u8> = left
        .windows(2)
        .map(|pair| pair[1].0.bytes[0] - pair[0].0.bytes[0] - 1)
        .filter(|gap| *gap > 0)
        .collect();
    let longest = gaps.iter().max().unwrap();
    assert!(gaps.len() > 1 && (2..=30).contains(longest), "{gaps:?}");
}

#[test]
fn a_packet_is_lost_if_one_of_the_type_is_in_it() {
    // Two of one type, in a row.
    let mut bytes = vec![0; 2 * Unavailable::LEN];
    for place in bytes.chunks_mut(Unavailable::LEN) {
        let unavailable = Unavailable { destination: SessionIndex(1), code: 1 };
        unavailable.emit(VERSION, place.try_into().unwrap());
    }
    let two = Packet { bytes: Bytes::from(bytes), ..packet(0) };
    let fault = |kind: PacketType| LinkFault {
        kind: FaultKind::OneTypeLoss,
        from: Time::default(),
        until: Time::from_nanos(1),
        pair: None,
        chance: 1_000_000,
        extent: kind as u64,
    };
    let passes = |of| {
        let mut links = FaultyLinks::new(vec![fault(of)], Random::new(7), Rc::default());
        let mut out = Vec::new();
        links.pass(Time::default(), two.clone(), &mut out);
        out.len() == 1
    };
    assert!(!passes(PacketType::Unavailable) && passes(PacketType::Reset));
}

/// DATA of this offset.
fn data(offset: u32) -> Packet {
    let header = DataHeader {
        epoch: 0,
        retransmit: false,
        session: SessionIndex(1),
        id: MessageId(2),
        message_length: 10_000,
        offset,
    };
    let mut bytes = [0; DataHeader::LEN + 1];
    if let Some(place) = bytes.first_chunk_mut() {
        header.emit(VERSION, place);
    }
    Packet { bytes: Bytes::copy_from_slice(&bytes), ..packet(0) }
}

#[test]
fn one_direction_is_lost_or_the_ends_of_messages_in_it() {
    let passes = |kind, packet: &Packet| {
        let fault = LinkFault {
            kind,
            from: Time::default(),
            until: Time::from_nanos(1),
            pair: Some((HostId(0), HostId(1))),
            chance: 1_000_000,
            extent: 1_200,
        };
        let mut links = FaultyLinks::new(vec![fault], Random::new(7), Rc::default());
        let mut out = Vec::new();
        links.pass(Time::default(), packet.clone(), &mut out);
        out.len() == 1
    };
    let back = |packet: Packet| Packet { from: packet.to, to: packet.from, ..packet };
    let kind = FaultKind::HalfPartition;
    assert!(!passes(kind, &packet(1)) && passes(kind, &back(packet(1))));
    let kind = FaultKind::EndLoss;
    assert!(passes(kind, &packet(1)) && passes(kind, &data(1_199)));
    assert!(!passes(kind, &data(1_200)) && passes(kind, &back(data(1_200))));
}

#[test]
fn nothing_passes_a_partition_whatever_else_strikes() {
    let fault = |kind, extent| LinkFault {
        kind,
        from: Time::default(),
        until: Time::from_nanos(1),
        pair: None,
        chance: 1_000_000,
        extent,
    };
    let beside = [FaultKind::Duplicate, FaultKind::Forge, FaultKind::Replay];
    for cut in [(FaultKind::Partition, 0), (FaultKind::Shrink, 99)] {
        let faults = beside.map(|kind| fault(kind, 10));
        let faults = faults.into_iter().chain([fault(cut.0, cut.1)]).collect();
        let mut links = FaultyLinks::new(faults, Random::new(7), Rc::default());
        let mut out = Vec::new();
        (0..9).for_each(|number| links.pass(Time::default(), packet(number), &mut out));
        assert!(out.is_empty(), "{cut:?}");
    }
}

#[test]
fn others_change_delay_or_add_packets() {
    let (all, struck) = arrivals(FaultKind::Corrupt, HALF, 0);
    let changed = all.iter().filter(|(p, _)| p.bytes.iter().any(|b| *b != p.bytes[50]));
    assert!(all.len() == 200 && changed.count() as u64 >= struck - 2);
    let (all, _) = arrivals(FaultKind::Truncate, HALF, 0);
    assert!(all.iter().any(|(p, _)| p.bytes.len() < 100));
    let (all, struck) = arrivals(FaultKind::Delay, HALF, 777);
    assert_eq!(all.iter().filter(|(_, later)| *later == 777).count() as u64, struck);
    let (all, struck) = arrivals(FaultKind::Duplicate, HALF, 10);
    assert_eq!(all.len() as u64, 200 + struck);
    let (all, _) = arrivals(FaultKind::Replay, HALF, 10);
    assert!(all.len() > 240);
    let (all, struck) = arrivals(FaultKind::Forge, HALF, 10);
    assert_eq!(all.len() as u64, 200 + struck);
    let (all, _) = arrivals(FaultKind::Reorder, HALF, 5_000);
    assert!(all.iter().any(|(_, later)| *later > 1_000));
}

#[test]
fn a_fault_strikes_in_its_time_and_between_its_hosts() {
    let strikes = Rc::new(RefCell::new(Strikes::default()));
    let fault = LinkFault {
        kind: FaultKind::Partition,
        from: Time::from_nanos(100),
        until: Time::from_nanos(200),
        pair: Some((HostId(1), HostId(0))),
        chance: 1_000_000,
        extent: 0,
    };
    let mut links = FaultyLinks::new(vec![fault], Random::new(7), strikes);
    let mut passes = |at, to| {
        let mut out = Vec::new();
        let to = HostId(to);
        links.pass(Time::from_nanos(at), Packet { to, ..packet(1) }, &mut out);
        !out.is_empty()
    };
    let passed = [passes(99, 1), passes(100, 1), passes(150, 2), passes(200, 1)];
    assert_eq!(passed, [true, false, true, true]);
}
