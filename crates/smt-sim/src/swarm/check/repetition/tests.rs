// SPDX-License-Identifier: Apache-2.0 OR MIT
use bytes::Bytes;

use super::*;
use crate::net::packet::Protocol;

const SERVER: HostId = HostId(0);
const CLIENT: HostId = HostId(1);

/// DATA of the one message, a byte of content each.
fn data(offset: u32, content: &[u8]) -> Packet {
    let header = DataHeader {
        epoch: 0,
        retransmit: false,
        session: SessionIndex(7),
        id: MessageId(2),
        message_length: 40_000,
        offset,
    };
    let mut bytes = [0; DataHeader::LEN];
    header.emit(smt_wire::VERSION, &mut bytes);
    Packet {
        from: SERVER,
        to: CLIENT,
        bytes: Bytes::from([&bytes, content].concat()),
        priority: 0,
        is_marked: false,
        is_trimmed: false,
        entropy: 0,
        protocol: Protocol::Smt,
    }
}

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// Sends this every so many milliseconds for eight seconds; all of it is lost. Whether that is
/// found, and when.
fn storm(every: u64, packet: &Packet) -> Option<u64> {
    let mut repetition = Repetition::default();
    repetition.departed(at(0), &data(0, &[1; 1_000]));
    repetition.arrived(at(0), &data(0, &[1; 1_000]));
    (0..8_000).step_by(every as usize).find(|millis| {
        repetition.departed(at(*millis), packet);
        repetition.failure().is_some()
    })
}

/// Sends this as often as nothing is found in an instant.
fn sent_until_found(repetition: &mut Repetition, now: Time, packet: &Packet) -> u32 {
    let mut times = 0;
    while repetition.failure().is_none() && times < 1_000 {
        repetition.departed(now, packet);
        times += 1;
    }
    times
}

#[test]
fn the_end_of_a_reply_that_is_repeated_without_back_off_is_found_soon() {
    let end = data(1_000, &[2; 1_000]);
    assert!(storm(2, &end).unwrap() < 60);
    assert!(storm(5, &end).unwrap() < 150);
    assert!(storm(40, &end).unwrap() < 1_500);
}

#[test]
fn repetition_by_both_schedules_is_not_found() {
    let mut repetition = Repetition::default();
    let packet = data(0, &[1; 1_000]);
    let (mut next, mut interval) = (5, 5);
    while next < 60_000 {
        (0..ASKERS).for_each(|_| repetition.departed(at(next), &packet));
        interval = 500.min(interval * 2);
        next += interval;
    }
    assert_eq!(repetition.failure(), None);
}

#[test]
fn questions_come_after_5_ms_and_then_after_twice_as_long_up_to_500() {
    let counts = [0, 4, 5, 14, 15, 315, 634, 635, 1_134, 1_135, 1_635].map(|millis| {
        let time = Duration::from_millis(millis);
        questions(time)
    });
    assert_eq!(counts, [0, 0, 1, 1, 2, 6, 6, 7, 7, 8, 9]);
}

#[test]
fn a_byte_that_comes_for_the_first_time_begins_the_count_anew() {
    let (one, other) = (data(0, &[1; 1_000]), data(1_000, &[2; 1_000]));
    let mut repetition = Repetition::default();
    (0..SENT_AT_LEAST).for_each(|_| repetition.departed(at(0), &other));
    repetition.departed(at(0), &one);
    repetition.arrived(at(0), &one);
    assert_eq!(sent_until_found(&mut repetition, at(0), &other), SENT_AT_LEAST + 1);

    // Not when it comes again.
    let mut repetition = Repetition::default();
    repetition.departed(at(0), &one);
    repetition.arrived(at(0), &one);
    (0..SENT_AT_LEAST).for_each(|_| repetition.departed(at(0), &other));
    repetition.arrived(at(0), &one);
    assert_eq!(sent_until_found(&mut repetition, at(0), &other), 1);
}

#[test]
fn a_byte_is_counted_in_whatever_packets_it_leaves() {
    let mut repetition = Repetition::default();
    for _ in 0..SENT_AT_LEAST / 2 {
        repetition.departed(at(0), &data(0, &[1; 1_000]));
        repetition.departed(at(0), &data(500, &[1; 1_000]));
    }
    assert_eq!(repetition.failure(), None);
    repetition.departed(at(0), &data(999, &[1]));
    let found = repetition.failure().expect("byte 999 left once more");
    assert_eq!(found.checker, Checker::Repetition);
}

#[test]
fn a_forged_packet_excuses_and_so_do_little_memory_and_absence() {
    let (packet, forged) = (data(0, &[1; 1_000]), data(0, &[3; 1_000]));
    let after = |mut repetition: Repetition, comes: &Packet, is_away: bool| {
        repetition.departed(at(0), &packet);
        repetition.arrived(at(0), &packet);
        (0..SENT_AT_LEAST).for_each(|_| repetition.departed(at(0), &packet));
        if is_away {
            repetition.was_away(CLIENT);
        }
        repetition.arrived(at(0), comes);
        sent_until_found(&mut repetition, at(0), &packet)
    };
    let forgetful = || Repetition::new([CLIENT]);
    assert_eq!(after(Repetition::default(), &packet, false), 1);
    assert_eq!(after(Repetition::default(), &forged, false), SENT_AT_LEAST + 1);
    assert_eq!(after(Repetition::default(), &packet, true), SENT_AT_LEAST + 1);
    assert_eq!(after(forgetful(), &packet, false), SENT_AT_LEAST + 1);
}

#[test]
fn each_header_that_a_switch_has_left_excuses_one_time() {
    let packet = data(0, &[1; 1_000]);
    let mut repetition = Repetition::default();
    repetition.departed(at(0), &packet);
    let mut trimmed = packet.clone();
    trimmed.bytes.truncate(DataHeader::LEN);
    trimmed.is_trimmed = true;
    (0..3).for_each(|_| repetition.arrived(at(0), &trimmed));
    assert_eq!(sent_until_found(&mut repetition, at(0), &packet), SENT_AT_LEAST + 3);
}
