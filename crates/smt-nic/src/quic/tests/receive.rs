// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets are opened, or left as they came.

use super::*;

#[test]
fn packets_of_every_suite_are_opened_and_repetitions_are_told() {
    for suite in SUITES {
        let mut pair = Pair::new(suite);
        for number in [0, 1, 5, 3, 1_000_000, 999_999] {
            let packet = pair.sealed(number, 0);
            let opened = pair.open(&packet);
            assert_eq!((opened.number, opened.generation), (number, 0));
            assert_eq!(opened.freshness, Freshness::New);
            assert_eq!(pair.open(&packet).freshness, Freshness::Duplicate);
        }
        assert_eq!(pair.here.counters().duplicates, 6);
    }
}

#[test]
fn a_changed_packet_goes_up_as_it_came_and_moves_nothing() {
    let mut pair = Pair::new(Suite::Aes128Gcm);
    let packet = pair.sealed(7, 0);
    for at in 1 + ID.len()..packet.len() {
        let mut changed = packet.clone();
        changed[at] ^= 0x10;
        assert_eq!(pair.receive(&changed), Received::Untouched(Untouched::NotOpened));
    }
    let mut flipped = packet.clone();
    flipped[0] ^= 0x04;
    pair.receive(&flipped);
    assert_eq!(pair.open(&packet).freshness, Freshness::New);
    assert_eq!(pair.here.counters().not_opened, packet.len() as u64 - 8);
}

#[test]
fn long_headers_unknown_ids_and_short_packets_go_up_as_they_came() {
    let mut pair = Pair::new(Suite::Aes128Gcm);
    let packet = pair.sealed(7, 0);
    let mut long = packet.clone();
    long[0] |= 0x80;
    assert_eq!(pair.receive(&long), Received::Untouched(Untouched::LongHeader));
    let mut unknown = packet.clone();
    unknown[1] ^= 1;
    let unknown = pair.receive(&unknown);
    assert_eq!(unknown, Received::Untouched(Untouched::UnknownConnection));
    for length in 0..1 + ID.len() + 4 + 16 {
        let short = Received::Untouched(Untouched::TooShort);
        assert_eq!(pair.receive(&packet[..length]), short, "{length}");
    }
    pair.here.remove(pair.connection);
    let removed = pair.receive(&packet);
    assert_eq!(removed, Received::Untouched(Untouched::UnknownConnection));
    assert_eq!(pair.here.sizes(), (0, 0));
}

#[test]
fn the_integrity_limit_stops_a_connection_and_counts_softwares_failures() {
    let mut pair = Pair::new(Suite::Aes128Gcm);
    let packet = pair.sealed(7, 0);
    let mut changed = packet.clone();
    changed[20] ^= 1;
    let of = pair.here.connections.get_mut(pair.connection).unwrap();
    *of = of.clone().with_limits(10, 3);
    pair.receive(&changed);
    pair.here.count_failures(pair.connection, 1);
    pair.open(&packet);
    pair.receive(&changed);
    let stopped = Received::Untouched(Untouched::IntegrityLimit);
    assert_eq!(pair.receive(&packet), stopped);
}
