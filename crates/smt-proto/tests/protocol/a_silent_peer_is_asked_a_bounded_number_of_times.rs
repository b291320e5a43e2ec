// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every state has a deadline and a back-off: in Homa/Linux one dead client causes 300,000 NEED_ACK
//! a second.

use std::collections::BTreeMap;
use std::time::Duration;

use smt_proto::{CallFailure, Config, Event, Execution, SessionEnd, Time};
use smt_wire::{Body, Packet, PacketType, SessionIndex};

use super::support::configs::ethernet;
use super::support::node::replies_of_asked_length;
use super::support::{Answer, Datagram, Verdict, World, body, ms};

/// From now on nothing reaches `node` and nothing leaves it.
fn silence(world: &mut World, node: usize) {
    world.rule = Box::new(move |datagram, _| {
        if datagram.from == node || datagram.to == node { Verdict::Drop } else { Verdict::Deliver }
    });
}

/// Counts the server's packets in ten minutes to a client that died when its calls had been
/// answered.
#[test]
fn a_dead_client_is_asked_a_bounded_number_of_times() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    for number in 0..100 {
        world.call(0, session, body(number, 100));
    }
    world.run_for(ms(1));
    silence(&mut world, 0);
    let now = world.now;
    let requests: Vec<_> = world.nodes[1].delivered.iter().map(|(rpc, _)| *rpc).collect();
    for rpc in requests {
        world.nodes[1].endpoint.reply(now, rpc, body(1, 100)).unwrap();
    }
    world.is_recording = true;
    world.run_for(ms(60_000));
    let asked = world.sent.iter().filter(|sent| sent.has(PacketType::NeedAck)).count();
    assert!((1..=80).contains(&asked), "{asked} NEED_ACK");
    assert_eq!(world.nodes[1].endpoint.served_len(), 0);
    world.sent.clear();
    world.run_for(ms(700_000));
    let later = world.sent.iter().filter(|sent| sent.from == 1).count();
    assert!(later <= 1, "only the idle close");
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 0);
}

/// A client that dies in the middle of a long reply, and one in the middle of a long request.
#[test]
fn a_client_that_dies_in_the_middle_is_asked_a_bounded_number_of_times() {
    for is_reply in [true, false] {
        let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
        if is_reply {
            world.nodes[1].application = replies_of_asked_length();
        }
        let request =
            if is_reply { 5_000_000_u32.to_be_bytes().to_vec().into() } else { body(1, 5_000_000) };
        world.call(0, session, request);
        world.run_for(super::support::us(60));
        assert!(world.nodes.iter().any(|node| node.endpoint.memory() > 0));
        silence(&mut world, 0);
        // Bytes that were granted before still leave.
        world.run_for(ms(1));
        world.is_recording = true;
        world.run_for(ms(60_000));
        let asked = world.sent.iter().filter(|sent| sent.from == 1).count();
        assert!(asked <= 150, "{asked} packets");
        assert_eq!(world.nodes[1].endpoint.served_len(), 0);
        assert_eq!(world.nodes[1].endpoint.memory(), 0);
    }
}

fn dead_server(world: &mut World, session: SessionIndex) {
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    silence(world, 1);
    let began = world.now;
    world.is_recording = true;
    let error = world.outcome(0, rpc).unwrap_err();
    assert_eq!(error.execution, Execution::MayHaveRun);
    assert!(matches!(error.reason, CallFailure::SessionEnded(SessionEnd::Silent(_))));
    let took = world.now.since(began);
    assert!((ms(2_000)..ms(2_600)).contains(&took), "{took:?}");
    let sent = world.sent.iter().filter(|sent| sent.from == 0).count();
    assert!(sent <= 20, "{sent} packets");
    assert_eq!(world.nodes[0].endpoint.sessions_len(), 0);
    assert_eq!(world.nodes[0].endpoint.poll_timeout(), None);
}

// SMT [9.9-1]
#[test]
fn a_dead_server_ends_the_session_after_two_seconds() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    dead_server(&mut world, session);
}

/// Questions have backed off to two a second when the path fails for most of the two seconds.
// SMT [9.9-5]
#[test]
fn a_peer_is_not_declared_dead_before_it_was_asked_often() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    world.call(0, session, body(1, 100));
    world.run_for(ms(60_000));
    let mut outage = None;
    world.rule = Box::new(move |datagram, _| {
        let began = *outage.get_or_insert(datagram.at);
        if datagram.at < began + ms(1_550) { Verdict::Drop } else { Verdict::Deliver }
    });
    world.run_for(ms(10_000));
    assert!(world.nodes[0].endpoint.session(session).is_some());
}

#[test]
fn a_server_that_works_for_long_does_not_end_the_session() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(300_000));
    let (held, _) = world.nodes[1].delivered[0].clone();
    let now = world.now;
    world.nodes[1].endpoint.reply(now, held, body(2, 7)).unwrap();
    assert_eq!(world.outcome(0, rpc), Ok(body(2, 7)));
}

/// The hint of an ICMP message, forged, while packets are lost.
// SMT [9.9-8]
#[test]
fn a_hint_that_a_peer_is_unreachable_only_causes_a_question() {
    let (mut world, session, at_server) = World::connected();
    world.nodes[0].application = Box::new(|_| Answer::Hold);
    world.call(1, at_server, body(1, 10));
    world.run_for(ms(1));
    // The first questions are lost, and the server's own as long.
    let end = world.now + ms(300);
    world.rule = Box::new(
        move |datagram, _| {
            if datagram.at < end { Verdict::Drop } else { Verdict::Deliver }
        },
    );
    let now = world.now;
    let server = world.nodes[1].address;
    world.nodes[0].endpoint.handle_unreachable(now, server);
    world.run_for(ms(60_000));
    assert!(world.nodes[0].endpoint.session(session).is_some());
    silence(&mut world, 1);
    let now = world.now;
    world.nodes[0].endpoint.handle_unreachable(now, server);
    let end = world.wait(0, |event| match event {
        Event::SessionEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    assert!(matches!(end, SessionEnd::Silent(_)));
}

/// Messages that wait for our own grants are no sign that the peer is gone.
#[test]
fn replies_that_wait_for_our_grants_do_not_end_the_session() {
    let mut client = ethernet();
    client.incoming_max = 64 * 1024;
    let (mut world, session, _) = World::connected_with(client, ethernet());
    world.nodes[1].application = replies_of_asked_length();
    // 25 B/us: 20 replies of 10 MB take eight seconds, one after the other.
    world.rate = 25;
    let calls: Vec<_> = (0..20)
        .map(|_| world.call(0, session, 10_000_000_u32.to_be_bytes().to_vec().into()))
        .collect();
    for rpc in calls {
        assert_eq!(world.outcome(0, rpc).map(|reply| reply.len()), Ok(10_000_000));
    }
    assert_eq!(world.nodes[1].delivered.len(), 20);
}

/// The same in the other direction: requests that wait long for grants are not dropped.
#[test]
fn requests_that_wait_for_the_servers_grants_are_not_forgotten() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.nodes[1].application = Box::new(|_| Answer::Reply(body(1, 1)));
    world.rate = 10;
    let calls: Vec<_> =
        (0..20).map(|number| world.call(0, session, body(number, 10_000_000))).collect();
    for rpc in calls {
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 1)));
    }
}

// SMT [10-3]
#[test]
fn an_idle_session_is_closed_by_the_server_after_ten_minutes() {
    let (mut world, session, _) = World::connected();
    world.run_for(ms(590_000));
    assert!(world.nodes[0].endpoint.session(session).is_some());
    let end = world.wait(0, |event| match event {
        Event::SessionEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    assert_eq!(end, SessionEnd::ClosedByPeer(smt_proto::CloseCode::Idle));
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 0);
    assert!(world.nodes.iter().all(|node| node.endpoint.poll_timeout().is_none()));
}

/// One question is lost, then this process is stopped for three seconds: it must ask again before
/// it gives up.
fn stopped(then: Verdict) -> (World, SessionIndex) {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.run_for(ms(6));
    world.is_recording = true;
    world.rule = Box::new(move |_, _| then.clone());
    world.now = world.now + ms(3_000);
    let now = world.now;
    world.nodes[0].endpoint.handle_timeout(now);
    world.flush();
    (world, session)
}

// SMT [9.9-7], [9.9-6]
#[test]
fn a_process_that_was_stopped_asks_before_it_gives_up() {
    let (mut world, session) = stopped(Verdict::Deliver);
    world.run_for(ms(10_000));
    assert!(world.nodes[0].endpoint.session(session).is_some());
    let (mut world, session) = stopped(Verdict::Drop);
    world.run_for(ms(1_000));
    assert!(world.nodes[0].endpoint.session(session).is_none());
    let pings = world.sent.iter().filter(|sent| sent.from == 0 && sent.has(PacketType::Ping));
    assert!(pings.count() >= 4);
}

/// Nothing waits but the end of a key epoch.
#[test]
fn a_dead_peer_is_not_told_for_ever_that_an_epoch_is_over() {
    let mut client = ethernet();
    client.key_limits = smt_record::KeyLimits::new(1_000, 100, 1 << 20).unwrap();
    let (mut world, session, _) = World::connected_with(client, ethernet());
    let epoch = |world: &World| world.nodes[0].endpoint.session(session).unwrap().seal_epoch;
    while epoch(&world) == 0 {
        let rpc = world.call(0, session, body(1, 10));
        world.outcome(0, rpc).unwrap();
    }
    silence(&mut world, 1);
    world.is_recording = true;
    world.run_for(ms(60_000));
    let sent = world.sent.iter().filter(|sent| sent.from == 0).count();
    assert!((4..=50).contains(&sent), "{sent} packets");
    assert!(world.nodes[0].endpoint.session(session).is_none());
}

/// About how many messages a node has asked, by the times that it did.
fn questions(world: &World, from: usize) -> BTreeMap<Time, usize> {
    let mut asked = BTreeMap::new();
    for sent in world.sent.iter().filter(|sent| sent.from == from) {
        for packet in sent.packets() {
            let Packet::Control(control) = packet else {
                continue;
            };
            match control.body {
                Body::Resend(list) => *asked.entry(sent.at).or_default() += list.len(),
                Body::NeedAck(list) => *asked.entry(sent.at).or_default() += list.len(),
                _ => {}
            }
        }
    }
    asked
}

/// 256, and the others right after; those that wait for replies, and those whose replies are not
/// acknowledged, of which the first 256 were few.
// SMT [9.3-27]
#[test]
fn few_messages_are_asked_about_at_a_time() {
    for (asking, messages) in [(0, 1_000), (1, 744)] {
        let mut config = Config::default();
        config.bundles = false;
        let (mut world, session, _) = World::connected_with(config.clone(), config);
        if asking == 0 {
            world.nodes[1].application = Box::new(|_| Answer::Hold);
        }
        world.is_recording = true;
        for number in 0..1_000 {
            world.call(0, session, body(number, 10));
        }
        world.run_for(ms(1));
        silence(&mut world, 1 - asking);
        world.run_for(ms(1_000));
        let asked = questions(&world, asking);
        assert!(asked.values().all(|count| *count <= 256), "{asked:?}");
        let first = *asked.keys().next().unwrap();
        let soon = asked.range(..=first + ms(3)).map(|(_, count)| count);
        assert_eq!(soon.sum::<usize>(), messages, "{asked:?}");
    }
}

/// Nothing of it comes any more, and nobody asks about it. Only the session lives on.
// SMT [9.3-28]
#[test]
fn an_incomplete_message_is_dropped_after_ten_seconds() {
    let mut config = ethernet();
    config.silence_max = ms(100_000);
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.call(0, session, body(1, 5_000_000));
    world.run_for(super::support::us(60));
    silence(&mut world, 0);
    world.run_for(ms(9_500));
    assert_eq!(world.nodes[1].endpoint.served_len(), 1);
    world.run_for(ms(1_500));
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
    // The answer that the request did not run is kept like a reply, and given up like one.
    assert_eq!(world.nodes[1].endpoint.served_len(), 1);
    world.run_for(ms(20_000));
    assert_eq!(world.nodes[1].endpoint.served_len(), 0);
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 1);
}

/// More calls wait than questions fit into one pass.
#[test]
fn every_call_is_asked_about_however_many_wait() {
    let mut config = Config::default();
    config.window = 16_384;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let (now, endpoint) = (world.now, &mut world.nodes[0].endpoint);
    let calls = (0..6_000).map(|at| endpoint.call(now, session, body(at, 10), None).unwrap());
    let last = calls.last().unwrap().id;
    let mut is_lost = false;
    world.rule = Box::new(move |datagram, _| {
        let is_last = datagram.data().is_some_and(|data| data.header.id == last) && !is_lost;
        is_lost |= is_last;
        if is_last { Verdict::Drop } else { Verdict::Deliver }
    });
    world.flush();
    world.run_for(ms(60_000));
    assert_eq!(world.nodes[1].delivered.len(), 6_000);
}

/// A server that has the requests, and a client that dies. When the session ended, after the
/// client's death.
fn ended_after_death(world: &mut World) -> Duration {
    silence(world, 0);
    let began = world.now;
    let end = world.wait(1, |event| match event {
        Event::SessionEnded { end, .. } => Some(end.clone()),
        _ => None,
    });
    assert!(matches!(end, SessionEnd::Silent(_)), "{end}");
    world.now.since(began)
}

/// The server works on a request and asks whether its caller is there; none of the caller's packets
/// arrives any more.
// SMT [9.9-3]
#[test]
fn questions_of_a_peer_that_hears_nothing_are_no_answers() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    let rpc = world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    world.rule = Box::new(|datagram, _| match datagram.from {
        0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    world.is_recording = true;
    let began = world.now;
    let error = world.outcome(0, rpc).unwrap_err();
    assert!(matches!(error.reason, CallFailure::SessionEnded(SessionEnd::Silent(_))));
    let took = world.now.since(began);
    assert!((ms(2_000)..ms(2_700)).contains(&took), "{took:?}");
    let pings = world.sent.iter().filter(|sent| sent.from == 1);
    assert!(pings.clone().any(|sent| sent.has(PacketType::Ping)));
}

/// The server asks for the rest of a request; its caller gives it up, and sleeps then.
// SMT [9.9-4]
#[test]
fn a_caller_that_gives_up_what_was_asked_for_owes_no_answer() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.run_for(ms(1_000));
    let rpc = world.call(0, session, body(1, 5_000_000));
    world.run_for(super::support::us(60));
    assert!(world.nodes[1].endpoint.memory() > 0);
    world.rule =
        Box::new(|datagram, _| match matches!(datagram.packets().first(), Some(Packet::Data(_))) {
            true => Verdict::Drop,
            false => Verdict::Deliver,
        });
    world.is_recording = true;
    let end = world.now + ms(100);
    let asks = |sent: &Datagram| sent.from == 1 && sent.has(PacketType::Resend);
    while !world.sent.iter().any(asks) {
        assert!(world.step(end), "it never asks");
    }
    let now = world.now;
    assert!(world.nodes[0].endpoint.cancel(now, rpc));
    world.run_for(super::support::us(100));
    let voided = |sent: &Datagram| sent.from == 1 && sent.has(PacketType::Voided);
    assert!(world.sent.iter().any(voided));
    silence(&mut world, 0);
    world.run_for(ms(10_000));
    assert!(!world.sent.iter().any(|sent| sent.has(PacketType::Ping)));
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 1);
}

// SMT [9.9-2]
#[test]
fn a_caller_that_dies_is_found_while_its_request_is_worked_on() {
    let (mut world, session, _) = World::connected();
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    world.call(0, session, body(1, 100));
    world.run_for(ms(1));
    let took = ended_after_death(&mut world);
    assert!((ms(2_000)..ms(2_700)).contains(&took), "{took:?}");
    let cancelled =
        world.nodes[1].event(|event| matches!(event, Event::Cancelled(_)).then_some(()));
    assert!(cancelled.is_some(), "the application may stop");
}

#[test]
fn a_caller_that_dies_is_found_by_its_missing_acknowledgement() {
    for length in [100, 30_000] {
        let (mut world, session, _) = World::connected();
        world.nodes[1].application = Box::new(move |_| Answer::Reply(body(2, length)));
        let rpc = world.call(0, session, body(1, 100));
        // Nothing of the client arrives any more, though it hears the reply.
        world.rule = Box::new(|datagram, _| match datagram.from {
            0 => Verdict::Drop,
            _ => Verdict::Deliver,
        });
        assert_eq!(world.outcome(0, rpc), Ok(body(2, length)));
        let took = ended_after_death(&mut world);
        assert!((ms(2_000)..ms(2_700)).contains(&took), "{took:?}");
        assert_eq!(world.nodes[1].endpoint.served_len(), 0);
    }
}
