// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A question is answered by the state of what it is about, at once, and no more often than that
//! (SPEC §8, §9.3, §9.4, §9.5).

use std::collections::BTreeMap;

use bytes::Bytes;
use smt_proto::{CallFailure, OneWayOutcome, RpcId};
use smt_record::Side;
use smt_wire::{
    AbortCode, Body, ControlNumber, Kind, List, MessageId, Packet, PacketType, Resend, SessionIndex,
};

use super::a_bundle_is_judged_by_its_members::member;
use super::support::configs::ethernet;
use super::support::rogue::{Rogue, layout};
use super::support::{Answer, Datagram, Verdict, World, body, ms, us};

/// Application bytes of a message of which the end stays lost.
const LONG: usize = 60_000;

/// A session whose server holds requests that begin with `h`, refuses those with `a`, and answers
/// others. The ends of long messages are lost, and so are packets from this node.
fn world_without(lost: Option<usize>) -> (World, SessionIndex, SessionIndex) {
    let (mut world, client, server) = World::connected_with(ethernet(), ethernet());
    world.nodes[1].application = Box::new(|request| match request.first() {
        Some(b'h') => Answer::Hold,
        Some(b'a') => Answer::Abort(AbortCode::Dropped),
        Some(b'l') => Answer::Reply(body(2, LONG)),
        _ => Answer::Reply(request.clone()),
    });
    world.rule = Box::new(move |datagram, _| match datagram.data() {
        _ if Some(datagram.from) == lost => Verdict::Drop,
        Some(data) if data.header.message_length > 50_000 && data.header.offset > 0 => {
            Verdict::Drop
        }
        _ => Verdict::Deliver,
    });
    world.is_recording = true;
    (world, client, server)
}

/// The types of the packets that `node` sends at once when a rogue says this.
fn answers(world: &mut World, rogue: &mut Rogue, node: usize, said: Body<'_>) -> Vec<PacketType> {
    let before = world.sent.len();
    rogue.say(world, &[said]);
    let sent = world.sent[before..].iter().filter(|sent| sent.from == node);
    sent.flat_map(Datagram::packets).map(|packet| packet.packet_type()).collect()
}

fn whole(id: MessageId) -> [Resend; 1] {
    [Resend { id, offset: 0, length: Resend::TO_THE_END }]
}

/// The answers to a question for all of a message.
fn to_resend(world: &mut World, rogue: &mut Rogue, node: usize, id: MessageId) -> Vec<PacketType> {
    let asked = whole(id);
    answers(world, rogue, node, Body::Resend(List::from(&asked[..])))
}

/// The answers to a question whether a message is there.
fn to_need_ack(
    world: &mut World,
    rogue: &mut Rogue,
    node: usize,
    id: MessageId,
) -> Vec<PacketType> {
    let asked = [id];
    answers(world, rogue, node, Body::NeedAck(List::from(&asked[..])))
}

/// The packets of the client when its server has never seen a request.
fn to_never_seen(world: &mut World, client: SessionIndex, id: MessageId) -> Vec<PacketType> {
    let asked = [id];
    let said = Body::NeverSeen(List::from(&asked[..]));
    answers(world, &mut Rogue::server(client), 0, said)
}

/// An id that the honest client has not come to.
fn unused(counter: u64) -> MessageId {
    layout().id(counter, Side::Client, 0).unwrap()
}

fn call(world: &mut World, session: SessionIndex, request: &'static [u8]) -> RpcId {
    let rpc = world.call(0, session, Bytes::from_static(request));
    world.run_for(us(100));
    rpc
}

// SMT [9.3-16], [9.3-18]
#[test]
fn a_question_for_a_reply_is_answered_by_what_has_become_of_the_request() {
    let (mut world, client, at_server) = world_without(Some(1));
    let [held, answered, refused] =
        [&b"h"[..], b"r", b"a"].map(|request| call(&mut world, client, request).id);
    let incomplete = world.call(0, client, body(1, LONG)).id;
    world.run_for(us(100));
    let mut rogue = Rogue::client(at_server);
    let gone = unused(1_000);
    rogue.say(&mut world, &[Body::Cancel(List::from(&[gone][..]))]);
    let expected = [
        (held, PacketType::Busy),
        (answered, PacketType::Data),
        (refused, PacketType::Abort),
        (incomplete, PacketType::Grant),
        (unused(1_001), PacketType::NeverSeen),
        (gone, PacketType::SeenAndGone),
    ];
    for (id, answer) in expected {
        assert_eq!(to_resend(&mut world, &mut rogue, 1, id), [answer], "{id:?}");
    }
}

// SMT [9.3-19], [9.4-8]
#[test]
fn a_question_for_a_request_is_answered_by_what_has_become_of_the_call() {
    let (mut world, client, _) = world_without(None);
    let [held, ended, given_up] =
        [&b"h"[..], b"r", b"h"].map(|request| call(&mut world, client, request));
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, given_up));
    let mut rogue = Rogue::server(client);
    let expected =
        [(held, vec![PacketType::Data]), (ended, vec![PacketType::Ack]), (given_up, Vec::new())];
    world.flush();
    for (rpc, answer) in expected {
        assert_eq!(to_resend(&mut world, &mut rogue, 0, rpc.id), answer, "{rpc:?}");
    }
    assert_eq!(to_need_ack(&mut world, &mut rogue, 0, ended.id), [PacketType::Ack]);
}

/// Delivered alone and in a bundle; a request, which is over; one that is not whole, and one that
/// never came.
// SMT [4.2-9], [5.7-20], [8-8], [8-9], [9.5-1], [9.5-3]
#[test]
fn a_question_whether_a_message_has_come_is_answered_by_what_has_become_of_it() {
    let (mut world, _, at_server) = world_without(None);
    let mut rogue = Rogue::client(at_server);
    let before = world.sent.len();
    let alone = rogue.message(&mut world, Kind::OneWay, b"alone");
    assert!(world.sent[before].has(PacketType::Ack), "without being asked");
    let (told, asked) = (unused(1_000), unused(1_001));
    let members = [member(told, Kind::OneWay, b"told"), member(asked, Kind::Request, b"asked")];
    let bundle = rogue.message(&mut world, Kind::Bundle, &members.concat());
    let acks = [smt_wire::Ack { base: asked, bits: 1 }];
    rogue.say(&mut world, &[Body::Ack(List::from(&acks[..]))]);
    let (incomplete, _) = rogue.first_of(&mut world, Kind::OneWay, &body(1, LONG));
    let expected = [
        (alone, PacketType::Ack),
        (bundle, PacketType::Ack),
        (told, PacketType::Ack),
        (asked, PacketType::SeenAndGone),
        (incomplete, PacketType::Grant),
        (unused(1_002), PacketType::NeverSeen),
    ];
    for (id, answer) in expected {
        assert_eq!(to_need_ack(&mut world, &mut rogue, 1, id), [answer], "{id:?}");
    }
}

/// How often a node says how far a message is, and how often it asks for the rest of it, while its
/// peer asks every half a millisecond for so long.
fn told_and_asked(
    world: &mut World,
    rogue: &mut Rogue,
    node: usize,
    said: Body<'_>,
    halves: usize,
) -> [usize; 2] {
    let before = world.sent.len();
    for _ in 0..halves {
        rogue.say(world, &[said]);
        world.run_for(us(500));
    }
    let sent = world.sent[before..].iter().filter(|sent| sent.from == node);
    [PacketType::Grant, PacketType::Resend]
        .map(|kind| sent.clone().filter(|sent| sent.has(kind)).count())
}

/// The rest was on its way less than an interval ago; then it is asked for after 5, 10, 20, 40 and
/// 80 ms, or a quarter more each.
#[track_caller]
fn assert_asked_rarely(world: &mut World, rogue: &mut Rogue, node: usize, said: Body<'_>) {
    let soon = told_and_asked(world, rogue, node, said, 8);
    assert_eq!(soon, [8, 0], "nothing is asked for within the interval");
    let [told, asked] = told_and_asked(world, rogue, node, said, 300);
    assert!(told >= 300, "{told}");
    assert!((4..=5).contains(&asked), "{asked} questions in 150 ms");
}

// SMT [9.2-4], [9.3-17]
#[test]
fn the_rest_of_a_request_is_asked_for_beside_the_answer_no_more_often_than_by_itself() {
    let (mut world, client, at_server) = world_without(Some(1));
    let id = world.call(0, client, body(1, LONG)).id;
    world.run_for(us(100));
    world.rule = Box::new(|_, _| Verdict::Drop);
    let asked = whole(id);
    let asked = Body::Resend(List::from(&asked[..]));
    assert_asked_rarely(&mut world, &mut Rogue::client(at_server), 1, asked);
}

// SMT [9.4-9], [9.4-10]
#[test]
fn the_rest_of_a_reply_is_asked_for_beside_the_answer_no_more_often_than_by_itself() {
    let (mut world, client, _) = world_without(None);
    let id = call(&mut world, client, b"l").id;
    world.rule = Box::new(|_, _| Verdict::Drop);
    let asked = [id];
    let asked = Body::NeedAck(List::from(&asked[..]));
    assert_asked_rarely(&mut world, &mut Rogue::server(client), 0, asked);
}

/// A reply that has begun acknowledges its request, of which nothing is kept any more.
// SMT [9.4-2]
#[test]
fn a_request_whose_reply_has_begun_does_not_leave_again() {
    let (mut world, client, _) = world_without(Some(1));
    let waiting = call(&mut world, client, b"l").id;
    assert_eq!(to_never_seen(&mut world, client, waiting), [PacketType::Data]);
    let (mut world, client, _) = world_without(None);
    let begun = call(&mut world, client, b"l").id;
    assert!(world.nodes[0].endpoint.memory() > 0);
    assert_eq!(to_never_seen(&mut world, client, begun), []);
}

// SMT [9.5-4]
#[test]
fn a_one_way_message_that_is_seen_and_gone_or_whose_session_ends_may_have_been_delivered() {
    for is_gone in [true, false] {
        let (mut world, client, _) = world_without(Some(0));
        let rpc = world.send_one_way(0, client, body(1, 100));
        let ids = [rpc.id];
        let said = match is_gone {
            true => Body::SeenAndGone(List::from(&ids[..])),
            false => Body::Close { code: 0 },
        };
        Rogue::server(client).say(&mut world, &[said]);
        let outcome = world.one_way_outcome(0, rpc);
        let OneWayOutcome::MayHaveBeenDelivered(reason) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(reason == CallFailure::Forgotten, is_gone, "{reason}");
    }
}

/// The bodies of the control packets that the server sends at once when a rogue says this.
fn said_back(world: &mut World, rogue: &mut Rogue, said: Body<'_>) -> Vec<(u16, Body<'static>)> {
    let before = world.sent.len();
    rogue.say(world, &[said]);
    said_since(world, before)
}

/// The bodies of the control packets among the datagrams that the server has sent since so many.
fn said_since(world: &World, before: usize) -> Vec<(u16, Body<'static>)> {
    let sent = world.sent[before..].iter().filter(|sent| sent.from == 1);
    let bodies = sent.flat_map(Datagram::packets).filter_map(|packet| match packet {
        Packet::Control(control) => {
            let body = match control.body {
                Body::Pong(value) => Body::Pong(value),
                Body::ProbeAck { size } => Body::ProbeAck { size },
                Body::Window { limit } => Body::Window { limit },
                other => panic!("{other:?}"),
            };
            Some((control.header.number.stripe, body))
        }
        _ => None,
    });
    bodies.collect()
}

// SMT [8-19], [8-20], [8-21]
#[test]
fn ping_probe_and_window_request_are_answered_by_what_they_ask_for() {
    let (mut world, _, at_server) = world_without(None);
    let mut rogue = Rogue::client(at_server);
    assert_eq!(said_back(&mut world, &mut rogue, Body::Ping(77)), [(0, Body::Pong(77))]);
    let probed = said_back(&mut world, &mut rogue, Body::Probe { padding: 500 });
    assert_eq!(probed, [(0, Body::ProbeAck { size: 28 + 500 + 16 })]);
    let asked = said_back(&mut world, &mut rogue, Body::WindowRequest);
    assert_eq!(asked, [(0, Body::Window { limit: 4_096 })]);
}

// SMT [3-1]
#[test]
fn packets_before_one_that_is_none_are_answered_and_those_behind_it_are_not() {
    let (mut world, _, at_server) = world_without(None);
    let rogue = Rogue::client(at_server);
    let [before, mut bad, behind] = [1, 2, 3].map(|value| {
        let number = ControlNumber { stripe: 0, counter: 900 + value };
        rogue.control(&world, number, &Body::Ping(value))
    });
    // The words of its header are not those of its type. Its length is right.
    bad.bytes[4] ^= 0x10;
    let bytes = [&before.bytes[..], &bad.bytes, &behind.bytes].concat();
    let sent = world.sent.len();
    world.hand_in(&Datagram { bytes, ..before });
    assert_eq!(said_since(&world, sent), [(0, Body::Pong(1))]);
    assert_eq!(world.nodes[1].endpoint.statistics().packets_malformed, 1);
}

/// The answer ends the questions, though the peer has the call.
// SMT [8-10], [8-12]
#[test]
fn a_cancelled_call_is_not_asked_about_once_it_is_answered() {
    let (mut world, client, _) = world_without(None);
    let rpc = call(&mut world, client, b"h");
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, rpc));
    world.run_for(ms(1_000));
    let mut counted: BTreeMap<PacketType, usize> = BTreeMap::new();
    for packet in world.sent.iter().flat_map(Datagram::packets) {
        *counted.entry(packet.packet_type()).or_default() += 1;
    }
    let of = |kind| counted.get(&kind).copied();
    assert_eq!((of(PacketType::Cancel), of(PacketType::Seen)), (Some(1), Some(1)));
}
