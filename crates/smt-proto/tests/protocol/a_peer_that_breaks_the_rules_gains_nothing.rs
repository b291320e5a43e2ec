// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer that holds the keys may end its own session, and that is all: no endless work, no places of others.

use smt_proto::Config;
use smt_record::KeyLimits;
use smt_wire::{Body, List, MessageId, PacketType, Resend};

use super::support::configs::ethernet;
use super::support::node::replies_of_asked_length;
use super::support::rogue::Rogue;
use super::support::{Verdict, World, body, ms};

fn asked(length: u32) -> bytes::Bytes {
    length.to_be_bytes().to_vec().into()
}

/// With the key would go the repetitions of what was sealed under it, and the epochs of both sides would drift apart.
#[test]
fn by_acknowledging_an_epoch_that_nobody_has_ended() {
    let mut server = ethernet();
    server.record_size = 64;
    server.first_record_size = 64;
    server.key_limits = KeyLimits::new(4_096, 48, 1 << 20).unwrap();
    let (mut world, client, at_server) = World::connected_with(ethernet(), server);
    world.nodes[1].application = replies_of_asked_length();
    let mut rogue = Rogue::client(at_server);
    // The server does not hear what has arrived of its reply.
    world.rule = Box::new(|datagram, _| {
        if datagram.has(PacketType::Grant) {
            Verdict::Drop
        } else {
            Verdict::Deliver
        }
    });
    let rpc = world.call(0, client, asked(1_000_000));
    world.run_for(ms(50));
    let facts = world.nodes[1].endpoint.session(at_server).unwrap();
    assert_eq!(facts.seal_epoch, 1);
    let acknowledgements = [0, 1].map(|epoch| Body::EpochAck { epoch });
    rogue.say(&mut world, &acknowledgements);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    assert!(world.outcome(0, rpc) == Ok(body(1_000_000, 1_000_000)));
}

/// Eight replies stop, and their server says that it is busy whenever it is asked: a ninth, longer one gets on.
#[test]
fn by_being_busy_for_ever() {
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
    world.rule = Box::new(|datagram, _| {
        if datagram.from == 1 {
            Verdict::Drop
        } else {
            Verdict::Deliver
        }
    });
    // 125 B/us: 5 MB take 40 ms.
    world.rate = 125;
    let rpc = world.call(0, to_honest, asked(5_000_000));
    for _ in 0..500 {
        rogue.say(&mut world, &[Body::Busy(List::from(&ids[..]))]);
        world.run_for(ms(1));
    }
    let reply = world.nodes[0].event(|event| match event {
        smt_proto::Event::Reply { rpc: of, body } => (*of == rpc).then(|| body.len()),
        _ => None,
    });
    assert_eq!(reply, Some(5_000_000));
}

/// To send a byte again, the whole record must be sealed again.
#[test]
fn by_asking_for_a_byte_of_each_record() {
    let (mut world, session, at_server) = World::connected_with(ethernet(), Config::default());
    world.nodes[1].application = replies_of_asked_length();
    let mut rogue = Rogue::client(at_server);
    let rpc = world.call(0, session, asked(60_000_000));
    world.rule = Box::new(|datagram, _| {
        if datagram.has(PacketType::Ack) {
            Verdict::Drop
        } else {
            Verdict::Deliver
        }
    });
    assert!(world.outcome(0, rpc).is_ok());
    let resends: Vec<Resend> = (0..3_648)
        .map(|number| Resend {
            id: rpc.id,
            offset: 2_000 + 16_406 * number,
            length: 1,
        })
        .collect();
    let before = world.nodes[1].endpoint.statistics().packets_resent;
    for _ in 0..5 {
        let lists = resends
            .chunks(64)
            .map(|some| Body::Resend(List::from(some)));
        rogue.say(&mut world, &lists.collect::<Vec<_>>());
    }
    let again = world.nodes[1].endpoint.statistics().packets_resent - before;
    // All that a session may have saved up.
    let most = 64 * 1024 * 1024 / 16_406;
    assert!(
        (3_000..=most).contains(&again),
        "{again} records sealed again"
    );
}
