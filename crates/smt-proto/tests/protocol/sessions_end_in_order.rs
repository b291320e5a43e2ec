// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CLOSE, RESET and draining: who is told what, and what may have run.

use smt_carrier::Path;
use smt_proto::{CallFailure, CloseCode, Config, ConnectError, Event, Execution, SessionEnd};
use smt_wire::{Body, PacketType, Reset, SessionIndex};

use super::support::forge::{SESSION, flipped};
use super::support::rogue::Rogue;
use super::support::{Answer, Datagram, Verdict, World, body, ms};

fn end_of(world: &mut World, node: usize) -> SessionEnd {
    world.wait(node, |event| match event {
        Event::SessionEnded { end, .. } => Some(end.clone()),
        _ => None,
    })
}

// SMT [12.3-1], [8-22]
#[test]
fn a_close_reaches_the_peer_with_its_code() {
    for code in [
        CloseCode::Done,
        CloseCode::ShuttingDown,
        CloseCode::UsedUp,
        CloseCode::Violation,
        CloseCode::Unknown(99),
    ] {
        let (mut world, client, server) = World::connected();
        world.nodes[1].application = Box::new(|_| Answer::Hold);
        let rpc = world.call(0, client, body(1, 10));
        world.run_for(ms(1));
        world.nodes[1].endpoint.close(server, code);
        let error = world.outcome(0, rpc).unwrap_err();
        assert_eq!(error.execution, Execution::MayHaveRun);
        assert_eq!(error.reason, CallFailure::SessionEnded(SessionEnd::ClosedByPeer(code)));
        assert_eq!(end_of(&mut world, 1), SessionEnd::ClosedHere);
        assert_eq!(end_of(&mut world, 0), SessionEnd::ClosedByPeer(code));
        assert!(world.nodes.iter().all(|node| node.endpoint.sessions_len() == 0));
    }
}

// SMT [12.1-2], [12.3-2]
#[test]
fn a_packet_after_a_lost_close_is_answered_by_reset() {
    let (mut world, client, server) = World::connected();
    world.rule =
        Box::new(
            |datagram, _| {
                if datagram.has(PacketType::Close) { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    world.nodes[1].endpoint.close(server, CloseCode::Done);
    world.run_for(ms(1));
    assert_eq!(world.nodes[0].endpoint.sessions_len(), 1);
    let rpc = world.call(0, client, body(1, 100));
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.reason, CallFailure::SessionEnded(SessionEnd::Reset));
    assert_eq!(error.execution, Execution::MayHaveRun);
}

/// A RESET as the server would send it, got from a packet for its closed session.
fn reset(world: &mut World, client: SessionIndex, server: SessionIndex) -> Datagram {
    world.rule = Box::new(|datagram, _| {
        let is_hidden = datagram.has(PacketType::Close) || datagram.has(PacketType::Reset);
        if is_hidden { Verdict::Drop } else { Verdict::Deliver }
    });
    world.nodes[1].endpoint.close(server, CloseCode::Done);
    world.is_recording = true;
    world.call(0, client, body(1, 100));
    world.run_for(ms(1));
    world.sent.iter().find(|sent| sent.has(PacketType::Reset)).cloned().unwrap()
}

// SMT [12.1-5]
#[test]
fn a_reset_counts_only_with_its_token() {
    let (mut world, client, server) = World::connected();
    let reset = reset(&mut world, client, server);
    for at in 12..Reset::LEN {
        let bytes = flipped(&reset.bytes, at);
        world.hand_in(&Datagram { bytes, ..reset.clone() });
        assert_eq!(world.nodes[0].endpoint.sessions_len(), 1, "byte {at}");
    }
    world.hand_in(&reset);
    assert_eq!(world.nodes[0].endpoint.sessions_len(), 0);
    assert_eq!(end_of(&mut world, 0), SessionEnd::Reset);
}

/// A peer that confirms again may have another token by then.
// SMT [6.5-7]
#[test]
fn the_token_of_the_confirm_that_came_last_counts() {
    let (mut world, client, server) = World::connected();
    let reset = Reset { index: client, token: [0; 16] };
    let mut bytes = vec![0; Reset::LEN];
    reset.emit(smt_wire::VERSION, (&mut bytes[..]).try_into().unwrap());
    let reset = Datagram { at: world.now, from: 0, to: 1, bytes, is_trimmed: false };
    world.hand_in(&reset);
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 1);
    // Its token is all zeros.
    Rogue::client(server).say(&mut world, &[Body::Confirm]);
    world.hand_in(&reset);
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 0);
}

/// An attacker who could ask for tokens of indices that are live, or will be, could end sessions.
// SMT [12.1-2], [12.1-3]
#[test]
fn resets_are_sent_only_for_indices_that_are_closed_for_good() {
    let (mut world, client, server) = World::connected();
    world.is_recording = true;
    world.call(0, client, body(1, 100));
    let template = world.sent.iter().find(|sent| sent.data().is_some()).cloned().unwrap();
    world.run_for(ms(100));
    world.sent.clear();
    let other = SessionIndex::new(7, 1);
    let unissued = SessionIndex(server.0 + 1);
    for index in
        [other, unissued, SessionIndex(0), SessionIndex(server.0 + 1_000), SessionIndex::new(1, 0)]
    {
        let mut bytes = template.bytes.clone();
        bytes[SESSION].copy_from_slice(&index.0.to_be_bytes());
        world.hand_in(&Datagram { bytes, ..template.clone() });
    }
    // A live one, from elsewhere.
    let mut world3 = World::new(vec![Config::default(), Config::default(), Config::default()]);
    std::mem::swap(&mut world3.nodes[0], &mut world.nodes[0]);
    std::mem::swap(&mut world3.nodes[1], &mut world.nodes[1]);
    world3.is_recording = true;
    world3.now = world.now;
    world3.hand_in(&Datagram { from: 2, ..template });
    assert!(world.sent.is_empty() && world3.sent.is_empty());
}

// SMT [12.1-3]
#[test]
fn a_reset_is_never_answered_and_never_larger_than_its_cause() {
    let (mut world, client, server) = World::connected();
    let reset = reset(&mut world, client, server);
    world.sent.clear();
    // To the closed index, in both directions.
    let mut bytes = reset.bytes.clone();
    bytes[SESSION].copy_from_slice(&server.0.to_be_bytes());
    world.hand_in(&Datagram { from: 0, to: 1, bytes, ..reset.clone() });
    assert!(world.sent.is_empty());
    // The shortest DATA packet has 37 bytes.
    let mut data = vec![0; 37];
    smt_wire::DataHeader {
        epoch: 0,
        retransmit: false,
        session: server,
        id: smt_wire::MessageId(0),
        message_length: 40,
        offset: 0,
    }
    .emit(1, (&mut data[..36]).try_into().unwrap());
    world.hand_in(&Datagram { from: 0, to: 1, bytes: data, ..reset });
    assert_eq!(world.sent.len(), 1);
    assert!(world.sent[0].bytes.len() < 37);
}

#[test]
fn resets_are_bounded_in_rate() {
    let (mut world, client, server) = World::connected();
    reset(&mut world, client, server);
    let template = world.sent.iter().find(|sent| sent.data().is_some()).cloned().unwrap();
    world.sent.clear();
    for _ in 0..10_000 {
        world.now = world.now + super::support::us(100);
        world.hand_in(&template);
    }
    let sent = world.sent.iter().filter(|sent| sent.from == 1).count();
    assert!((900..=1_101).contains(&sent), "{sent} in a second");
}

/// A peer that forgets the sessions of its earlier life, with a durable boot number and key.
// SMT [12.1-2]
#[test]
fn a_server_that_restarted_says_so() {
    let mut server = Config::default();
    server.durable_boot = true;
    let (mut world, client, _) = World::connected_with(Config::default(), server.clone());
    server.boot = 2;
    server.accept = true;
    world.nodes[1] = super::support::Node::new(1, server);
    let rpc = world.call(0, client, body(1, 100));
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.reason, CallFailure::SessionEnded(SessionEnd::Reset));
}

#[test]
fn a_server_that_shuts_down_refuses_new_requests_and_ends_the_others() {
    let (mut world, client, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let first = world.call(0, client, body(1, 10));
    world.run_for(ms(1));
    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    let second = world.call(0, client, body(2, 10));
    let error = world.outcome(0, second).unwrap_err();
    assert_eq!((error.reason, error.execution), (CallFailure::ShuttingDown, Execution::DidNotRun));
    let (held, _) = world.nodes[1].delivered[0].clone();
    let now = world.now;
    world.nodes[1].endpoint.reply(now, held, body(3, 10)).unwrap();
    assert_eq!(world.outcome(0, first), Ok(body(3, 10)));
    assert_eq!(world.nodes[1].delivered.len(), 1);
    world.start_connect(0, 1);
    world.run_for(ms(100));
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 1, "no client is accepted");
}

/// The original goes on with the keys, the numbers and the peers.
// SMT [16-1]
#[test]
fn an_endpoint_that_is_a_copy_says_nothing_more_and_gets_nothing() {
    let (mut world, client, server) = World::connected();
    world.nodes[0].application = Box::new(|_| Answer::Hold);
    let rpc = world.call(0, client, body(1, 100));
    world.call(1, server, body(2, 100));
    world.is_recording = true;
    world.nodes[0].endpoint.leave_to_original();
    assert_eq!(end_of(&mut world, 0), SessionEnd::Copied);
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.reason, CallFailure::SessionEnded(SessionEnd::Copied));
    let (now, path) = (world.now, Path::to(world.nodes[1].address));
    let copy = &mut world.nodes[0].endpoint;
    let connected = copy.connect(now, path, "server", ms(1_000));
    assert_eq!(connected, Err(ConnectError::Copied));
    // The server asks about its call, and is not told that there is no session.
    world.run_for(ms(1_000));
    assert!(world.sent.iter().any(|sent| sent.from == 1));
    assert!(world.sent.iter().all(|sent| sent.from == 1), "{}", world.trace());
}

// SMT [11-1]
#[test]
fn garbage_ends_nothing() {
    let mut random = super::support::Random::from_env();
    let (mut world, client, server) = World::connected();
    for _ in 0..20_000 {
        let node = random.below(2);
        let length = random.below(200);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.any() as u8).collect();
        let types = PacketType::ALL;
        if length > 30 && random.percent(90) {
            let of = types[random.below(types.len())];
            bytes[0] = 1;
            bytes[1] = of as u8;
            bytes[4] = if of == PacketType::Data { 0xB0 } else { 0x50 };
            bytes[6..8].copy_from_slice(&(length as u16).to_be_bytes());
            bytes[SESSION].copy_from_slice(&[client, server][node].0.to_be_bytes());
        }
        let datagram =
            Datagram { is_trimmed: false, at: world.now, from: 1 - node, to: node, bytes };
        world.hand_in(&datagram);
    }
    let rpc = world.call(0, client, body(1, 10_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 10_000)));
}

#[test]
fn a_server_that_shuts_down_asks_soon_whether_its_replies_have_arrived() {
    let (mut world, client, _) = World::connected();
    let rpc = world.call(0, client, body(1, 10));
    world.outcome(0, rpc).unwrap();
    assert_eq!(world.nodes[1].endpoint.served_len(), 1, "kept until it is acknowledged");
    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    world.run_for(ms(3));
    assert_eq!(world.nodes[1].endpoint.served_len(), 0);
}

#[test]
fn a_server_that_shuts_down_refuses_requests_that_wait_behind_unacknowledged_replies() {
    let mut config = Config::default();
    config.memory_max = 1 << 20;
    let (mut world, client, _) = World::connected_with(Config::default(), config);
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(1, 300_000)));
    world.rule = Box::new(|datagram, _| match datagram.from {
        1 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    // They leave in one bundle, so all are taken before the first is answered.
    let calls = world.start_calls(0, client, (0..8).map(|_| body(2, 10)));
    world.run_for(ms(1));
    assert_eq!(world.nodes[1].delivered.len(), 1, "its reply is kept");

    let now = world.now;
    world.nodes[1].endpoint.drain(now);
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.outcome(0, calls[0]).unwrap();
    for call in &calls[1..] {
        let error = world.outcome(0, *call).map(drop).unwrap_err();
        assert_eq!(
            (error.reason, error.execution),
            (CallFailure::ShuttingDown, Execution::DidNotRun)
        );
    }
    assert_eq!(world.nodes[1].delivered.len(), 1);
}
