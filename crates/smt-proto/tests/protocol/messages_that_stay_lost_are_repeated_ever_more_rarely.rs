// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every question and every answer backs off: a path that loses one part of a message for good gets
//! few repetitions of it, whichever part that is, and in whichever direction (SPEC §9.3, §9.4).

use std::time::Duration;

use smt_record::KeyLimits;
use smt_wire::PacketType;

use super::support::configs::ethernet;
use super::support::{Answer, Datagram, Verdict, World, body, ms};

/// Application bytes of the message that is lost in part.
const LENGTH: usize = 40_000;
/// Questions that both sides may ask in eight seconds: from 5 ms and 2 ms, doubled to half a second
/// and a second.
const QUESTIONS_MAX: usize = 50;

/// Sends a message with a rule that loses some of its packets for eight seconds. DATA bytes that
/// left meanwhile beyond the first time, for each byte of the message.
fn repeated_per_byte(
    is_lost: impl Fn(&Datagram) -> bool + 'static,
    begin: impl FnOnce(&mut World, smt_wire::SessionIndex),
) -> usize {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(2, LENGTH)));
    world.rule = Box::new(move |datagram, _| match is_lost(datagram) {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    world.is_recording = true;
    begin(&mut world, session);
    world.run_for(Duration::from_secs(8));
    data_per_byte(&world)
}

/// DATA bytes that have left, for each byte of the message.
fn data_per_byte(world: &World) -> usize {
    let data = world.sent.iter().filter(|sent| sent.data().is_some());
    data.map(|sent| sent.bytes.len()).sum::<usize>() / LENGTH
}

/// DATA from this node on, from this offset on.
fn data_from(node: usize, offset: u32) -> impl Fn(&Datagram) -> bool {
    move |datagram| {
        let data = datagram.data();
        datagram.from == node && data.is_some_and(|data| data.header.offset >= offset)
    }
}

fn call(world: &mut World, session: smt_wire::SessionIndex) {
    world.call(0, session, body(1, 100));
}

#[test]
fn a_reply_whose_end_stays_lost_is_repeated_ever_more_rarely() {
    for offset in [1, 20_000, 40_000] {
        let repeated = repeated_per_byte(data_from(1, offset), call);
        assert!(repeated <= QUESTIONS_MAX, "from {offset}: {repeated} times");
    }
}

#[test]
fn a_reply_that_stays_lost_is_repeated_ever_more_rarely() {
    let repeated = repeated_per_byte(data_from(1, 0), call);
    assert!(repeated <= QUESTIONS_MAX, "{repeated} times");
}

#[test]
fn a_reply_that_stays_lost_and_holds_an_epoch_is_repeated_ever_more_rarely() {
    let mut client = ethernet();
    client.key_limits = KeyLimits::new(4_096, 24, 1 << 20).unwrap();
    let (mut world, session, _) = World::connected_with(client, ethernet());
    world.nodes[1].application = Box::new(|request| {
        let length = if request.len() == 100 { LENGTH } else { 10 };
        Answer::Reply(body(2, length))
    });
    // NEED_ACK and BUSY would show that the request has arrived, and let go of it.
    world.rule = Box::new(move |datagram, _| {
        let is_long = |data: smt_wire::Data<'_>| data.header.message_length > 1_000;
        let is_lost = datagram.data().is_some_and(is_long)
            || datagram.has(PacketType::NeedAck)
            || datagram.has(PacketType::Busy);
        match datagram.from == 1 && is_lost {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    world.is_recording = true;
    call(&mut world, session);
    // The request is of the first epoch, which so cannot end; these want a third.
    for _ in 0..60 {
        let rpc = world.call(0, session, body(3, 10));
        assert_eq!(world.outcome(0, rpc), Ok(body(2, 10)));
    }
    world.run_for(Duration::from_secs(8));
    assert_eq!(world.nodes[0].endpoint.statistics().key_updates, 1);
    let repeated = data_per_byte(&world);
    assert!(repeated <= QUESTIONS_MAX, "{repeated} times");
}

/// Each member is asked about by a schedule of its own.
// SMT [5.7-37]
#[test]
fn a_bundle_of_replies_that_stays_lost_is_repeated_ever_more_rarely() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    for number in 0..20 {
        world.call(0, session, body(number, 10));
        world.run_for(ms(1));
    }
    world.rule = Box::new(|datagram, _| match data_from(1, 0)(datagram) {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    world.is_recording = true;
    let requests = world.nodes[1].delivered.clone();
    for (rpc, _) in requests {
        let replied = world.nodes[1].endpoint.reply(world.now, rpc, body(2, 10));
        replied.unwrap();
    }
    world.flush();
    world.run_for(Duration::from_secs(8));
    assert_eq!(world.nodes[1].endpoint.statistics().bundles_sent, 1);
    let sent = world.sent.iter();
    let repeated = sent.filter(|sent| data_from(1, 0)(sent)).count();
    assert!(repeated <= QUESTIONS_MAX, "{repeated} times");
}

#[test]
fn a_reply_whose_acknowledgement_stays_lost_is_never_repeated() {
    let repeated =
        repeated_per_byte(|datagram| datagram.from == 0 && datagram.has(PacketType::Ack), call);
    assert!(repeated <= 2, "{repeated} times");
}

/// The answer to a question about a request that is lost from its beginning is NEVER_SEEN.
// SMT [9.3-4]
#[test]
fn a_request_whose_end_stays_lost_is_repeated_ever_more_rarely() {
    for offset in [0, 1, 20_000] {
        let repeated = repeated_per_byte(data_from(0, offset), |world, session| {
            world.call(0, session, body(1, LENGTH));
        });
        assert!(repeated <= QUESTIONS_MAX, "from {offset}: {repeated} times");
    }
}

#[test]
fn a_one_way_message_whose_end_stays_lost_is_repeated_ever_more_rarely() {
    for offset in [0, 1, 20_000] {
        let repeated = repeated_per_byte(data_from(0, offset), |world, session| {
            world.send_one_way(0, session, body(1, LENGTH));
        });
        assert!(repeated <= QUESTIONS_MAX, "from {offset}: {repeated} times");
    }
}

#[test]
fn a_reply_whose_loss_ends_is_whole_within_the_longest_interval() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(2, LENGTH)));
    let is_lost = data_from(1, 1);
    world.rule = Box::new(move |datagram, _| match is_lost(datagram) {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(Duration::from_secs(8));
    world.rule = Box::new(|_, _| Verdict::Deliver);
    let from = world.now;
    assert_eq!(world.outcome(0, rpc), Ok(body(2, LENGTH)));
    assert!(world.now.since(from) <= ms(510));
}
