// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer that holds the keys may end its own session, and that is all: no endless work, no places
//! of others.

use smt_proto::{Config, OneWayOutcome};
use smt_record::{KeyLimits, Side};
use smt_wire::{Abort, Body, Kind, List, MessageId, Packet, PacketType, Resend};

use super::support::configs::ethernet;
use super::support::forge::{MESSAGE_LENGTH, set_u32};
use super::support::node::replies_of_asked_length;
use super::support::rogue::{Rogue, layout};
use super::support::{Answer, Datagram, Verdict, World, body, ms};

fn asked(length: u32) -> bytes::Bytes {
    length.to_be_bytes().to_vec().into()
}

/// With the key would go the repetitions of what was sealed under it, and the epochs of both sides
/// would drift apart.
// SMT [7.3-17]
#[test]
fn a_peer_gains_nothing_by_acknowledging_an_epoch_that_has_not_ended() {
    let mut server = ethernet();
    server.record_size = 64;
    server.first_record_size = 64;
    server.key_limits = KeyLimits::new(4_096, 48, 1 << 20).unwrap();
    let (mut world, client, at_server) = World::connected_with(ethernet(), server);
    world.nodes[1].application = replies_of_asked_length();
    let mut rogue = Rogue::client(at_server);
    // The server does not hear what has arrived of its reply.
    world.rule =
        Box::new(
            |datagram, _| {
                if datagram.has(PacketType::Grant) { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    let rpc = world.call(0, client, asked(1_000_000));
    world.run_for(ms(50));
    let facts = world.nodes[1].endpoint.session(at_server).unwrap();
    assert_eq!(facts.seal_epoch, 1);
    let acknowledgements = [0, 1].map(|epoch| Body::EpochAck { epoch });
    rogue.say(&mut world, &acknowledgements);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    assert!(world.outcome(0, rpc) == Ok(body(1_000_000, 1_000_000)));
}

/// Eight replies stop, and their server says that it is busy whenever it is asked: a ninth, longer
/// one gets on.
// SMT [8-7]
#[test]
fn a_peer_gains_nothing_by_being_busy_for_ever() {
    let mut server = ethernet();
    server.accept = true;
    let mut world = World::new(vec![ethernet(), server.clone(), server]);
    let (to_rogue, _) = world.connect(0, 1).unwrap();
    let mut rogue = Rogue::server(to_rogue);
    let (to_honest, _) = world.connect(0, 2).unwrap();
    for node in [1, 2] {
        world.nodes[node].application = replies_of_asked_length();
    }
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if datagram.from == 1 && data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    let calls = (0..8).map(|_| world.call(0, to_rogue, asked(2_000_000)).id);
    let ids: Vec<MessageId> = calls.collect();
    world.run_for(ms(1));
    world.rule =
        Box::new(|datagram, _| if datagram.from == 1 { Verdict::Drop } else { Verdict::Deliver });
    // 125 B/us: 5 MB take 40 ms.
    world.rate = 125;
    let rpc = world.call(0, to_honest, asked(5_000_000));
    for _ in 0..500 {
        rogue.say(&mut world, &[Body::Busy(List::from(&ids[..]))]);
        world.run_for(ms(1));
    }
    let reply = world.nodes[0].event(|event| match event {
        smt_proto::Event::Reply { rpc: of, body, .. } => (*of == rpc).then(|| body.len()),
        _ => None,
    });
    assert_eq!(reply, Some(5_000_000));
}

/// To send a byte again, the whole record must be sealed again.
// SMT [9.3-25]
#[test]
fn a_peer_gains_nothing_by_asking_for_a_byte_of_each_record() {
    let (mut world, session, at_server) = World::connected_with(ethernet(), Config::default());
    world.nodes[1].application = replies_of_asked_length();
    let mut rogue = Rogue::client(at_server);
    let rpc = world.call(0, session, asked(60_000_000));
    world.rule =
        Box::new(
            |datagram, _| {
                if datagram.has(PacketType::Ack) { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    assert!(world.outcome(0, rpc).is_ok());
    let resends: Vec<Resend> = (0..3_648)
        .map(|number| Resend { id: rpc.id, offset: 2_000 + 16_406 * number, length: 1 })
        .collect();
    let before = world.nodes[1].endpoint.statistics().packets_resent;
    for _ in 0..5 {
        let lists = resends.chunks(64).map(|some| Body::Resend(List::from(some)));
        rogue.say(&mut world, &lists.collect::<Vec<_>>());
    }
    let again = world.nodes[1].endpoint.statistics().packets_resent - before;
    // All that a session may have saved up.
    let most = 64 * 1024 * 1024 / 16_406;
    assert!((3_000..=most).contains(&again), "{again} records sealed again");
}

/// Whether a peer's packets have marked an id is seen when the peer cancels it: VOIDED, if nothing
/// was marked.
fn is_unmarked(world: &mut World, rogue: &mut Rogue, id: MessageId) -> bool {
    world.is_recording = true;
    rogue.say(world, &[Body::Cancel(List::from(&[id][..]))]);
    let answers = std::mem::take(&mut world.sent);
    answers.iter().any(|sent| sent.has(PacketType::Voided))
}

// SMT [5.4-12], [5.6-2]
#[test]
fn a_peer_gains_nothing_by_sending_a_message_above_the_limit() {
    let mut server = Config::default();
    server.message_limit = 1_000;
    let (mut world, _, at_server) = World::connected_with(Config::default(), server);
    let mut rogue = Rogue::client(at_server);
    let id = rogue.message(&mut world, Kind::OneWay, &[1; 1_001]);
    let counted = world.nodes[1].endpoint.statistics();
    assert_eq!(counted.packets_contradicting, 1);
    assert!(is_unmarked(&mut world, &mut rogue, id));
    rogue.message(&mut world, Kind::OneWay, &[1; 1_000]);
    let delivered = world.nodes[1].delivered.iter();
    let lengths: Vec<usize> = delivered.map(|(_, body)| body.len()).collect();
    assert_eq!(lengths, [1_000]);
}

/// The indices of more than 256 records do not fit, and two records would have one number.
// SMT [5.1-4]
#[test]
fn a_peer_gains_nothing_by_claiming_more_records_than_it_can_number() {
    let mut client = Config::default();
    client.index_bits = 8;
    let (mut world, session, _) = World::connected_with(client, Config::default());
    world.is_recording = true;
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.call(0, session, body(1, 2_000));
    let sent = world.sent[0].clone();
    let most = 1_142 + 255 * 16_384;
    for (length, contradicting, failed) in [(most, 0, 1), (most + 1, 1, 1), (u32::MAX, 2, 1)] {
        let mut bytes = sent.bytes.clone();
        set_u32(&mut bytes, MESSAGE_LENGTH, length);
        world.hand_in(&Datagram { bytes, ..sent.clone() });
        let counted = world.nodes[1].endpoint.statistics();
        let counted = (counted.packets_contradicting, counted.records_failed);
        assert_eq!(counted, (contradicting, failed), "{length} bytes");
    }
}

// SMT [4.1-6]
#[test]
fn a_peer_gains_nothing_by_sending_a_reply_under_an_id_of_its_own() {
    let (mut world, _, at_server) = World::connected();
    let mut rogue = Rogue::client(at_server);
    let id = rogue.message(&mut world, Kind::Reply, b"text");
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(world.nodes[1].endpoint.statistics().violations, 1);
    assert!(is_unmarked(&mut world, &mut rogue, id));
}

// SMT [4.1-6]
#[test]
fn a_peer_gains_nothing_by_answering_with_a_message_that_is_no_reply() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let rpc = world.call(0, session, body(1, 10));
    world.run_for(ms(1));
    let mut rogue = Rogue::server(session);
    for kind in [Kind::Request, Kind::OneWay, Kind::Bundle] {
        rogue.answer(&mut world, (rpc.id, kind), b"text");
    }
    assert_eq!(world.nodes[0].endpoint.statistics().violations, 3);
    assert!(world.nodes[0].delivered.is_empty());
    // The call waits on.
    let (now, held) = (world.now, world.nodes[1].delivered[0].0);
    let server = &mut world.nodes[1].endpoint;
    server.reply(now, held, body(2, 10)).unwrap();
    assert_eq!(world.outcome(0, rpc), Ok(body(2, 10)));
}

#[test]
fn a_peer_gains_nothing_by_answering_a_one_way_message() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|_, _| Verdict::Drop);
    let rpc = world.send_one_way(0, session, body(1, 10));
    Rogue::server(session).answer(&mut world, (rpc.id, Kind::Reply), b"text");
    assert_eq!(world.nodes[0].endpoint.statistics().violations, 1);
    assert_eq!(world.nodes[0].endpoint.session(session).unwrap().calls, 1);
}

// SMT [8-16]
#[test]
fn a_peer_gains_nothing_by_aborting_a_one_way_message_or_a_bundle() {
    for count in [1, 2] {
        let (mut world, session, _) = World::connected();
        world.rule = Box::new(|_, _| Verdict::Drop);
        let (now, endpoint) = (world.now, &mut world.nodes[0].endpoint);
        for number in 0..count {
            let body = body(number, 10);
            endpoint.send_one_way(now, session, body, None).unwrap();
        }
        world.is_recording = true;
        world.run_for(ms(1));
        let sent = world.sent.iter().find_map(|sent| sent.data());
        let id = sent.unwrap().header.id;
        let abort = Abort { id, code: 1 };
        Rogue::server(session).say(&mut world, &[Body::Abort(abort)]);
        assert_eq!(world.nodes[0].endpoint.statistics().violations, 1);
        world.rule = Box::new(|_, _| Verdict::Deliver);
        world.run_for(ms(1_000));
        assert_eq!(world.nodes[1].delivered.len(), count as usize);
    }
}

/// BUSY is about a request whose reply takes its time; of a one-way message nothing is let go for
/// it.
#[test]
fn a_peer_gains_nothing_by_being_busy_with_a_one_way_message() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|_, _| Verdict::Drop);
    let rpc = world.send_one_way(0, session, body(1, 10));
    let ids = [rpc.id];
    Rogue::server(session).say(&mut world, &[Body::Busy(List::from(&ids[..]))]);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    let outcome = world.one_way_outcome(0, rpc);
    assert_eq!(outcome, OneWayOutcome::Delivered);
    assert_eq!(world.nodes[1].delivered[0].1, body(1, 10));
}

/// The bytes would take memory that nobody has given it.
#[test]
fn a_peer_gains_nothing_by_sending_more_than_was_granted() {
    let mut server = Config::default();
    server.unscheduled = 2_000;
    let (mut world, _, at_server) = World::connected_with(Config::default(), server);
    let mut rogue = Rogue::client(at_server);
    let whole = rogue.whole(&world, Kind::OneWay, &[1; 60_000]);
    // No more than the second record of a message that has not begun may come.
    world.hand_in(&whole);
    let endpoint = &world.nodes[1].endpoint;
    assert_eq!(endpoint.statistics().packets_contradicting, 1);
    assert!(world.nodes[1].delivered.is_empty());
    // By now it is granted.
    world.run_for(ms(1));
    world.hand_in(&whole);
    let endpoint = &world.nodes[1].endpoint;
    assert_eq!(endpoint.statistics().packets_contradicting, 1);
    assert_eq!(world.nodes[1].delivered.len(), 1);
}

/// The id of the peer's that has the same number is not marked for it.
#[test]
fn a_peer_gains_nothing_by_cancelling_a_message_that_it_has_not_begun() {
    let (mut world, session, at_server) = World::connected();
    world.nodes[0].application = Box::new(|_| Answer::Hold);
    let of_server = world.call(1, at_server, body(1, 10));
    world.run_for(ms(1));
    world.is_recording = true;
    let mut rogue = Rogue::client(at_server);
    rogue.say(&mut world, &[Body::Cancel(List::from(&[of_server.id][..]))]);
    assert_eq!(world.nodes[1].endpoint.statistics().violations, 1);
    assert!(world.sent.is_empty(), "{}", world.trace());
    let rpc = world.call(0, session, body(2, 10));
    assert_eq!(world.outcome(0, rpc), Ok(body(2, 10)));
}

#[test]
fn a_peer_gains_nothing_by_asking_about_ids_beyond_its_window() {
    let (mut world, _, at_server) = World::connected();
    world.is_recording = true;
    let mut rogue = Rogue::client(at_server);
    for (counter, violations) in [(4_095, 0), (4_096, 2)] {
        world.sent.clear();
        let id = layout().id(counter, Side::Client, 0).unwrap();
        let resend = Resend { id, offset: 0, length: Resend::TO_THE_END };
        let (ids, resends) = ([id], [resend]);
        rogue.say(&mut world, &[Body::NeedAck(List::from(&ids[..]))]);
        rogue.say(&mut world, &[Body::Resend(List::from(&resends[..]))]);
        let counted = world.nodes[1].endpoint.statistics();
        assert_eq!(counted.violations, violations);
        assert_eq!(world.sent.is_empty(), violations > 0, "{}", world.trace());
    }
}

#[test]
fn a_peer_gains_nothing_by_asking_about_the_id_that_its_peer_uses_next() {
    let (mut world, _, at_server) = World::connected();
    world.is_recording = true;
    let mut rogue = Rogue::client(at_server);
    let ids = [layout().id(0, Side::Server, 0).unwrap()];
    rogue.say(&mut world, &[Body::NeedAck(List::from(&ids[..]))]);
    assert_eq!(world.nodes[1].endpoint.statistics().violations, 1);
    assert!(world.sent.is_empty(), "{}", world.trace());
}

/// An answer to each would be traffic for nothing.
// SMT [8-3], [9.3-23]
#[test]
fn a_peer_gains_nothing_by_asking_about_ids_that_it_has_not_used() {
    let (mut world, _, at_server) = World::connected();
    world.is_recording = true;
    let mut rogue = Rogue::client(at_server);
    for round in 0..1_000 {
        let ids = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|number| {
            let counter = (10 * round + number) % 4_000;
            layout().id(counter, Side::Client, 0).unwrap()
        });
        rogue.say(&mut world, &[Body::NeedAck(List::from(&ids[..]))]);
        world.run_for(ms(1));
    }
    let answered = world.sent.iter().flat_map(|sent| sent.packets());
    let answered = answered.map(|packet| match packet {
        Packet::Control(control) => match control.body {
            Body::NeverSeen(ids) => ids.len(),
            _ => 0,
        },
        _ => 0,
    });
    let answered = answered.sum::<usize>();
    assert!((1_000..=1_101).contains(&answered), "{answered} in a second");
}
