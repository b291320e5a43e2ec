// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer whose messages come slowly has its share of what is granted at once, and no more; where
//! nobody else wants grants, it has what its path can use (SPEC §9.2).

use std::collections::BTreeMap;
use std::time::Duration;

use smt_proto::{OneWayOutcome, Time};
use smt_wire::MessageId;

use super::support::{Datagram, Verdict, World, body, ms};

/// Each message of some nodes comes at so many bytes a millisecond, whatever else they send.
fn slowly(
    bytes_per_milli: u64,
    is_slow: impl Fn(usize) -> bool + 'static,
) -> impl FnMut(&Datagram, &mut Vec<Datagram>) -> Verdict + 'static {
    let mut free: BTreeMap<(usize, MessageId), Time> = BTreeMap::new();
    move |datagram, _| {
        let Some(data) = datagram.data().filter(|_| is_slow(datagram.from)) else {
            return Verdict::Deliver;
        };
        let message = (datagram.from, data.header.id);
        let free = free.entry(message).or_insert(datagram.at);
        let start = datagram.at.max(*free);
        let nanos = data.payload.len() as u64 * 1_000_000 / bytes_per_milli;
        *free = start + Duration::from_nanos(nanos);
        Verdict::Delay(free.since(datagram.at))
    }
}

/// Bytes of the upload of a client that is alone, or beside these messages of another one, each of
/// which comes at so many bytes a millisecond. How long it takes.
fn upload_beside(messages: usize, bytes_per_milli: u64) -> Duration {
    let (mut world, sessions) = World::star(2);
    // A packet that is held back must not hold up the packets behind it.
    world.rate = 0;
    world.rule = Box::new(slowly(bytes_per_milli, |node| node == 1));
    for number in 0..messages {
        world.send_one_way(1, sessions[0], body(number as u64, 1_000_000));
    }
    world.run_for(ms(700));
    let began = world.now;
    let upload = world.send_one_way(2, sessions[1], body(99, 8_000_000));
    assert_eq!(world.one_way_outcome(2, upload), OneWayOutcome::Delivered);
    world.now.since(began)
}

#[test]
fn an_upload_gets_on_beside_slow_messages() {
    let alone = upload_beside(0, 1);
    for (messages, bytes_per_milli) in [
        (1, 50),
        (1, 1_000),
        (3, 600),
        (8, 50),
        (8, 556),
        (12, 100),
        (12, 1_000),
        (64, 100),
        (64, 600),
    ] {
        let beside = upload_beside(messages, bytes_per_milli);
        assert!(
            beside <= 2 * alone,
            "{messages} messages at {bytes_per_milli} B/ms: {beside:?} instead of {alone:?}"
        );
    }
}

/// How long an upload takes with nobody beside it, at so many bytes a microsecond and with this
/// round trip.
fn upload_over(bytes: usize, rate: u64, round_trip: Duration) -> Duration {
    let (mut world, sessions) = World::star(1);
    world.rate = rate;
    world.latency = round_trip / 2;
    let began = world.now;
    let upload = world.send_one_way(1, sessions[0], body(1, bytes));
    assert_eq!(world.one_way_outcome(1, upload), OneWayOutcome::Delivered);
    world.now.since(began)
}

/// Two records take longer than 5 ms at these rates, and are a third of what the path holds, or
/// less.
#[test]
fn an_upload_alone_keeps_a_slow_path_with_a_long_round_trip_busy() {
    for (rate, round_trip) in [(1, ms(100)), (2, ms(50)), (2, ms(100))] {
        // Both have the bytes that are asked for in vain until the path is known.
        let short = upload_over(4_000_000, rate, round_trip);
        let took = upload_over(8_000_000, rate, round_trip) - short;
        let on_the_link = Duration::from_micros(4_000_000 / rate);
        assert!(
            took <= on_the_link * 6 / 5,
            "{took:?} instead of {on_the_link:?} at {rate} B/us and {round_trip:?}"
        );
    }
}

/// Twelve messages that come slowly have fewer bytes left than the oldest, all the time.
#[test]
fn the_oldest_message_is_not_starved_although_all_come_slowly() {
    let (mut world, sessions) = World::star(5);
    world.rate = 0;
    world.rule = Box::new(slowly(2_000, |node| node > 0));
    world.send_one_way(1, sessions[0], body(1, 8_000_000));
    world.run_for(ms(1));
    for number in 0..12 {
        let client = 2 + number % 4;
        world.send_one_way(client, sessions[client - 1], body(number as u64, 2_500_000));
    }
    world.is_recording = true;
    world.run_for(ms(200));
    let before = world.sent.len();
    world.run_for(ms(1_000));
    // The ends of what each message has sent, summed up.
    let sent = |datagrams: &[Datagram], is_oldest: bool| -> u32 {
        let mut ends: BTreeMap<(usize, MessageId), u32> = BTreeMap::new();
        for datagram in datagrams.iter().filter(|sent| sent.from > 0) {
            if let Some(data) = datagram.data().filter(|_| is_oldest == (datagram.from == 1)) {
                let end = ends.entry((datagram.from, data.header.id)).or_default();
                *end = (*end).max(data.header.offset + data.payload.len() as u32);
            }
        }
        ends.values().sum()
    };
    let [oldest, others] = [true, false]
        .map(|is_oldest| sent(&world.sent, is_oldest) - sent(&world.sent[..before], is_oldest));
    let (least, most) = (others / 25, others / 15);
    assert!((least..=most).contains(&oldest), "{oldest} beside {others}");
}
