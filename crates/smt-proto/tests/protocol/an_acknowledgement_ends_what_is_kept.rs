// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer may acknowledge what is not whole, and ask about what it need not ask about (SPEC §9.4).

use bytes::Bytes;
use smt_proto::{Execution, OneWayOutcome, RpcId};
use smt_wire::{Ack, Body, List, MessageId, PacketType, SessionIndex};

use super::support::configs::ethernet;
use super::support::rogue::Rogue;
use super::support::{Answer, Verdict, World, body, ms, us};

/// Application bytes of a message that is granted in several steps.
const LONG: usize = 5_000_000;

/// Says that the message which its receiver sent under this id is not needed any more.
fn acknowledge(rogue: &mut Rogue, world: &mut World, id: MessageId) {
    let ack = [Ack { base: id, bits: 1 }];
    rogue.say(world, &[Body::Ack(List::from(&ack[..]))]);
}

/// A client and a server, of which the latter's application gives no answer of its own.
fn connected() -> (World, SessionIndex, SessionIndex) {
    let (mut world, client, server) = World::connected_with(ethernet(), ethernet());
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    (world, client, server)
}

/// Loses all DATA of a node but record 0 of each message.
fn lose_all_but_record_0(world: &mut World, from: usize) {
    world.rule = Box::new(move |datagram, _| match datagram.data() {
        Some(data) if datagram.from == from && data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
}

/// Messages of the client that are in progress.
fn calls(world: &World, session: SessionIndex) -> usize {
    world.nodes[0].endpoint.session(session).unwrap().calls
}

fn reply(world: &mut World, rpc: RpcId, body: Bytes) {
    let replied = world.nodes[1].endpoint.reply(world.now, rpc, body);
    replied.unwrap();
    world.flush();
}

// SMT [9.4-12]
#[test]
fn a_reply_that_has_not_wholly_left_ends_when_it_is_acknowledged() {
    let (mut world, client, at_server) = connected();
    world.call(0, client, body(1, 10));
    world.run_for(us(100));
    lose_all_but_record_0(&mut world, 1);
    let (rpc, _) = world.nodes[1].delivered[0].clone();
    reply(&mut world, rpc, body(2, LONG));
    world.run_for(us(100));
    assert_eq!(world.nodes[1].endpoint.served_len(), 1);
    acknowledge(&mut Rogue::client(at_server), &mut world, rpc.id);
    assert_eq!(world.nodes[1].endpoint.served_len(), 0);
    world.is_recording = true;
    world.run_for(ms(1));
    let data =
        |from| move |sent: &&super::support::Datagram| sent.from == from && sent.data().is_some();
    assert_eq!(world.sent.iter().filter(data(1)).count(), 0);
}

// SMT [9.4-12]
#[test]
fn a_one_way_message_that_has_not_wholly_left_is_delivered_when_it_is_acknowledged() {
    let (mut world, client, _) = connected();
    lose_all_but_record_0(&mut world, 0);
    let rpc = world.send_one_way(0, client, body(1, LONG));
    world.run_for(us(100));
    acknowledge(&mut Rogue::server(client), &mut world, rpc.id);
    assert_eq!(calls(&world, client), 0);
    assert_eq!(world.one_way_outcome(0, rpc), OneWayOutcome::Delivered);
}

// SMT [9.4-13]
#[test]
fn an_incomplete_request_whose_reply_is_acknowledged_is_dropped() {
    let (mut world, client, at_server) = connected();
    lose_all_but_record_0(&mut world, 0);
    let rpc = world.call(0, client, body(1, LONG));
    world.run_for(us(100));
    assert_eq!(world.nodes[1].endpoint.served_len(), 1);
    acknowledge(&mut Rogue::client(at_server), &mut world, rpc.id);
    let server = &world.nodes[1].endpoint;
    assert_eq!((server.served_len(), server.memory()), (0, 0));
    world.rule = Box::new(|_, _| Verdict::Deliver);
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.execution, Execution::MayHaveRun, "its id is seen");
    assert!(world.nodes[1].delivered.is_empty());
}

// SMT [9.4-14]
#[test]
fn a_request_that_is_worked_on_goes_on_when_its_reply_is_acknowledged() {
    let (mut world, client, at_server) = connected();
    let rpc = world.call(0, client, body(1, 10));
    world.run_for(us(100));
    acknowledge(&mut Rogue::client(at_server), &mut world, rpc.id);
    let (served, _) = world.nodes[1].delivered[0].clone();
    reply(&mut world, served, body(2, 10));
    assert_eq!(world.outcome(0, rpc), Ok(body(2, 10)));
}

// SMT [9.4-15]
#[test]
fn a_call_goes_on_when_its_request_is_acknowledged() {
    let (mut world, client, _) = connected();
    world.rule = Box::new(|_, _| Verdict::Drop);
    let rpc = world.call(0, client, body(1, 10));
    acknowledge(&mut Rogue::server(client), &mut world, rpc.id);
    assert_eq!(calls(&world, client), 1);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(2, 10)));
    assert_eq!(world.outcome(0, rpc), Ok(body(2, 10)));
}

/// The packets of control that the server sends at once when a client asks whether it has a
/// message.
fn answers_to_need_ack(rogue: &mut Rogue, world: &mut World, id: MessageId) -> [usize; 2] {
    world.is_recording = true;
    let before = world.sent.len();
    rogue.say(world, &[Body::NeedAck(List::from(&[id][..]))]);
    let sent = world.sent[before..].iter().filter(|sent| sent.from == 1);
    let grants = sent.clone().filter(|sent| sent.has(PacketType::Grant));
    [sent.count(), grants.count()]
}

// SMT [9.4-16]
#[test]
fn a_question_about_a_request_is_answered_while_that_is_incomplete() {
    let (mut world, client, at_server) = connected();
    let mut rogue = Rogue::client(at_server);
    let whole = world.call(0, client, body(1, 10));
    world.run_for(us(100));
    assert_eq!(answers_to_need_ack(&mut rogue, &mut world, whole.id), [0, 0]);
    lose_all_but_record_0(&mut world, 0);
    let incomplete = world.call(0, client, body(2, LONG));
    world.run_for(us(100));
    assert_eq!(answers_to_need_ack(&mut rogue, &mut world, incomplete.id), [1, 1]);
    reply(&mut world, whole, body(2, 10));
    world.rule = Box::new(|_, _| Verdict::Drop);
    assert_eq!(answers_to_need_ack(&mut rogue, &mut world, whole.id), [0, 0]);
}
