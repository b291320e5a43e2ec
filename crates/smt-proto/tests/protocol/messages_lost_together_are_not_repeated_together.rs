// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waits differ between sessions (SPEC §9.3): what fills a short queue at once, and is lost, would
//! else fill it at once again.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use smt_wire::PacketType;

use super::support::node::replies_of_asked_length;
use super::support::{Verdict, World, body, ms, us};

const CLIENTS: usize = 16;

/// When questions of this type leave in `time` that nobody hears, counted from now: a moment for
/// each session.
fn moments(world: &mut World, asked: PacketType, time: RangeInclusive<u64>) -> BTreeSet<u64> {
    let now = world.now;
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.is_recording = true;
    world.run_for(ms(*time.end()));
    let questions = world.sent.iter().filter(|sent| sent.has(asked));
    let after: Vec<_> = questions.map(|sent| sent.at.since(now)).collect();
    assert_eq!(after.len(), CLIENTS);
    assert!(after.iter().all(|after| *after >= ms(*time.start())));
    after.iter().map(|after| after.as_micros() as u64).collect()
}

#[test]
fn one_way_messages_lost_together_are_not_repeated_together() {
    let (mut world, sessions) = World::star(CLIENTS);
    world.rule = Box::new(|_, _| Verdict::Drop);
    for (client, session) in sessions.into_iter().enumerate() {
        world.send_one_way(client + 1, session, body(1, 10_000));
    }
    let moments = moments(&mut world, PacketType::NeedAck, 5..=7);
    assert!(moments.len() >= CLIENTS - 2, "{moments:?}");
}

#[test]
fn calls_lost_together_to_fast_hosts_are_not_repeated_together() {
    let (mut world, sessions) = World::star(CLIENTS);
    world.rule = Box::new(|_, _| Verdict::Drop);
    for (client, session) in sessions.into_iter().enumerate() {
        world.call(client + 1, session, body(1, 10_000));
    }
    let moments = moments(&mut world, PacketType::Resend, 5..=7);
    assert!(moments.len() >= CLIENTS - 2, "{moments:?}");
}

/// And a server that is to keep many replies asks one session after the other.
#[test]
fn unacknowledged_replies_are_not_asked_about_together() {
    let (mut world, sessions) = World::star(CLIENTS);
    world.nodes[0].application = replies_of_asked_length();
    for (client, session) in sessions.into_iter().enumerate() {
        let asked = 10_000_u32.to_be_bytes().to_vec();
        world.call(client + 1, session, asked.into());
    }
    world.rule = Box::new(|sent, _| match sent.from {
        0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    world.run_for(us(500));
    let moments = moments(&mut world, PacketType::NeedAck, 1..=3);
    assert!(moments.len() >= CLIENTS - 2, "{moments:?}");
}
