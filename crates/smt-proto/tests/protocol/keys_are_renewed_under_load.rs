// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rule 6: many epochs, no message waits, none is lost.

use std::time::Duration;

use smt_proto::{Config, GrantBudget, GrantPolicy, Grantable, Granted, OneWayOutcome};
use smt_record::KeyLimits;
use smt_wire::{PacketType, SessionIndex};

use super::support::configs::{ethernet, short_lived_keys};
use super::support::forge::{PAYLOAD, flipped};
use super::support::load::assert_nothing_is_left;
use super::support::rule::trouble;
use super::support::{Answer, Datagram, Load, Random, Verdict, World, body, ms};

fn epochs(world: &World, ends: [SessionIndex; 2]) -> [u32; 2] {
    [0, 1].map(|node| {
        let facts = world.nodes[node].endpoint.session(ends[node]).unwrap();
        facts.seal_epoch
    })
}

fn run(percent: usize) {
    let mut random = Random::from_env();
    let mut config = short_lived_keys();
    if percent > 0 {
        // As in reality, a key lasts long enough to ask again about what was lost.
        config.key_limits = KeyLimits::new(4_096, 48, 1 << 20).unwrap();
    }
    let (mut world, client, server) = World::connected_with(config.clone(), config);
    world.rule = Box::new(trouble(Random::new(random.any()), percent));
    let load = Load { messages: 2_000, at_once: 20, size_max: 100_000, random };
    load.run(&mut world, [client, server]);
    assert_nothing_is_left(&world, [client, server]);
    // An epoch lasts the longer, the more its messages are lost.
    let least = if percent == 0 { 4 } else { 2 };
    let epochs = epochs(&world, [client, server]);
    assert!(epochs.iter().all(|epoch| *epoch >= least), "{epochs:?}");
}

// SMT [7.3-4]
#[test]
fn keys_are_renewed_without_loss() {
    run(0);
}

#[test]
fn keys_are_renewed_through_loss() {
    run(5);
}

#[test]
fn keys_are_renewed_through_much_loss() {
    run(20);
}

// SMT [7.3-9]
#[test]
fn the_epoch_byte_wraps() {
    let mut config = ethernet();
    config.key_limits = KeyLimits::new(16, 4, 1 << 20).unwrap();
    let (mut world, client, server) = World::connected_with(config.clone(), config);
    for number in 0..2_000 {
        let rpc = world.call(0, client, body(number, 10));
        world.outcome(0, rpc).unwrap();
        world.run_for(ms(6));
    }
    assert!(epochs(&world, [client, server]).iter().all(|epoch| *epoch > 260));
}

/// 10 MB are 640 records: ten keys.
// SMT [7.3-3], [5.4-7]
#[test]
fn keys_are_renewed_in_the_middle_of_a_message() {
    let (mut world, client, _) = World::connected_with(short_lived_keys(), short_lived_keys());
    world.is_recording = true;
    let rpc = world.call(0, client, body(1, 10_000_000));
    assert!(world.outcome(0, rpc) == Ok(body(1, 10_000_000)));
    let mut used: Vec<u8> = world
        .sent
        .iter()
        .filter_map(|sent| sent.data().filter(|_| sent.from == 0))
        .map(|data| data.header.epoch)
        .collect();
    used.dedup();
    assert!(used.len() > 8, "{used:?}");
}

/// 1.6 MB are 98 records, and a key is for 64. No packet but those of the message tells of the next
/// key.
// SMT [7.3-10]
#[test]
fn keys_are_renewed_by_records_that_come_in_parts() {
    let (mut world, client, server) = World::connected_with(short_lived_keys(), ethernet());
    world.rule = Box::new(|datagram, _| match datagram.from == 0 && datagram.data().is_none() {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    let rpc = world.send_one_way(0, client, body(1, 1_600_000));
    assert_eq!(world.one_way_outcome(0, rpc), OneWayOutcome::Delivered);
    assert_eq!(world.nodes[1].endpoint.session(server).unwrap().open_epoch, 1);
}

// SMT [7.3-13], [7.3-14]
#[test]
fn keys_are_renewed_although_the_end_of_an_epoch_is_first_announced_in_vain() {
    for lost in [PacketType::EpochDone, PacketType::EpochAck] {
        let (mut world, client, server) =
            World::connected_with(short_lived_keys(), short_lived_keys());
        let mut count = 0;
        world.rule = Box::new(move |datagram, _| {
            count += usize::from(datagram.has(lost));
            if datagram.has(lost) && count % 4 != 0 { Verdict::Drop } else { Verdict::Deliver }
        });
        let load =
            Load { messages: 1_000, at_once: 20, size_max: 20_000, random: Random::from_env() };
        load.run(&mut world, [client, server]);
        assert!(epochs(&world, [client, server]).iter().all(|epoch| *epoch > 5));
    }
}

/// The keys of both sides are nearly used up, and each has replies that the other's requests wait
/// for.
#[test]
fn keys_are_renewed_although_both_sides_wait_for_their_next_key_at_once() {
    let mut random = Random::from_env();
    let mut config = ethernet();
    // With 1,024, one seed of a hundred has used up its control packets by asking, and falls silent
    // (SPEC §7.3).
    config.key_limits = KeyLimits::new(4_096, 8, 1 << 20).unwrap();
    let (mut world, client, server) = World::connected_with(config.clone(), config);
    let mut lost = Random::new(random.any());
    let seconds = world.now + ms(3_000);
    // Requests stay without an answer for a while, and new ones come all the time.
    world.rule = Box::new(move |datagram, _| {
        let is_request =
            datagram.data().is_some_and(|data| data.header.id.0 & 1 == datagram.from as u64);
        if is_request && datagram.at < seconds && lost.percent(40) {
            Verdict::Drop
        } else {
            Verdict::Deliver
        }
    });
    let load = Load { messages: 6_000, at_once: 1_500, size_max: 100, random };
    load.run(&mut world, [client, server]);
    assert_nothing_is_left(&world, [client, server]);
}

/// Control packets are used up while the next epoch cannot begin: a few are kept to get out of it.
// SMT [7.3-22]
#[test]
fn keys_are_renewed_although_control_packets_run_out() {
    let (mut world, client, server) = World::connected_with(short_lived_keys(), short_lived_keys());
    let mut end = None;
    world.rule = Box::new(move |datagram, _| {
        let is_of_epoch = datagram.has(PacketType::EpochDone) || datagram.has(PacketType::EpochAck);
        if is_of_epoch && datagram.at < *end.get_or_insert_with(|| datagram.at + ms(100)) {
            Verdict::Drop
        } else {
            Verdict::Deliver
        }
    });
    for number in 0..300 {
        world.send_one_way(0, client, body(number, 10));
        world.run_for(ms(1));
    }
    world.run_for(ms(3_000));
    assert_eq!(world.nodes[1].delivered.len(), 300);
    assert_nothing_is_left(&world, [client, server]);
}

/// A request that holds an epoch, and its reply, may arrive late. They are asked about to the end:
/// without them there would be no next key, and the session would be mute for good.
// SMT [7.3-22]
#[test]
fn a_message_that_holds_an_epoch_is_asked_about_although_control_packets_run_out() {
    let (mut world, client, server) = World::connected_with(short_lived_keys(), ethernet());
    let begun = world.now;
    world.rule = Box::new(move |datagram, _| {
        let (least, until) = match datagram.from {
            0 => (1, 1_500),
            _ => (0, 2_000),
        };
        let is_late = |data: smt_wire::Data<'_>| {
            data.header.message_length > 4_000 && data.header.offset >= least
        };
        match datagram.data().is_some_and(is_late) && datagram.at < begun + ms(until) {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        }
    });
    let late = world.call(0, client, body(1, 5_000));
    for number in 2..50 {
        let rpc = world.call(0, client, body(number, 10));
        world.outcome(0, rpc).unwrap();
    }
    assert_eq!(epochs(&world, [client, server])[0], 1);
    for number in 50..1_300 {
        world.send_one_way(1, server, body(number, 10));
        world.run_for(ms(1));
    }
    assert!(world.outcome(0, late).unwrap() == body(1, 5_000));
    world.run_for(ms(5_000));
    assert_nothing_is_left(&world, [client, server]);
    assert!(epochs(&world, [client, server])[0] > 1);
}

/// A request that is worked on for long has arrived: its epoch ends all the same.
// SMT [7.3-19]
#[test]
fn keys_are_renewed_although_one_call_lasts() {
    let (mut world, client, _) = World::connected_with(short_lived_keys(), short_lived_keys());
    world.nodes[1].application = Box::new(|request| {
        if request.starts_with(b"slow") { Answer::Hold } else { Answer::Reply(request.clone()) }
    });
    let slow = world.call(0, client, b"slow".to_vec().into());
    for number in 0..1_000 {
        let began = world.now;
        let rpc = world.call(0, client, body(number, 100));
        world.outcome(0, rpc).unwrap();
        assert!(world.now.since(began) < ms(1_100), "call {number} waited for a key");
    }
    let (held, _) = world.nodes[1].delivered[0].clone();
    let now = world.now;
    world.nodes[1].endpoint.reply(now, held, body(5, 5)).unwrap();
    assert_eq!(world.outcome(0, slow), Ok(body(5, 5)));
}

/// Grants nothing.
pub(super) struct Miser;

impl GrantPolicy for Miser {
    fn grant(
        &mut self,
        _now: smt_proto::Time,
        _messages: &[Grantable],
        _budget: GrantBudget,
        _decisions: &mut Vec<Granted>,
    ) {
    }
}

/// A reply that waits for grants has arrived in part: what it was sealed under ends all the same.
// SMT [8-5]
#[test]
fn keys_are_renewed_although_one_reply_waits_for_its_grants() {
    let (mut world, client, server) = World::connected_with(short_lived_keys(), short_lived_keys());
    world.nodes[0].endpoint.set_grant_policy(Box::new(Miser));
    world.nodes[1].application = super::support::node::replies_of_asked_length();
    world.call(0, client, 10_000_000_u32.to_be_bytes().to_vec().into());
    let before = epochs(&world, [client, server]);
    for _ in 0..300 {
        let rpc = world.call(0, client, 10_u32.to_be_bytes().to_vec().into());
        world.outcome(0, rpc).unwrap();
    }
    assert!(epochs(&world, [client, server])[1] > before[1] + 3);
}

// SMT [7.3-5], [7.3-7], [5.4-3]
#[test]
fn keys_are_renewed_when_too_much_fails_to_open() {
    let mut config = Config::default();
    config.key_limits = KeyLimits::new(1 << 20, 1 << 19, 16).unwrap();
    let (mut world, client, server) = World::connected_with(config.clone(), config);
    world.is_recording = true;
    let mut lost = 0;
    world.rule = Box::new(move |datagram, _| {
        lost += usize::from(datagram.has(PacketType::KeyUpdateRequest));
        if datagram.has(PacketType::KeyUpdateRequest) && lost < 3 {
            Verdict::Drop
        } else {
            Verdict::Deliver
        }
    });
    let rpc = world.call(0, client, body(1, 10));
    world.outcome(0, rpc).unwrap();
    let request = world.sent.iter().find(|sent| sent.data().is_some()).cloned().unwrap();
    for at in 0..100 {
        let mut bytes = flipped(&request.bytes, PAYLOAD + 20);
        bytes[27] = 2 * (10 + at);
        world.hand_in(&Datagram { bytes, ..request.clone() });
    }
    world.run_for(ms(500));
    let rpc = world.call(0, client, body(2, 10));
    world.outcome(0, rpc).unwrap();
    world.run_for(ms(500));
    assert_eq!(epochs(&world, [client, server])[0], 1);
    assert_eq!(world.nodes[1].endpoint.session(server).unwrap().open_epoch, 1);
}

/// A key that is kept for what may be sent again is kept as long after silence as ever.
// SMT [7.3-15]
#[test]
fn keys_are_renewed_after_long_silence() {
    let mut server = ethernet();
    server.idle_life = Duration::from_secs(36_000);
    server.key_limits = KeyLimits::new(1_000, 100, 1 << 20).unwrap();
    let (mut world, client, at_server) = World::connected_with(ethernet(), server);
    let epoch = |world: &World| epochs(world, [client, at_server])[1];
    for number in 0..99 {
        let rpc = world.call(0, client, body(number, 10));
        world.outcome(0, rpc).unwrap();
    }
    world.run_for(Duration::from_secs(1_200));
    assert_eq!(epoch(&world), 0);
    // The first reply, sealed in epoch 0, is lost once; the second is of epoch 1.
    let mut is_lost = false;
    world.rule = Box::new(move |datagram, _| {
        let is_first = datagram.from == 1 && datagram.data().is_some() && !is_lost;
        is_lost |= is_first;
        if is_first { Verdict::Drop } else { Verdict::Deliver }
    });
    let first = world.call(0, client, body(1, 10));
    let second = world.call(0, client, body(2, 10));
    assert_eq!(world.outcome(0, second), Ok(body(2, 10)));
    assert_eq!(epoch(&world), 1);
    assert_eq!(world.outcome(0, first), Ok(body(1, 10)));
}

/// The rest of a key is kept for a long message, and other messages wait. The long message is given
/// up, the epoch before ends, and the others go on at once, although it is not yet time for the
/// next key.
#[test]
fn a_message_that_waited_goes_on_when_the_epoch_before_is_over() {
    let (mut world, client, server) = World::connected_with(short_lived_keys(), ethernet());
    // It never hears that what it has sent has arrived.
    world.rule =
        Box::new(
            |datagram, _| {
                if datagram.has(PacketType::Grant) { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    let long = world.call(0, client, body(1, 1_000_000));
    while epochs(&world, [client, server])[0] == 0 {
        let rpc = world.call(0, client, body(2, 10));
        world.outcome(0, rpc).unwrap();
    }
    world.is_recording = true;
    let mut waiting = None;
    for _ in 0..48 {
        let rpc = world.call(0, client, body(3, 10));
        world.run_for(ms(1));
        let is_answered = world.nodes[0].event(|event| match event {
            smt_proto::Event::Reply { rpc: of, .. } => (*of == rpc).then_some(()),
            _ => None,
        });
        if is_answered.is_none() {
            waiting = Some(rpc);
            break;
        }
    }
    let waiting = waiting.expect("one that waits for its key");
    world.run_for(ms(1_000));
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, long));
    world.outcome(0, waiting).unwrap();
    assert_eq!(epochs(&world, [client, server])[0], 1, "the same key");
    let acknowledged = world.sent.iter().find(|sent| sent.has(PacketType::EpochAck));
    let left = world.sent.iter().find(|sent| {
        let data = sent.data();
        sent.from == 0 && data.is_some_and(|data| data.header.id == waiting.id)
    });
    let (acknowledged, left) = (acknowledged.unwrap().at, left.unwrap().at);
    assert_eq!(left, acknowledged + world.latency);
}

/// A message that the peer has begun to take can always go on: else it would hold memory that is
/// needed by the messages which hold up the next key.
// SMT [7.3-20]
#[test]
fn keys_are_renewed_although_the_peer_has_memory_for_one_message_only() {
    let mut sender = ethernet();
    sender.record_size = 1_400;
    sender.unscheduled = 10_000;
    sender.key_limits = KeyLimits::new(1_024, 112, 1 << 20).unwrap();
    let mut receiver = ethernet();
    receiver.memory_max = 100_000;
    let (mut world, client, _) = World::connected_with(sender, receiver);
    let began = world.now;
    let lengths = (0..60).map(|number| 60_000 + number * 1_000);
    let sent: Vec<_> =
        lengths.map(|length| world.send_one_way(0, client, body(1, length))).collect();
    for rpc in sent {
        assert_eq!(world.one_way_outcome(0, rpc), OneWayOutcome::Delivered);
    }
    assert!(world.now.since(began) < ms(20_000));
}

/// The batch that uses a key up is followed by the next key, not by a question.
#[test]
fn keys_are_renewed_at_once_when_a_batch_uses_a_key_up() {
    let mut config = short_lived_keys();
    config.record_size = 64;
    config.first_record_size = 64;
    let (mut world, client, server) = World::connected_with(config.clone(), config);
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(1, 1)));
    let began = world.now;
    let rpc = world.call(0, client, body(1, 100 * 64));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 1)));
    assert_eq!(epochs(&world, [client, server])[0], 1);
    assert_eq!(world.now.since(began), 2 * world.latency);
}
