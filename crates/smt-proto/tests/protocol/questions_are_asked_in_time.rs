// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When a side asks that waits for bytes or for an acknowledgement (SPEC §9.3, §9.4, §9.5).

use std::time::Duration;

use smt_proto::{Config, Time};
use smt_wire::{Body, Packet, PacketType, Resend, SessionIndex};

use super::support::configs::ethernet;
use super::support::{Answer, Verdict, World, body, ms};

/// A session that outlives long silence.
fn patient() -> (World, SessionIndex) {
    let mut config = ethernet();
    config.silence_max = Duration::from_secs(1_000);
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.is_recording = true;
    (world, session)
}

/// The times at which a node has sent packets of this type.
fn times(world: &World, from: usize, kind: PacketType) -> Vec<Time> {
    let sent = world.sent.iter().filter(|sent| sent.from == from && sent.has(kind));
    sent.map(|sent| sent.at).collect()
}

/// The questions were asked after intervals that begin within a quarter of `least` and double to
/// `most`, where a timer may be late by a little.
#[track_caller]
fn assert_doubled(begun: Time, asked: &[Time], least: Duration, most: Duration) {
    let mut before = begun;
    let mut waits = asked.iter().map(|at| at.since(std::mem::replace(&mut before, *at)));
    let mut expected = waits.next().unwrap();
    assert!((least..=least * 5 / 4 + GRAIN).contains(&expected), "{expected:?} before the first");
    for wait in waits {
        expected = (2 * expected).min(most);
        assert!(wait + GRAIN * 2 >= expected && wait <= expected + GRAIN * 2, "{asked:?}");
    }
}

/// Timers of a session with few messages are not later than that.
const GRAIN: Duration = Duration::from_micros(200);

/// Nothing of the server arrives: the reply is asked for, and whether the one-way message is there.
// SMT [9.3-2], [9.3-3], [9.3-5], [9.5-2]
#[test]
fn calls_and_one_way_messages_are_asked_about_after_intervals_that_double_to_half_a_second() {
    for (is_call, kind) in [(true, PacketType::Resend), (false, PacketType::NeedAck)] {
        let (mut world, session) = patient();
        world.rule = Box::new(|datagram, _| match datagram.from {
            1 => Verdict::Drop,
            _ => Verdict::Deliver,
        });
        let begun = world.now;
        let rpc = match is_call {
            true => world.call(0, session, body(1, 100)),
            false => world.send_one_way(0, session, body(1, 100)),
        };
        world.run_for(ms(5_000));
        let asked = times(&world, 0, kind);
        assert!((10..=20).contains(&asked.len()), "{asked:?}");
        assert_doubled(begun, &asked, ms(5), ms(500));
        let of_client = world.sent.iter().filter(|sent| sent.from == 0);
        for packet in of_client.flat_map(|sent| sent.packets()) {
            if let Packet::Control(control) = packet
                && let Body::Resend(list) = control.body
            {
                let asked: Vec<Resend> = list.iter().collect();
                let whole = Resend { id: rpc.id, offset: 0, length: Resend::TO_THE_END };
                assert_eq!(asked, [whole]);
            }
        }
    }
}

/// The caller's own questions do not arrive: the answer to them would be the same.
// SMT [9.3-1]
#[test]
fn a_receiver_asks_by_itself_for_what_is_missing_of_a_request() {
    let (mut world, session) = patient();
    world.rule = Box::new(|datagram, _| match datagram.data() {
        _ if datagram.from == 1 => Verdict::Deliver,
        Some(data) if data.header.offset == 0 || data.header.retransmit => Verdict::Deliver,
        _ => Verdict::Drop,
    });
    let begun = world.now + world.latency;
    let rpc = world.call(0, session, body(1, 5_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 5_000)));
    let asked = times(&world, 1, PacketType::Resend);
    assert_eq!(asked.len(), 1, "{}", world.trace());
    assert_doubled(begun, &asked, ms(5), ms(500));
}

/// A caller that has the reply, and of which nothing arrives.
// SMT [9.4-4]
#[test]
fn a_reply_is_asked_about_twenty_times_after_intervals_that_double_to_a_second() {
    let (mut world, session) = patient();
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(2, 5_000)));
    world.call(0, session, body(1, 100));
    world.rule = Box::new(|datagram, _| match datagram.from {
        0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    let begun = world.now + world.latency;
    world.run_for(ms(60_000));
    let asked = times(&world, 1, PacketType::NeedAck);
    assert_eq!(asked.len(), 20);
    assert_doubled(begun, &asked, ms(2), ms(1_000));
    assert_eq!(world.nodes[1].endpoint.served_len(), 0);
}

/// The end of the reply stays lost, and the client asks for it again and again.
// SMT [9.4-11]
#[test]
fn answers_to_resend_do_not_start_the_questions_about_a_reply_afresh() {
    let (mut world, session) = patient();
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(2, 5_000)));
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if datagram.from == 1 && data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    world.call(0, session, body(1, 100));
    world.run_for(ms(5_000));
    assert!(times(&world, 0, PacketType::Resend).len() > 10, "{}", world.trace());
    let asked = times(&world, 1, PacketType::NeedAck);
    // The answer to the first is a GRANT that advances: the beginning has come.
    let begun = asked[0] + 2 * world.latency;
    assert_doubled(begun, &asked[1..], ms(2), ms(1_000));
}

/// The bundle asks for all that has left in it but requests, whose replies are asked for.
// SMT [5.7-35]
#[test]
fn requests_alone_are_asked_about_among_the_members_of_a_bundle() {
    let mut config = Config::default();
    config.silence_max = Duration::from_secs(1_000);
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.is_recording = true;
    world.rule = Box::new(|_, _| Verdict::Drop);
    let (now, client) = (world.now, &mut world.nodes[0].endpoint);
    for number in 0..3 {
        client.send_one_way(now, session, body(number, 64), None).unwrap();
    }
    let called = client.call(now, session, body(3, 64), None).unwrap().id;
    world.run_for(ms(1_000));
    assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 1);
    let bundle = world.sent[0].data().unwrap().header.id;
    let (mut about_bundle, mut about_call) = (0, 0);
    for packet in world.sent.iter().flat_map(|sent| sent.packets()) {
        let Packet::Control(control) = packet else { continue };
        match control.body {
            Body::NeedAck(list) => {
                assert!(list.iter().all(|id| id == bundle), "{control:?}");
                about_bundle += 1;
            }
            Body::Resend(list) => {
                assert!(list.iter().all(|asked| asked.id == called), "{control:?}");
                about_call += 1;
            }
            _ => {}
        }
    }
    assert!(about_bundle > 5 && about_call > 5, "{about_bundle}, {about_call}");
}
