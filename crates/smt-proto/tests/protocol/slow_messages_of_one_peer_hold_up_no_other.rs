// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer whose messages come slowly has its share of what is granted at once, and no more (SPEC §9.2).

use std::collections::BTreeMap;
use std::time::Duration;

use smt_proto::{OneWayOutcome, Time};
use smt_wire::MessageId;

use super::support::{Verdict, World, body, ms};

/// Bytes of the upload of a client that is alone, or beside these messages of another one, each of which comes at so many
/// bytes a millisecond. How long it takes.
fn upload_beside(messages: usize, bytes_per_milli: u64) -> Duration {
    let (mut world, sessions) = World::star(2);
    // What is held back must not hold up what comes behind it.
    world.rate = 0;
    let mut free: BTreeMap<MessageId, Time> = BTreeMap::new();
    world.rule = Box::new(move |datagram, _| {
        let Some(data) = datagram.data().filter(|_| datagram.from == 1) else {
            return Verdict::Deliver;
        };
        let free = free.entry(data.header.id).or_insert(datagram.at);
        let start = datagram.at.max(*free);
        let nanos = data.payload.len() as u64 * 1_000_000 / bytes_per_milli;
        *free = start + Duration::from_nanos(nanos);
        Verdict::Delay(free.since(datagram.at))
    });
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
fn an_upload_gets_on_beside_them() {
    let alone = upload_beside(0, 1);
    for (messages, bytes_per_milli) in [
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
