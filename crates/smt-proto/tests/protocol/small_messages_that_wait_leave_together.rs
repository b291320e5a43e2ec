// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bundles (SPEC §5.7).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use smt_proto::{CallFailure, Config, Event, Execution, OneWayOutcome, RpcId};
use smt_record::Padding;
use smt_wire::{PacketType, SessionIndex};

use super::support::configs::short_lived_keys;
use super::support::{Answer, Verdict, World, body, ms};

/// Calls that wait together: so many of so many bytes.
pub(super) fn calls(
    world: &mut World,
    session: SessionIndex,
    count: u64,
    length: usize,
) -> Vec<RpcId> {
    world.start_calls(0, session, (0..count).map(|number| body(number, length)))
}

pub(super) fn answers(world: &mut World, rpcs: &[RpcId], length: usize) {
    for (number, rpc) in rpcs.iter().enumerate() {
        assert_eq!(world.outcome(0, *rpc).unwrap(), body(number as u64, length));
    }
    assert_eq!(world.nodes[1].delivered.len(), rpcs.len());
}

/// Loses the first datagrams with DATA of a node.
pub(super) fn lose_data_of(world: &mut World, node: usize, mut count: usize) {
    world.rule = Box::new(move |datagram, _| {
        if datagram.from == node && datagram.data().is_some() && count > 0 {
            count -= 1;
            return Verdict::Drop;
        }
        Verdict::Deliver
    });
}

#[test]
fn replies_leave_together_like_their_requests() {
    let (mut world, session, _) = World::connected();
    world.is_recording = true;
    let rpcs = calls(&mut world, session, 10, 64);
    answers(&mut world, &rpcs, 64);
    assert_eq!(world.sent.len(), 2, "{}", world.trace());
    let bundles = |node: usize| world.nodes[node].endpoint.statistics().bundles_sent;
    assert_eq!((bundles(0), bundles(1)), (1, 1));
}

// SMT [5.7-9]
#[test]
fn a_message_waits_for_no_others_to_leave_with() {
    let (mut world, session, _) = World::connected();
    world.is_recording = true;
    for number in 1..=3 {
        // No time passes.
        world.call(0, session, body(number, 64));
        assert_eq!(world.sent.len() as u64, number);
    }
}

/// A session on a path whose datagrams have this size.
fn connected_by(datagram: u16) -> (World, SessionIndex) {
    let mut config = Config::default();
    config.datagram_limit = datagram;
    let (world, session, _) = World::connected_with(config.clone(), config);
    (world, session)
}

#[test]
fn a_bundle_fills_record_0_where_datagrams_are_small() {
    for datagram in [1_200, 1_472, 2_300] {
        let (mut world, session) = connected_by(datagram);
        world.is_recording = true;
        // 1,102 bytes for members of 84: thirteen and thirteen and four.
        let rpcs = calls(&mut world, session, 30, 64);
        answers(&mut world, &rpcs, 64);
        assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 3);
        assert_eq!(world.sent.iter().filter(|sent| sent.from == 0).count(), 3);
    }
}

#[test]
fn a_bundle_fills_two_records_where_datagrams_are_large() {
    // 8,972 less 36 and 44 and 40: 105 members of 84 bytes; 17,526 less 40: 208.
    for (datagram, members) in [(8_972, 105), (65_507, 208)] {
        let (mut world, session) = connected_by(datagram);
        world.is_recording = true;
        let rpcs = calls(&mut world, session, 2 * members, 64);
        answers(&mut world, &rpcs, 64);
        assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 2);
        let sent = world.sent.iter().filter(|sent| sent.from == 0);
        assert_eq!(sent.count(), 2, "each in one datagram");
    }
}

/// An empty one takes the room of its header, too: in three records no peer would take the bundle.
#[test]
fn empty_messages_leave_together() {
    let (mut world, session) = connected_by(65_507);
    let rpcs = calls(&mut world, session, 3_000, 0);
    world.run_for(ms(100));
    answers(&mut world, &rpcs, 0);
    assert!(world.nodes[0].endpoint.statistics().bundles_sent > 1);
}

// SMT [5.7-4]
#[test]
fn a_bundle_is_no_longer_than_the_peer_takes_without_a_grant() {
    let mut server = Config::default();
    server.unscheduled = 5_000;
    let (mut world, session, _) = World::connected_with(Config::default(), server);
    world.is_recording = true;
    let rpcs = calls(&mut world, session, 100, 64);
    answers(&mut world, &rpcs, 64);
    let lengths = world.sent.iter().filter_map(|sent| sent.data());
    assert!(lengths.map(|data| data.payload.len()).all(|length| length <= 5_000));
}

#[test]
fn a_message_that_fits_with_no_other_leaves_alone() {
    let (mut world, session) = connected_by(1_472);
    let rpcs = calls(&mut world, session, 10, 600);
    answers(&mut world, &rpcs, 600);
    assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 0);
}

// SMT [5.7-5]
#[test]
fn a_message_longer_than_record_0_leaves_alone() {
    let (mut world, session, _) = World::connected();
    let rpcs = calls(&mut world, session, 10, 1_103);
    answers(&mut world, &rpcs, 1_103);
    assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 0);
}

// SMT [5.7-2]
#[test]
fn messages_leave_alone_to_a_peer_that_takes_no_bundles() {
    let mut plain = Config::default();
    plain.bundles = false;
    for configs in [(plain.clone(), Config::default()), (Config::default(), plain)] {
        let (mut world, session, _) = World::connected_with(configs.0, configs.1);
        let rpcs = calls(&mut world, session, 10, 64);
        answers(&mut world, &rpcs, 64);
        let statistics = |node: usize| world.nodes[node].endpoint.statistics();
        assert_eq!(statistics(0).bundles_sent + statistics(1).bundles_sent, 0);
    }
}

// SMT [5.7-8]
#[test]
fn a_bundle_is_padded_as_one_message() {
    let mut client = Config::default();
    client.padding = Padding::Block(256.try_into().unwrap());
    let (mut world, session, _) = World::connected_with(client.clone(), Config::default());
    world.is_recording = true;
    let rpcs = calls(&mut world, session, 3, 64);
    answers(&mut world, &rpcs, 64);
    let first = world.sent[0].data().unwrap();
    // 40 and three times 84 are 292.
    assert_eq!(first.header.message_length, 512);

    client.padding = Padding::Block(4_096.try_into().unwrap());
    client.datagram_limit = 1_472;
    let (mut world, session, _) = World::connected_with(client, Config::default());
    let rpcs = calls(&mut world, session, 3, 64);
    answers(&mut world, &rpcs, 64);
    assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 0);
}

// SMT [5.7-7]
#[test]
fn a_bundle_is_of_one_stripe() {
    let mut config = Config::default();
    config.stripes_log2 = 2;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    let rpcs = calls(&mut world, session, 40, 64);
    answers(&mut world, &rpcs, 64);
    assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 4);
    assert_eq!(world.nodes[1].endpoint.statistics().violations, 0);
}

// SMT [5.7-11], [5.7-38]
#[test]
fn a_lost_bundle_of_requests_comes_again_and_each_runs_once() {
    let (mut world, session, _) = World::connected();
    lose_data_of(&mut world, 0, 1);
    let rpcs = calls(&mut world, session, 10, 64);
    answers(&mut world, &rpcs, 64);
}

// SMT [5.7-36]
#[test]
fn a_lost_bundle_of_replies_comes_again_when_one_of_them_is_asked_for() {
    let (mut world, session, _) = World::connected();
    lose_data_of(&mut world, 1, 1);
    world.is_recording = true;
    let rpcs = calls(&mut world, session, 10, 64);
    answers(&mut world, &rpcs, 64);
    let again = world.sent.iter().filter_map(|sent| sent.data());
    let again = again.filter(|data| data.header.retransmit).count();
    assert_eq!(again, 1, "{}", world.trace());
}

// SMT [5.7-19]
#[test]
fn a_bundle_that_comes_twice_counts_once() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(_) => Verdict::Duplicate,
        None => Verdict::Deliver,
    });
    let rpcs = calls(&mut world, session, 10, 64);
    answers(&mut world, &rpcs, 64);
    world.run_for(ms(1_000));
    assert_eq!(world.nodes[1].delivered.len(), 10);
    assert!(world.nodes[1].endpoint.statistics().packets_duplicate > 0);
}

// SMT [5.7-22], [5.7-24]
#[test]
fn a_member_given_up_before_its_bundle_came_does_not_run_and_the_others_do() {
    let (mut world, session, _) = World::connected();
    lose_data_of(&mut world, 0, 1);
    let rpcs = calls(&mut world, session, 10, 64);
    world.run_for(ms(1));
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, rpcs[3]));
    let error = world.outcome(0, rpcs[3]).unwrap_err();
    // It has left, and nobody has said yet that it did not arrive.
    let expected = (CallFailure::Cancelled, Execution::MayHaveRun);
    assert_eq!((error.reason, error.execution), expected);
    for (number, rpc) in rpcs.iter().enumerate().filter(|(at, _)| *at != 3) {
        assert_eq!(world.outcome(0, *rpc).unwrap(), body(number as u64, 64));
    }
    world.run_for(ms(1_000));
    assert_eq!(world.nodes[1].delivered.len(), 9);
    assert!(world.nodes[1].delivered.iter().all(|(rpc, _)| rpc.id != rpcs[3].id));
}

// SMT [5.7-40]
#[test]
fn a_bundle_is_sent_until_it_is_seen_even_if_all_of_its_members_were_given_up() {
    let (mut world, session, at_server) = World::connected();
    lose_data_of(&mut world, 0, 1);
    let rpcs = calls(&mut world, session, 10, 64);
    world.run_for(ms(1));
    let now = world.now;
    for rpc in rpcs {
        assert!(world.nodes[0].endpoint.cancel(now, rpc));
    }
    world.run_for(ms(1_000));
    assert!(world.nodes[1].delivered.is_empty());
    // No id is left unseen, and nothing is kept.
    assert_eq!(world.nodes[0].endpoint.session(session).unwrap().calls, 0);
    assert_eq!(world.nodes[1].endpoint.session(at_server).unwrap().served, 0);
}

// SMT [5.7-31], [5.7-29]
#[test]
fn one_way_messages_are_delivered_when_their_bundle_is_acknowledged() {
    let (mut world, session, _) = World::connected();
    lose_data_of(&mut world, 0, 1);
    world.is_recording = true;
    let now = world.now;
    let endpoint = &mut world.nodes[0].endpoint;
    let sent: Vec<RpcId> = (0..10)
        .map(|number| endpoint.send_one_way(now, session, body(number, 64), None))
        .map(Result::unwrap)
        .collect();
    for rpc in &sent {
        assert_eq!(world.one_way_outcome(0, *rpc), OneWayOutcome::Delivered);
    }
    assert_eq!(world.nodes[1].delivered.len(), 10);
    let acks = world.sent.iter().filter(|sent| sent.has(PacketType::Ack));
    assert_eq!(acks.count(), 1, "{}", world.trace());
}

// SMT [5.7-8], [5.7-28]
#[test]
fn only_the_last_replies_are_asked_about() {
    let (mut world, session, at_server) = World::connected();
    for _ in 0..10 {
        let rpcs = calls(&mut world, session, 10, 64);
        for rpc in rpcs {
            world.outcome(0, rpc).unwrap();
        }
    }
    assert_eq!(world.nodes[0].endpoint.session(session).unwrap().calls, 0);
    // Each bundle of requests acknowledges the replies before it.
    assert!(world.nodes[1].endpoint.session(at_server).unwrap().served <= 10);
    world.is_recording = true;
    world.run_for(ms(60_000));
    assert_eq!(world.sent.len(), 2, "{}", world.trace());
    assert!(world.sent[0].has(PacketType::NeedAck) && world.sent[1].has(PacketType::Ack));
    assert_eq!(world.nodes[1].endpoint.session(at_server).unwrap().served, 0);
    assert_eq!(world.nodes[1].endpoint.session(at_server).unwrap().calls, 0);
}

#[test]
fn each_member_and_not_the_bundle_is_told_of_the_sessions_end() {
    let (mut world, session, _) = World::connected();
    lose_data_of(&mut world, 0, usize::MAX);
    let rpcs = calls(&mut world, session, 10, 64);
    world.run_for(ms(1));
    world.nodes[0].endpoint.close_all(smt_proto::CloseCode::Done);
    for rpc in rpcs {
        let error = world.outcome(0, rpc).unwrap_err();
        assert_eq!(error.execution, Execution::MayHaveRun);
    }
    let left = world.nodes[0].event(|event| match event {
        Event::OneWayDone { rpc, .. } | Event::CallFailed { rpc, .. } => Some(*rpc),
        _ => None,
    });
    assert_eq!(left, None);
}

#[test]
fn deadlines_travel_with_the_members() {
    let (mut world, session, _) = World::connected();
    let now = world.now;
    for limit in [ms(50), ms(90)] {
        let endpoint = &mut world.nodes[0].endpoint;
        let call = endpoint.call(now, session, body(1, 10), Some(limit));
        assert!(call.is_ok());
    }
    world.run_for(ms(10));
    let sent = world.nodes[0].endpoint.statistics().bundles_sent;
    assert_eq!((sent, world.nodes[1].deadlines.len()), (1, 2));
    for (deadline, limit) in world.nodes[1].deadlines.iter().zip([ms(50), ms(90)]) {
        let late = deadline.unwrap().since(now + limit);
        assert!(late <= ms(1), "{late:?}");
    }
}

/// A bundle of two records that is repeated comes in two packets, since record 0 goes out again in
/// a small one.
// SMT [5.7-15]
#[test]
fn a_large_bundle_comes_again_in_parts() {
    for node in [0, 1] {
        let (mut world, session, _) = World::connected();
        lose_data_of(&mut world, node, 1);
        world.is_recording = true;
        let rpcs = calls(&mut world, session, 100, 64);
        answers(&mut world, &rpcs, 64);
        let again = world.sent.iter().filter_map(|sent| sent.data());
        let again: Vec<_> = again.filter(|data| data.header.retransmit).collect();
        assert!(again.len() >= 2, "{}", world.trace());
        assert!(again.iter().any(|data| data.header.offset > 0));
        assert_eq!(world.nodes[1].delivered.len(), 100);
        world.run_for(ms(2_000));
        assert_eq!(world.nodes[1].endpoint.memory(), 0);
    }
}

#[test]
fn a_lost_part_of_a_large_bundle_is_asked_for() {
    let (mut world, session, _) = World::connected();
    let mut lost = 0;
    world.rule = Box::new(move |datagram, _| {
        let data = datagram.data();
        // All of it, then what follows record 0, and record 0.
        let is_lost = datagram.from == 0 && data.is_some() && lost < 3;
        lost += usize::from(is_lost);
        if is_lost { Verdict::Drop } else { Verdict::Deliver }
    });
    let rpcs = calls(&mut world, session, 100, 64);
    answers(&mut world, &rpcs, 64);
    assert_eq!(world.nodes[1].delivered.len(), 100);
}

#[test]
fn a_large_bundle_arrives_although_the_path_has_become_narrow() {
    let (mut world, session, _) = World::connected();
    world.rule =
        Box::new(
            |datagram, _| {
                if datagram.bytes.len() > 1_472 { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    let rpcs = calls(&mut world, session, 100, 64);
    answers(&mut world, &rpcs, 64);
    assert_eq!(world.nodes[1].delivered.len(), 100);
}

/// Its id is marked only when all of it is there: till then nothing of it has run, and it may come
/// again.
// SMT [5.7-25]
#[test]
fn a_large_bundle_without_room_for_its_requests_comes_again_and_each_runs_once() {
    let mut server = Config::default();
    server.memory_max = 66_000;
    let (mut world, session, _) = World::connected_with(Config::default(), server);
    // The memory is promised to a message that does not get on.
    let now = world.now;
    let large = world.nodes[0].endpoint.call(now, session, body(7, 200_000), None);
    let large = large.unwrap();
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.message_length > 100_000 && data.header.offset > 0 => {
            Verdict::Drop
        }
        _ => Verdict::Deliver,
    });
    world.run_for(ms(3));
    let rpcs = calls(&mut world, session, 100, 64);
    world.run_for(ms(100));
    assert!(world.nodes[1].endpoint.statistics().memory_refusals > 0);
    assert_eq!(world.nodes[1].delivered.len(), 0);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    assert_eq!(world.outcome(0, large), Ok(body(7, 200_000)));
    for (number, rpc) in rpcs.iter().enumerate() {
        assert_eq!(world.outcome(0, *rpc).unwrap(), body(number as u64, 64));
    }
    assert_eq!(world.nodes[1].delivered.len(), 101);
}

/// A bundle is longer than each of its members, which have waited longer than what has come since.
#[test]
fn a_bundle_that_finds_no_room_keeps_the_turn_of_its_shortest_member() {
    let mut config = Config::default();
    config.stripes_log2 = 1;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.is_recording = true;
    let (now, client) = (world.now, &mut world.nodes[0].endpoint);
    // Messages take the stripes in turn. The shortest is alone in its stripe: datagrams behind it
    // are no longer.
    for number in 0..40 {
        let length = match number {
            0 => 64,
            2 => 1_200,
            _ if number % 2 == 0 => 30_000,
            _ => 100,
        };
        client.call(now, session, body(number, length), None).unwrap();
    }
    world.flush();
    let lengths = world.sent.iter().filter_map(|sent| sent.data());
    let lengths: Vec<u32> = lengths.map(|data| data.header.message_length).collect();
    // 40 and twenty times 120; 40 and 1,200.
    let place = |length| lengths.iter().position(|other| *other == length).unwrap();
    assert!(place(2_440) < place(1_240), "{lengths:?}");
}

/// Replies make room: a bundle of them is let in although there is none, in parts if it comes so.
#[test]
fn replies_are_taken_in_parts_although_memory_is_full() {
    let mut client = Config::default();
    client.memory_max = 66_000;
    let (mut world, session, at_server) = World::connected_with(client, Config::default());
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let rpcs = calls(&mut world, session, 100, 64);
    world.run_for(ms(1));
    // The client's memory is promised to a message of the server that does not get on.
    let now = world.now;
    let large = world.nodes[1].endpoint.send_one_way(now, at_server, body(7, 200_000), None);
    large.unwrap();
    let mut lost = 0;
    world.rule = Box::new(move |datagram, _| match datagram.data() {
        Some(data) if data.header.message_length > 100_000 && data.header.offset > 0 => {
            Verdict::Drop
        }
        // The replies as they leave at first, in one packet.
        Some(data) if data.header.message_length < 100_000 && datagram.from == 1 && lost == 0 => {
            lost += 1;
            Verdict::Drop
        }
        _ => Verdict::Deliver,
    });
    world.run_for(ms(1));
    let now = world.now;
    let server = &mut world.nodes[1];
    for (rpc, request) in server.delivered.clone() {
        server.endpoint.reply(now, rpc, request).unwrap();
    }
    assert!(world.nodes[0].endpoint.memory() > 50_000, "it is there");
    for (number, rpc) in rpcs.iter().enumerate() {
        assert_eq!(world.outcome(0, *rpc).unwrap(), body(number as u64, 64));
    }
}

/// Replies make room, so they are taken when there is none: also those that come with others in a
/// bundle.
// SMT [5.7-27]
#[test]
fn replies_are_taken_although_memory_is_full() {
    let mut server = Config::default();
    server.memory_max = 50_000;
    let (mut world, session, at_server) = World::connected_with(Config::default(), server);
    world.nodes[0].application = Box::new(|_| Answer::Hold);
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if datagram.from == 0 && data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    // Half of it never comes.
    let long = world.call(0, session, body(9, 100_000));
    world.run_for(ms(1));
    let now = world.now;
    let server = &mut world.nodes[1].endpoint;
    let asked: Vec<RpcId> =
        (0..5).map(|number| server.call(now, at_server, body(number, 64), None).unwrap()).collect();
    world.run_for(ms(1));
    // Replies and requests of the client share a bundle.
    let (now, held) = (world.now, world.nodes[0].delivered.clone());
    let client = &mut world.nodes[0].endpoint;
    for (rpc, body) in held {
        client.reply(now, rpc, body).unwrap();
    }
    let own: Vec<RpcId> =
        (0..5).map(|number| client.call(now, session, body(number, 60), None).unwrap()).collect();
    for (number, rpc) in asked.iter().enumerate() {
        assert_eq!(world.outcome(1, *rpc).unwrap(), body(number as u64, 64));
    }
    assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 1);
    // Requests need room.
    assert!(world.nodes[1].delivered.is_empty());
    world.rule = Box::new(|_, _| Verdict::Deliver);
    assert!(world.outcome(0, long).unwrap() == body(9, 100_000));
    for (number, rpc) in own.iter().enumerate() {
        assert_eq!(world.outcome(0, *rpc).unwrap(), body(number as u64, 60));
    }
    assert_eq!(world.nodes[1].delivered.len(), 6);
}

#[test]
fn a_server_that_shuts_down_refuses_each_member() {
    let (mut world, session, _) = World::connected();
    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    let rpcs = calls(&mut world, session, 5, 64);
    for rpc in rpcs {
        let error = world.outcome(0, rpc).unwrap_err();
        let expected = (CallFailure::ShuttingDown, Execution::DidNotRun);
        assert_eq!((error.reason, error.execution), expected);
    }
}

/// A bundle takes an id of its own: where none is left its messages leave alone.
// SMT [5.7-43]
#[test]
fn messages_leave_alone_when_the_window_has_no_id_for_a_bundle() {
    let mut server = Config::default();
    server.window = 64;
    let (mut world, session, _) = World::connected_with(Config::default(), server);
    let held = Rc::new(RefCell::new(0));
    let count = Rc::clone(&held);
    world.nodes[1].application = Box::new(move |request| {
        *count.borrow_mut() += 1;
        Answer::Reply(request.clone())
    });
    let rpcs = calls(&mut world, session, 64, 64);
    answers(&mut world, &rpcs, 64);
    assert_eq!(*held.borrow(), 64);
    assert_eq!(world.nodes[0].endpoint.statistics().bundles_sent, 0);
}

/// A client with a burst that has used up its key, and what of it waits in bundles for the next
/// one, until the server's EPOCH_ACK comes through again.
fn waiting_for_keys() -> (World, Vec<RpcId>) {
    let (mut world, session, _) = World::connected_with(short_lived_keys(), Config::default());
    world.rule = Box::new(|datagram, _| match datagram.has(PacketType::EpochAck) {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    while world.nodes[0].endpoint.session(session).unwrap().seal_epoch == 0 {
        world.call(0, session, body(1, 64));
    }
    world.run_for(ms(1));
    let mut rpcs = calls(&mut world, session, 1_000, 64);
    world.run_for(ms(1));
    let arrived: BTreeSet<RpcId> = world.nodes[1].delivered.iter().map(|(rpc, _)| *rpc).collect();
    rpcs.retain(|rpc| arrived.iter().all(|of| of.id != rpc.id));
    assert!(rpcs.len() > 50, "{}", rpcs.len());
    // All of them were counted as sent: none waits alone.
    assert_eq!(
        world.nodes[0].endpoint.statistics().messages_sent as usize,
        arrived.len() + rpcs.len()
    );
    (world, rpcs)
}

#[test]
fn a_bundle_that_waits_for_keys_is_not_asked_about() {
    let (mut world, rpcs) = waiting_for_keys();
    world.is_recording = true;
    world.run_for(ms(300));
    let asked = world.sent.iter().filter(|sent| sent.has(PacketType::Resend));
    assert_eq!(asked.count(), 0, "{}", world.trace());
    world.rule = Box::new(|_, _| Verdict::Deliver);
    for rpc in rpcs {
        world.outcome(0, rpc).unwrap();
    }
}

#[test]
fn a_member_of_a_bundle_that_never_left_did_not_run() {
    let (mut world, rpcs) = waiting_for_keys();
    let client = &mut world.nodes[0].endpoint;
    client.close_all(smt_proto::CloseCode::Done);
    for rpc in rpcs {
        let error = world.outcome(0, rpc).unwrap_err();
        assert_eq!(error.execution, Execution::DidNotRun);
    }
}

/// Each reply that comes again would halve the wait before a question. One packet was lost.
#[test]
fn a_lost_bundle_is_one_loss_however_many_replies_it_had() {
    let (mut world, session, _) = World::connected();
    world.latency = ms(40);
    for number in 0..20 {
        let rpc = world.call(0, session, body(number, 64));
        world.outcome(0, rpc).unwrap();
    }
    world.run_for(ms(1_000));
    let asked = |world: &World| world.nodes[0].endpoint.statistics().resends_asked;
    let before = asked(&world);
    let rpc = world.call(0, session, body(1, 64));
    world.outcome(0, rpc).unwrap();
    assert_eq!(asked(&world), before, "it knows the path");
    lose_data_of(&mut world, 1, 1);
    for rpc in calls(&mut world, session, 10, 64) {
        world.outcome(0, rpc).unwrap();
    }
    world.run_for(ms(1_000));
    let before = asked(&world);
    let rpc = world.call(0, session, body(1, 64));
    world.outcome(0, rpc).unwrap();
    assert!(asked(&world) - before <= 1, "{}", asked(&world) - before);
}
