// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Named values travel beside a message's body, and a body is a chain of buffers (SPEC §5.8).

use bytes::Bytes;
use smt_proto::{
    CallError, CallFailure, Event, Execution, Failure, Metadata, OutgoingMessage, RpcId,
};
use smt_wire::{Kind, SessionIndex};

use super::support::rogue::Rogue;
use super::support::{Answer, World, body, ms};

fn metadata(value: &[u8]) -> Metadata {
    let mut metadata = Metadata::new();
    metadata.push("trace", value).unwrap();
    metadata.push("trace", b"").unwrap();
    metadata
}

/// The parts of a body, and the body.
fn chain(length: usize) -> (Vec<Bytes>, Bytes) {
    let whole = body(7, length);
    let cuts = [0, length / 7, length / 5, length / 2, length];
    let parts = cuts.windows(2).map(|cut| whole.slice(cut[0]..cut[1]));
    (parts.collect(), whole)
}

fn call(world: &mut World, session: SessionIndex, message: OutgoingMessage) -> RpcId {
    let (now, client) = (world.now, &mut world.nodes[0].endpoint);
    client.call(now, session, message, None).unwrap()
}

// SMT [5.8-1]
#[test]
fn metadata_and_chains_arrive_equal_in_messages_of_every_length_and_their_replies() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    for length in [0, 1, 100, 1_000, 1_094, 1_095, 20_000, 300_000] {
        let (parts, whole) = chain(length);
        let message = OutgoingMessage::new(parts.clone()).with_metadata(metadata(b"request"));
        let rpc = call(&mut world, session, message);
        world.run_for(ms(20));
        let (held, delivered) = world.nodes[1].delivered.pop().unwrap();
        assert_eq!((held.id, delivered), (rpc.id, whole.clone()));
        assert_eq!(world.nodes[1].metadata.pop(), Some(metadata(b"request")));
        let reply = OutgoingMessage::new(parts).with_metadata(metadata(b"reply"));
        let now = world.now;
        world.nodes[1].endpoint.reply(now, held, reply).unwrap();
        let replied = world.wait(0, |event| match event {
            Event::Reply { rpc: of, body, metadata } if *of == rpc => {
                Some((body.clone(), metadata.clone()))
            }
            _ => None,
        });
        assert_eq!(replied, (whole, metadata(b"reply")));
    }
}

#[test]
fn metadata_arrives_in_one_way_messages_failures_and_bundles() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|request| {
        let mut failure = Failure::refusal(4, "no");
        failure.metadata = metadata(request);
        Answer::Fail(failure)
    });
    let values: Vec<Bytes> = (0..10_u8).map(|value| Bytes::from(vec![value; 20])).collect();
    let mut calls = Vec::new();
    for value in &values {
        let message = OutgoingMessage::new(value.clone()).with_metadata(metadata(value));
        let now = world.now;
        let client = &mut world.nodes[0].endpoint;
        client.send_one_way(now, session, message.clone(), None).unwrap();
        calls.push(call(&mut world, session, message));
    }
    for (rpc, value) in calls.into_iter().zip(&values) {
        let CallFailure::Refused(failure) = world.outcome(0, rpc).unwrap_err().reason else {
            panic!("it was refused");
        };
        assert_eq!(failure.metadata, metadata(value));
        assert_eq!((failure.code, failure.text.as_str()), (4, "no"));
    }
    assert!(world.nodes[0].endpoint.statistics().bundles_sent > 0);
    assert!(world.nodes[1].endpoint.statistics().bundles_sent > 0);
    let server = &world.nodes[1];
    assert_eq!(server.delivered.len(), 20);
    for ((_, body), found) in server.delivered.iter().zip(&server.metadata) {
        assert_eq!(*found, metadata(body));
    }
}

#[test]
fn metadata_counts_in_the_length_of_a_message_and_in_the_memory_of_one_that_waits() {
    let mut server = smt_proto::Config::default();
    server.message_limit = 100;
    let (mut world, session, _) = World::connected_with(Default::default(), server);
    world.nodes[1].endpoint.queue_messages();
    let fits = 100 - metadata(b"x").encoded_len();
    let (now, client) = (world.now, &mut world.nodes[0].endpoint);
    for (length, is_taken) in [(fits, true), (fits + 1, false)] {
        let message = OutgoingMessage::new(body(1, length)).with_metadata(metadata(b"x"));
        assert_eq!(client.call(now, session, message, None).is_ok(), is_taken);
    }
    world.run_for(ms(1));
    assert!(world.nodes[1].endpoint.memory() >= 100);
    let now = world.now;
    let accepted = world.nodes[1].endpoint.accept(now).unwrap();
    assert_eq!((accepted.body.len(), accepted.metadata), (fits, metadata(b"x")));
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
}

// SMT [5.8-3], [5.8-4]
#[test]
fn a_message_whose_metadata_is_malformed_ends_alone() {
    let (mut world, session, at_server) = World::connected();
    let mut rogue = Rogue::client(at_server);
    rogue.has_metadata = true;
    // A length beyond the message's end.
    let id = rogue.message(&mut world, Kind::Request, b"\xFF\xFFbody");
    rogue.message(&mut world, Kind::OneWay, b"");
    assert!(world.nodes[1].delivered.is_empty());
    assert_eq!(world.nodes[1].endpoint.statistics().violations, 2);
    rogue.message(&mut world, Kind::OneWay, b"\0\0body");
    assert_eq!(world.nodes[1].delivered[0].1, "body");
    let served = world.nodes[1].endpoint.served_len();
    assert_eq!(served, 1, "ABORT waits for its acknowledgement: {id:?}");
    // The session lives.
    let rpc = world.call(0, session, body(1, 100));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 100)));
}

// SMT [5.8-3], [5.8-4]
#[test]
fn a_call_whose_reply_has_malformed_metadata_may_have_run() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    let mut rogue = Rogue::server(session);
    rogue.has_metadata = true;
    rogue.answer(&mut world, (rpc.id, Kind::Reply), b"\0\x01");
    let expected = CallError { reason: CallFailure::Malformed, execution: Execution::MayHaveRun };
    assert_eq!(world.outcome(0, rpc), Err(expected));
    assert_eq!(world.nodes[0].endpoint.statistics().violations, 1);
}
