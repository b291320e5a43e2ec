// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A receiver and bundles that a peer with the keys has made as it likes (SPEC §5.7).

use std::time::Duration;

use bytes::Bytes;
use smt_proto::{CallFailure, Config, OneWayOutcome, Refused};
use smt_record::Side;
use smt_wire::{Body, Grant, Kind, List, MemberHeader, MessageId, PacketType, Resend};

use super::small_messages_that_wait_leave_together::{answers, calls, lose_data_of};
use super::support::rogue::{Rogue, layout, striped};
use super::support::{Answer, Verdict, World, body, ms};

pub(super) fn member(id: MessageId, kind: Kind, text: &[u8]) -> Vec<u8> {
    let header = MemberHeader {
        id,
        kind,
        length: text.len() as u16,
        deadline_us: 0,
        reply_unscheduled: 60_000,
        failure: None,
        has_metadata: false,
        parts: smt_wire::PartMarks::default(),
    };
    let mut bytes = vec![0; MemberHeader::LEN];
    header.emit(bytes.first_chunk_mut().unwrap());
    bytes.extend_from_slice(text);
    bytes
}

/// An id that the honest client has not come to.
fn client_id(counter: u64) -> MessageId {
    layout().id(counter, Side::Client, 0).unwrap()
}

// SMT [5.7-13], [5.7-14], [5.7-6]
#[test]
fn a_bundle_that_is_not_well_formed_is_refused_as_a_whole() {
    let (mut world, _, at_server) = World::connected();
    let mut rogue = Rogue::client(at_server);
    let good = member(client_id(100), Kind::Request, b"run");
    let mut cut = [&good[..], &member(client_id(101), Kind::Request, b"run")].concat();
    cut.pop();
    for bytes in [&cut[..], &[&good[..], &[0]].concat(), b""] {
        rogue.bundle(&mut world, bytes);
    }
    world.run_for(ms(10));
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(world.nodes[1].endpoint.statistics().violations, 3);
    rogue.bundle(&mut world, &good);
    world.run_for(ms(10));
    assert_eq!(world.nodes[1].delivered.len(), 1, "the id is still good");
}

// SMT [5.7-3], [5.7-14]
#[test]
fn a_bundle_of_more_than_two_records_is_refused() {
    for (length, is_taken) in [(17_507, true), (100, false), (1_200, false)] {
        let mut server = Config::default();
        server.bundles = is_taken;
        let (mut world, _, at_server) = World::connected_with(Config::default(), server);
        let mut rogue = Rogue::client(at_server);
        rogue.bundle(&mut world, &member(client_id(100), Kind::Request, &vec![1; length]));
        world.run_for(ms(10));
        assert!(world.nodes[1].delivered.is_empty());
        assert_eq!(world.nodes[1].endpoint.statistics().violations, 1);
        assert_eq!(world.nodes[1].endpoint.memory(), 0);
    }
}

/// Until all of a bundle is there its id is unseen, and so is no message's.
// SMT [5.7-23]
#[test]
fn no_member_has_the_id_of_an_incomplete_bundle() {
    for kind in [Kind::Request, Kind::OneWay] {
        let (mut world, _, at_server) = World::connected();
        let mut rogue = Rogue::client(at_server);
        let (large, _) = rogue.first_of(
            &mut world,
            Kind::Bundle,
            &member(client_id(100), Kind::Request, &[1; 1_200]),
        );
        rogue.bundle(&mut world, &member(large, kind, b"text"));
        world.run_for(ms(3));
        assert!(world.nodes[1].delivered.is_empty());
        assert_eq!(world.nodes[1].endpoint.statistics().violations, 1);
    }
}

// SMT [5.7-15]
#[test]
fn a_bundle_given_up_before_all_of_it_came_runs_no_member() {
    let (mut world, _, at_server) = World::connected();
    let mut rogue = Rogue::client(at_server);
    let request = member(client_id(100), Kind::Request, &[1; 1_200]);
    let (id, whole) = rogue.first_of(&mut world, Kind::Bundle, &request);
    // VOIDED says that it will not.
    rogue.say(&mut world, &[Body::Cancel(List::from(&[id][..]))]);
    world.hand_in(&whole);
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
}

/// VOIDED says that it is not delivered, and was the answer.
// SMT [5.7-22], [8-11]
#[test]
fn a_one_way_member_that_was_voided_is_not_delivered() {
    let (mut world, _, at_server) = World::connected();
    let mut rogue = Rogue::client(at_server);
    let (voided, other) = (client_id(100), client_id(101));
    world.is_recording = true;
    rogue.say(&mut world, &[Body::Cancel(List::from(&[voided][..]))]);
    let answers = std::mem::take(&mut world.sent);
    assert!(answers.iter().any(|sent| sent.has(PacketType::Voided)));
    let members = [(voided, &b"voided"[..]), (other, b"other")]
        .map(|(id, text)| member(id, Kind::OneWay, text));
    rogue.bundle(&mut world, &members.concat());
    let delivered = world.nodes[1].delivered.iter();
    let delivered: Vec<_> = delivered.map(|(rpc, body)| (rpc.id, &body[..])).collect();
    assert_eq!(delivered, [(other, &b"other"[..])]);
}

/// A peer may forget the parts of a bundle that it has, and then wants all of it: the sender keeps
/// its key until then.
// SMT [5.7-17]
#[test]
fn an_incomplete_bundle_holds_its_epoch_whatever_the_peer_says_of_it() {
    let (mut world, session, _) = World::connected();
    world.is_recording = true;
    world.rule = Box::new(|datagram, _| match datagram.from == 0 && datagram.data().is_some() {
        true => Verdict::Drop,
        false => Verdict::Deliver,
    });
    let rpcs = calls(&mut world, session, 100, 64);
    world.run_for(Duration::from_micros(100));
    let bundle = world.sent.iter().find_map(|sent| sent.data()).unwrap();
    let grants =
        [Grant { id: bundle.header.id, granted: u32::MAX, received: u32::MAX, priority: 0 }];
    let mut rogue = Rogue::server(session);
    rogue.say(
        &mut world,
        &[Body::Grant(List::from(&grants[..])), Body::KeyUpdateRequest { epoch: 0 }],
    );
    // Something of the next epoch arrives, so that the last one could end.
    world.run_for(ms(100));
    world.rule = Box::new(|_, _| Verdict::Deliver);
    answers(&mut world, &rpcs, 64);
    let facts = world.nodes[0].endpoint.session(session).unwrap();
    assert_eq!(facts.seal_epoch, 1);
}

// SMT [5.7-33]
#[test]
fn whole_replies_to_all_members_acknowledge_their_bundle() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let rpcs = calls(&mut world, session, 3, 64);
    world.run_for(Duration::from_micros(100));
    let calls_left = |world: &World| world.nodes[0].endpoint.session(session).unwrap().calls;
    assert_eq!(calls_left(&world), 4, "three calls and their bundle");
    let replies = rpcs.iter().map(|rpc| member(rpc.id, Kind::Reply, b"done"));
    // Its header acknowledges nothing.
    Rogue::server(session).bundle(&mut world, &replies.collect::<Vec<_>>().concat());
    assert_eq!(calls_left(&world), 0);
}

/// A client that cancels answered calls, or acknowledges one reply by one and never the bundles of
/// the replies, makes the server keep bundles for nothing: not without end.
// SMT [5.7-43]
#[test]
fn a_peer_that_acknowledges_no_bundle_makes_few_of_them_kept() {
    let mut server = Config::default();
    server.window = 65_536;
    let (mut world, _, at_server) = World::connected_with(Config::default(), server);
    let mut rogue = Rogue::client(at_server);
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(1, 500)));
    rogue.say(&mut world, &[Body::Window { limit: 1 << 20 }]);
    // Two replies of 500 bytes fill a bundle.
    for round in 0..100 {
        let ids: Vec<_> = (0..50).map(|number| client_id(10_000 + 50 * round + number)).collect();
        let members = ids.iter().map(|id| member(*id, Kind::Request, b""));
        rogue.bundle(&mut world, &members.collect::<Vec<_>>().concat());
        rogue.say(&mut world, &[Body::Cancel(List::from(&ids[..]))]);
        world.run_for(ms(1));
    }
    assert_eq!(world.nodes[1].delivered.len(), 5_000);
    let facts = world.nodes[1].endpoint.session(at_server).unwrap();
    assert_eq!(facts.served, 0);
    assert!(facts.calls <= 1_024, "{} bundles are kept", facts.calls);
}

// SMT [5.7-24]
#[test]
fn each_member_is_judged_alone() {
    let (mut world, _, at_server) = World::connected();
    let mut rogue = Rogue::client(at_server);
    let servers_own = layout().id(100, Side::Server, 0).unwrap();
    let members = [
        member(client_id(100), Kind::Request, b"run"),
        // Twice; of the wrong side; replies to nothing; far beyond the window.
        member(client_id(100), Kind::Request, b"run"),
        member(servers_own, Kind::Request, b"run"),
        member(servers_own, Kind::Reply, b"reply"),
        member(client_id(101), Kind::Reply, b"reply"),
        member(client_id(1 << 30), Kind::OneWay, b"tell"),
        member(client_id(102), Kind::OneWay, b"tell"),
    ];
    rogue.bundle(&mut world, &members.concat());
    world.run_for(ms(10));
    let delivered: Vec<&Bytes> = world.nodes[1].delivered.iter().map(|(_, body)| body).collect();
    assert_eq!(delivered, ["run", "tell"]);
    let statistics = world.nodes[1].endpoint.statistics();
    // The server's own requests: one by a request, one by a reply to no call.
    assert_eq!((statistics.violations, statistics.packets_duplicate), (2, 3));
}

// SMT [5.7-23]
#[test]
fn a_member_of_another_stripe_is_refused() {
    let mut config = Config::default();
    config.stripes_log2 = 1;
    let (mut world, _, at_server) = World::connected_with(config.clone(), config);
    let mut rogue = Rogue::client(at_server).with_ids(striped(1));
    let members = [0, 1].map(|stripe| {
        let id = striped(1).id(100, Side::Client, stripe).unwrap();
        member(id, Kind::OneWay, &[b'0' + stripe as u8])
    });
    rogue.bundle(&mut world, &members.concat());
    let delivered: Vec<&Bytes> = world.nodes[1].delivered.iter().map(|(_, b)| b).collect();
    assert_eq!(delivered, ["0"]);
    assert_eq!(world.nodes[1].endpoint.statistics().violations, 1);
}

/// Each side sends one message under an id: what has begun alone goes on alone.
// SMT [5.7-21]
#[test]
fn a_reply_that_has_begun_alone_is_taken_from_no_bundle() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(2, 100_000)));
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    let rpc = world.call(0, session, body(1, 10));
    world.run_for(ms(1));
    assert!(world.nodes[0].endpoint.memory() > 0, "it has begun");
    let reply = member(rpc.id, Kind::Reply, b"another");
    Rogue::server(session).bundle(&mut world, &reply);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    assert!(world.outcome(0, rpc) == Ok(body(2, 100_000)));
}

// SMT [5.7-34]
#[test]
fn one_way_messages_of_a_bundle_that_is_seen_and_gone_may_have_been_delivered() {
    let (mut world, session, _) = World::connected();
    lose_data_of(&mut world, 0, usize::MAX);
    world.is_recording = true;
    let now = world.now;
    let client = &mut world.nodes[0].endpoint;
    let told = [0, 1].map(|number| {
        let sent = client.send_one_way(now, session, body(number, 64), None);
        sent.unwrap()
    });
    world.flush();
    let ids = [world.sent[0].data().unwrap().header.id];
    let gone = Body::SeenAndGone(List::from(&ids[..]));
    Rogue::server(session).say(&mut world, &[gone]);
    for rpc in told {
        let expected = OneWayOutcome::MayHaveBeenDelivered(CallFailure::Forgotten);
        assert_eq!(world.one_way_outcome(0, rpc), expected);
    }
}

// SMT [5.7-2], [5.7-14]
#[test]
fn a_peer_that_was_not_told_of_bundles_may_send_none() {
    let mut server = Config::default();
    server.bundles = false;
    let (mut world, _, at_server) = World::connected_with(Config::default(), server);
    let mut rogue = Rogue::client(at_server);
    rogue.bundle(&mut world, &member(client_id(100), Kind::Request, b"run"));
    world.run_for(ms(10));
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(world.nodes[1].endpoint.statistics().violations, 1);
}

/// The peer may ask for a member as if it had left alone.
// SMT [5.7-10]
#[test]
fn a_member_leaves_in_its_bundle_alone() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.is_recording = true;
    let rpcs = calls(&mut world, session, 3, 64);
    world.flush();
    let bundle = world.sent[0].data().unwrap().header.id;
    let mut rogue = Rogue::server(session);
    for rpc in rpcs {
        let (ids, whole) = ([rpc.id], [Resend { id: rpc.id, offset: 0, length: u32::MAX }]);
        rogue.say(&mut world, &[Body::Resend(List::from(&whole[..]))]);
        rogue.say(&mut world, &[Body::NeverSeen(List::from(&ids[..]))]);
    }
    world.run_for(ms(100));
    let data = world.sent.iter().filter_map(|sent| sent.data());
    assert!(data.clone().count() > 1);
    assert!(data.map(|data| data.header.id).all(|id| id == bundle), "{}", world.trace());
}

/// The oldest message waits twice then, the second time before all others.
#[test]
fn each_message_is_a_member_once_although_the_window_was_full() {
    let mut server = Config::default();
    server.window = 64;
    server.datagram_limit = 1_472;
    let (mut world, session, _) = World::connected_with(Config::default(), server);
    let mut rogue = Rogue::server(session);
    let now = world.now;
    let client = &mut world.nodes[0].endpoint;
    for number in 0..64 {
        let taken = client.call(now, session, body(number, 300), None);
        assert!(taken.is_ok());
    }
    let more = client.call(now, session, body(64, 300), None);
    assert_eq!(more, Err(Refused::Blocked));
    // There is room before anything has left.
    rogue.say(&mut world, &[Body::Window { limit: 100 }]);
    world.run_for(ms(10));
    let statistics = world.nodes[0].endpoint.statistics();
    // Three fit a bundle.
    assert_eq!((statistics.messages_sent, statistics.bundles_sent), (64, 21));
}
