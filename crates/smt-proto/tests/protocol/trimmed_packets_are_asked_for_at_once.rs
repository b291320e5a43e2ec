// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SPEC §9.10: a trimmed packet is a hint that brings a question forward, and no forged one gains
//! more than that.

use bytes::Bytes;
use smt_proto::{CloseCode, Pull, PullOrder, RpcId, Statistics};
use smt_wire::{Body, Data, List, MessageId, Packet, PacketType, Resend, SessionIndex};

use super::support::configs::ethernet;
use super::support::forge::{
    EPOCH, ID, MESSAGE_LENGTH, OFFSET, PAYLOAD, SESSION, set_u32, set_u64,
};
use super::support::node::replies_of_asked_length;
use super::support::rogue::Rogue;
use super::support::{Datagram, Random, Verdict, World, body, ms, us};

/// A pair whose nodes pull at 10 Gb/s. Datagrams are full, since they leave one by one.
fn pulling() -> (World, SessionIndex, SessionIndex) {
    let mut config = ethernet();
    config.batch_max = 1;
    let (mut world, client, server) = World::connected_with(config.clone(), config);
    for node in &mut world.nodes {
        let policy = Pull::new(10_000_000_000, 20_000);
        node.endpoint.set_pull_policy(Box::new(policy));
    }
    (world, client, server)
}

fn statistics(world: &World) -> [Statistics; 2] {
    [0, 1].map(|node| world.nodes[node].endpoint.statistics())
}

/// The call ends well before any timer would ask, and none did.
fn is_answered_at_once(world: &mut World, rpc: RpcId, reply: &Bytes) {
    let began = world.now;
    assert!(world.outcome(0, rpc).as_ref() == Ok(reply));
    assert!(world.now.since(began) < ms(4), "{:?}", world.now.since(began));
    let [client, server] = statistics(world);
    assert_eq!((client.resends_asked, server.resends_asked), (0, 0));
    assert!(client.trimmed_asked + server.trimmed_asked > 0);
}

/// Cuts what is sent for the first time and fits.
fn cut_first(world: &mut World, fits: impl Fn(&Datagram, &Data<'_>) -> bool + 'static) {
    world.rule = Box::new(move |datagram, _| match datagram.data() {
        Some(data) if !data.header.retransmit && fits(datagram, &data) => Verdict::Trim,
        _ => Verdict::Deliver,
    });
}

// SMT [9.10-9]
#[test]
fn trimmed_packets_of_a_message_that_has_begun_are_asked_for() {
    for size in [3_000, 50_000, 400_000] {
        let (mut world, session, _) = pulling();
        cut_first(&mut world, |_, data| data.header.offset > 0 && data.header.offset % 3 != 0);
        let rpc = world.call(0, session, body(1, size));
        is_answered_at_once(&mut world, rpc, &body(1, size));
    }
}

// SMT [9.10-12]
#[test]
fn trimmed_record_0_of_an_unseen_request_is_asked_for() {
    for size in [10, 1_000, 1_300, 3_000, 50_000] {
        let (mut world, session, _) = pulling();
        cut_first(&mut world, |datagram, data| datagram.from == 0 && data.header.offset == 0);
        let rpc = world.call(0, session, body(1, size));
        is_answered_at_once(&mut world, rpc, &body(1, size));
        assert_eq!(world.nodes[1].delivered.len(), 1);
    }
}

#[test]
fn trimmed_record_0_of_a_reply_is_asked_for() {
    let (mut world, session, _) = pulling();
    world.nodes[1].application = replies_of_asked_length();
    cut_first(&mut world, |datagram, data| datagram.from == 1 && data.header.offset == 0);
    let asked = 50_000_u32.to_be_bytes().to_vec();
    let rpc = world.call(0, session, asked.into());
    is_answered_at_once(&mut world, rpc, &body(50_000, 50_000));
}

#[test]
fn every_first_transmission_that_is_trimmed_is_asked_for() {
    for size in [10, 3_000, 200_000] {
        let (mut world, session, _) = pulling();
        cut_first(&mut world, |_, _| true);
        let rpc = world.call(0, session, body(1, size));
        is_answered_at_once(&mut world, rpc, &body(1, size));
    }
}

/// An answer that is trimmed again is asked for again, three times in all; then timers ask.
// SMT [9.10-11]
#[test]
fn answers_that_are_trimmed_too_are_asked_for() {
    for (cut, by_timer) in [(2, false), (3, true)] {
        let (mut world, session, _) = pulling();
        let mut left = 1 + cut;
        world.rule = Box::new(move |datagram, _| match datagram.data() {
            Some(data) if data.header.offset == 1_436 && left > 0 => {
                left -= 1;
                Verdict::Trim
            }
            _ => Verdict::Deliver,
        });
        let rpc = world.call(0, session, body(1, 3_000));
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 3_000)));
        let [_, server] = statistics(&world);
        assert_eq!((server.trimmed_asked, server.resends_asked > 0), (3, by_timer));
    }
}

// SMT [9.10-8]
#[test]
fn trimmed_packets_are_not_asked_for_under_a_policy_that_does_not_pull() {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.is_recording = true;
    cut_first(&mut world, |_, data| data.header.offset > 0);
    let rpc = world.call(0, session, body(1, 3_000));
    world.run_for(us(4_900));
    assert!(!world.sent.iter().any(|sent| sent.has(PacketType::Resend)));
    assert_eq!(statistics(&world)[1].packets_trimmed, 2);
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 3_000)));
}

/// The genuine first packet of a request of this size, which does not arrive.
fn template(world: &mut World, session: SessionIndex, size: usize) -> Datagram {
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.is_recording = true;
    world.call(0, session, body(1, size));
    world.rule = Box::new(|_, _| Verdict::Deliver);
    let sent = std::mem::take(&mut world.sent);
    world.is_recording = false;
    sent.into_iter().find(|sent| sent.data().is_some()).unwrap()
}

/// A trimmed packet that claims all this.
fn claim(template: &Datagram, id: u64, length: u32, offset: u32) -> Datagram {
    let mut forged = template.clone().trimmed();
    set_u64(&mut forged.bytes, ID, id);
    set_u32(&mut forged.bytes, MESSAGE_LENGTH, length);
    set_u32(&mut forged.bytes, OFFSET, offset);
    forged
}

/// All questions for bytes that a node has sent.
fn questions(world: &World, node: usize) -> Vec<Resend> {
    let mut questions = Vec::new();
    for sent in world.sent.iter().filter(|sent| sent.from == node) {
        for packet in sent.packets() {
            if let Packet::Control(control) = packet
                && let Body::Resend(list) = control.body
            {
                questions.extend(list.iter());
            }
        }
    }
    questions
}

#[test]
fn forged_ids_are_asked_about_at_a_bounded_rate_and_hold_nothing() {
    let (mut world, session, _) = pulling();
    let template = template(&mut world, session, 1_000);
    world.is_recording = true;
    for number in 0..200_000_u64 {
        let id = 2 * (1 + number % 4_000);
        world.hand_in(&claim(&template, id, 900, 0));
        if number % 200 == 0 {
            world.run_for(us(100));
        }
    }
    // A burst of a thousand, and ten thousand a second.
    let asked = questions(&world, 1);
    assert!((100..=2_050).contains(&asked.len()), "{}", asked.len());
    assert!(asked.iter().all(|asked| (asked.offset, asked.length) == (0, 1)));
    let [client, server] = statistics(&world);
    assert_eq!(client.violations, 0, "nobody has broken a rule");
    // The packet that was lost first is repeated by its own timers.
    assert!(client.packets_resent <= 1);
    assert!(server.messages_delivered <= 1);
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
    world.run_for(ms(5_000));
    let rpc = world.call(0, session, body(2, 100_000));
    assert_eq!(world.outcome(0, rpc), Ok(body(2, 100_000)));
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 1);
}

#[test]
fn a_header_against_record_0_or_beyond_the_granted_bytes_is_not_asked_for() {
    let (mut world, session, _) = pulling();
    // Only record 0 of the message arrives.
    world.rule = Box::new(|datagram, _| match datagram.data() {
        Some(data) if data.header.offset > 0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    world.is_recording = true;
    world.call(0, session, body(1, 1_000_000));
    world.run_for(us(100));
    let first = world.sent.iter().find(|sent| sent.data().is_some()).cloned().unwrap();
    let header = first.data().unwrap().header;
    let (id, length) = (header.id.0, header.message_length);
    world.sent.clear();
    let before = statistics(&world)[1].packets_contradicting;
    let forged = [
        claim(&first, id, length + 1, 1_436),
        claim(&first, id, 0, 1_436),
        claim(&first, id, u32::MAX, 1_436),
        claim(&first, id, length, 70_000),
        claim(&first, id, length, u32::MAX),
        claim(&first, 2 * 5_000, length, 0),
        claim(&first, id + 2, length, 70_000),
        claim(&first, u64::MAX, length, 0),
    ];
    forged.iter().for_each(|forged| world.hand_in(forged));
    world.run_for(us(100));
    assert_eq!(questions(&world, 1), []);
    let contradicting = statistics(&world)[1].packets_contradicting - before;
    assert_eq!(contradicting, forged.len() as u64);
    // Bytes that are there are not asked for; the first byte behind them is.
    world.hand_in(&claim(&first, id, length, 0));
    world.hand_in(&claim(&first, id, length, 1_435));
    world.run_for(us(100));
    assert_eq!(questions(&world, 1), []);
    world.hand_in(&claim(&first, id, length, 1_436));
    world.run_for(us(100));
    assert_eq!(questions(&world, 1).len(), 1);
}

#[test]
fn a_header_of_another_session_version_or_type_is_not_asked_for() {
    let (mut world, session, _) = pulling();
    let template = template(&mut world, session, 1_000).trimmed();
    world.is_recording = true;
    let before = statistics(&world)[1];
    let changed = |change: fn(&mut Vec<u8>)| {
        let mut forged = template.clone();
        change(&mut forged.bytes);
        forged
    };
    let malformed = [
        changed(|bytes| bytes[0] = 0xF1),
        changed(|bytes| bytes[1] = PacketType::Grant as u8),
        changed(|bytes| bytes[4] = 0x50),
        changed(|bytes| bytes.truncate(35)),
        changed(Vec::clear),
    ];
    malformed.iter().for_each(|forged| world.hand_in(forged));
    let unknown =
        [changed(|bytes| set_u64(bytes, SESSION, 77)), changed(|bytes| bytes[SESSION].fill(0))];
    unknown.iter().for_each(|forged| world.hand_in(forged));
    // From another address.
    let mut elsewhere = template.clone();
    elsewhere.from = 7;
    world.hand_in(&elsewhere);
    let mut random = Random::from_env();
    for _ in 0..10_000 {
        let mut noise = template.clone();
        noise.bytes = (0..random.below(60)).map(|_| random.any() as u8).collect();
        world.hand_in(&noise);
    }
    world.run_for(ms(1));
    assert_eq!(questions(&world, 1), []);
    let after = statistics(&world)[1];
    assert!(after.packets_malformed - before.packets_malformed >= malformed.len() as u64);
    assert!(after.packets_unknown_session - before.packets_unknown_session > unknown.len() as u64);
    assert_eq!(after.packets_trimmed, before.packets_trimmed);
    assert_eq!(after.resets_sent, before.resets_sent, "a header is answered by nothing");
    world.hand_in(&template);
    world.run_for(us(100));
    assert_eq!(questions(&world, 1).len(), 1, "the genuine one is taken");
}

/// Anybody can send headers in the name of a peer that is gone.
// SMT [9.10-7]
#[test]
fn trimmed_headers_are_no_sign_of_life() {
    let (mut world, session, _) = pulling();
    world.is_recording = true;
    let rpc = world.call(0, session, body(1, 10));
    assert!(world.outcome(0, rpc).is_ok());
    let reply = world.sent.iter().rfind(|sent| sent.from == 1 && sent.data().is_some());
    let header = reply.cloned().unwrap().trimmed();
    world.rule = Box::new(|_, _| Verdict::Drop);
    let rpc = world.call(0, session, body(2, 10));
    let waiting = claim(&header, rpc.id.0, 50, 0);
    for _ in 0..30 {
        world.hand_in(&waiting);
        world.hand_in(&header);
        world.run_for(ms(100));
    }
    assert!(world.nodes[0].endpoint.session(session).is_none(), "it is dead after two seconds");
}

/// A switch may leave more than the header. The same bytes untrimmed are answered by RESET.
// SMT [9.10-7]
#[test]
fn a_trimmed_packet_of_a_session_that_has_ended_is_answered_by_nothing() {
    let (mut world, session, _) = pulling();
    let whole = template(&mut world, session, 1_000);
    world.nodes[1].endpoint.close_all(CloseCode::Done);
    world.run_for(ms(1));
    let resets = |world: &World| statistics(world)[1].resets_sent;
    world.hand_in(&Datagram { is_trimmed: true, ..whole.clone() });
    assert_eq!(resets(&world), 0);
    world.hand_in(&whole);
    assert_eq!(resets(&world), 1);
}

/// Record 0 would be dropped if it came.
// SMT [9.10-14]
#[test]
fn a_trimmed_record_0_is_not_asked_for_without_room_for_it() {
    for (untaken, asked) in [(0, 1), (usize::MAX / 2, 0)] {
        let (mut world, session, _) = pulling();
        let template = template(&mut world, session, 1_000).trimmed();
        world.is_recording = true;
        world.nodes[1].endpoint.set_untaken(untaken);
        world.hand_in(&template);
        world.run_for(us(100));
        assert_eq!(questions(&world, 1).len(), asked, "{untaken} bytes are not taken");
    }
}

/// Headers of everything that is on its way, many times: what is not there yet is asked for three
/// times at most.
// SMT [9.10-11]
#[test]
fn a_flood_of_headers_does_not_multiply_the_traffic() {
    let send = |is_flooded: bool| {
        let (mut world, session, _) = pulling();
        world.rate = 1_250;
        world.is_recording = true;
        world.rule = Box::new(move |datagram, injected| {
            if is_flooded && datagram.data().is_some() {
                let mut forged = datagram.clone().trimmed();
                forged.bytes[3] |= 1;
                injected.extend(std::iter::repeat_n(forged, 5));
            }
            // Late enough for questions and answers.
            Verdict::Delay(us(500))
        });
        let rpc = world.call(0, session, body(1, 1_000_000));
        assert!(world.outcome(0, rpc).is_ok());
        let data = world.sent.iter().filter(|sent| sent.from == 0 && sent.data().is_some());
        (data.map(|sent| sent.bytes.len()).sum::<usize>(), world)
    };
    let (alone, _) = send(false);
    let (flooded, world) = send(true);
    assert!(flooded > alone, "the flood has no effect, so this shows nothing");
    assert!(flooded <= 4 * alone, "{flooded} bytes instead of {alone}");
    let [client, _] = statistics(&world);
    assert_eq!(client.violations, 0);
    // The path was not taken for a black hole (SPEC §9.8): datagrams are as large as before.
    let facts = world.nodes[0].endpoint.session(session_of(&world));
    assert_eq!(facts.unwrap().datagram_size, 1_472);
}

fn session_of(world: &World) -> SessionIndex {
    let sent = world.sent.iter().rfind(|sent| sent.from == 1 && sent.data().is_some());
    sent.unwrap().data().unwrap().header.session
}

/// A rogue asks for record 0: that is no sign that it has seen the id, which is therefore asked
/// about at once when the window is full.
// SMT [9.10-18]
#[test]
fn a_peer_that_asks_for_record_0_has_not_seen_it() {
    let mut server = ethernet();
    server.window = 64;
    let (mut world, session, at_server) = World::connected_with(ethernet(), server);
    world.is_recording = true;
    world.rule = Box::new(|datagram, _| match datagram.from {
        0 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    for number in 0..64 {
        world.call(0, session, body(number, 10));
    }
    let now = world.now;
    let blocked = world.nodes[0].endpoint.call(now, session, body(64, 10), None);
    assert!(blocked.is_err());
    let ask = Resend { id: MessageId(0), offset: 0, length: 1 };
    let mut rogue = Rogue::server(session);
    let list = [ask];
    rogue.say(&mut world, &[Body::Resend(List::from(&list[..]))]);
    world.run_for(ms(3));
    world.sent.clear();
    world.run_for(ms(100));
    let asked = world.sent.iter().filter(|sent| sent.has(PacketType::WindowRequest));
    let asked_at_once = |at| {
        let same = world.sent.iter().filter(|sent| sent.at == at);
        same.filter_map(Datagram::data).any(|data| data.header.id == MessageId(0))
    };
    let times: Vec<_> = asked.map(|sent| sent.at).collect();
    assert!(!times.is_empty() && times.iter().all(|at| asked_at_once(*at)), "{}", world.trace());
    assert!(world.nodes[1].endpoint.session(at_server).is_some());
}

/// An id that was never issued is asked about because somebody has forged a header: no rule is
/// broken. Other questions about it break one.
// SMT [9.10-19]
#[test]
fn a_question_for_record_0_of_an_id_that_does_not_exist_breaks_no_rule() {
    let (mut world, session, _) = pulling();
    let mut rogue = Rogue::server(session);
    let mut violations = |offset| {
        let ask = [Resend { id: MessageId(2_000), offset, length: 1 }];
        rogue.say(&mut world, &[Body::Resend(List::from(&ask[..]))]);
        statistics(&world)[0].violations
    };
    assert_eq!(violations(0), 0);
    assert_eq!(violations(1_164), 1);
}

/// A slow pace: record after record takes longer than the resend interval, and nobody asks out of
/// turn.
#[test]
fn timers_do_not_ask_for_records_that_wait_for_the_pace() {
    let (mut world, session, _) = pulling();
    let policy = Pull::new(10_000_000, 20_000);
    world.nodes[1].endpoint.set_pull_policy(Box::new(policy));
    world.is_recording = true;
    cut_first(&mut world, |datagram, data| datagram.from == 0 && data.header.offset > 0);
    let rpc = world.call(0, session, body(1, 50_000));
    world.run_for(ms(35));
    let asked = questions(&world, 1).len() as u64;
    let [_, server] = statistics(&world);
    assert!(asked > 20, "{asked}");
    assert_eq!((server.resends_asked, server.trimmed_asked), (0, asked));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 50_000)));
}

#[test]
fn another_policy_leaves_waiting_questions_to_timers() {
    let (mut world, session, _) = pulling();
    let slow = Pull::new(10_000_000, 20_000);
    world.nodes[1].endpoint.set_pull_policy(Box::new(slow));
    cut_first(&mut world, |datagram, data| datagram.from == 0 && data.header.offset > 0);
    let rpc = world.call(0, session, body(1, 300_000));
    world.run_for(ms(1));
    let homa = smt_proto::ShortestRemainingFirst::default();
    world.nodes[1].endpoint.set_grant_policy(Box::new(homa));
    let began = world.now;
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 300_000)));
    assert!(world.now.since(began) < ms(200));
}

/// A switch of eight packets, ten senders, first windows of 60 KB: nothing waits for a timer.
// SMT [9.10-15]
#[test]
fn incast_needs_no_timer() {
    for order in [PullOrder::RoundRobin, PullOrder::ShortestFirst] {
        let (mut world, sessions) = World::star(10);
        let policy = Pull::new(9_500_000_000, 20_000).in_order(order);
        world.nodes[0].endpoint.set_pull_policy(Box::new(policy));
        world.trims_above = 8 * 1_472;
        let began = world.now;
        let calls: Vec<_> =
            (0..10).map(|at| world.call(at + 1, sessions[at], body(at as u64, 200_000))).collect();
        for (at, rpc) in calls.into_iter().enumerate() {
            assert!(world.outcome(at + 1, rpc).is_ok());
        }
        let server = world.nodes[0].endpoint.statistics();
        assert!(server.packets_trimmed > 300, "{}", server.packets_trimmed);
        assert_eq!(server.resends_asked, 0);
        // 2 MB at 9.5 Gb/s take 1.7 ms; what is sent first and cut takes a little, too.
        let took = world.now.since(began);
        assert!(took < us(2_100), "{took:?}");
        assert!(world.queue_max <= 10 * 1_472, "{}", world.queue_max);
    }
}

#[test]
fn ids_that_were_asked_about_and_never_come_are_forgotten() {
    let (mut world, session, _) = pulling();
    let template = template(&mut world, session, 1_000);
    world.run_for(ms(10_000));
    for number in 0..500 {
        let mut forged = claim(&template, 2 * (1 + number), 900, 0);
        forged.bytes[EPOCH] = number as u8;
        world.hand_in(&forged);
        world.hand_in(&claim(&template, 2 * (1 + number), 9_000, 1_436));
    }
    assert!(world.nodes[1].endpoint.memory() > 0, "headers wait for record 0");
    world.run_for(ms(5_000));
    assert_eq!(world.nodes[1].endpoint.memory(), 0);
    let (due, reason) = world.nodes[1].endpoint.poll_timeout().unwrap();
    assert_eq!(reason, smt_proto::TimerReason::Session);
    assert!(due > world.now + ms(500_000), "only the idle close is left: {due:?}");
    assert!(template.bytes.len() > PAYLOAD);
}
