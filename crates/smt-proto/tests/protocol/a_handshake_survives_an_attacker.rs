// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cookies, forged flights, amplification, restarts: establishing a session (SPEC §6).

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use smt_carrier::{Arrival, Path};
use smt_proto::{Config, ConnectError, Event};
use smt_wire::{Body, Handshake, Packet, PacketType, SessionIndex, VersionAnswer};

use super::support::forge::flipped;
use super::support::node::address_of;
use super::support::rogue::Rogue;
use super::support::{Datagram, Node, Verdict, World, body, exchanges, ms, us};

fn server() -> Config {
    let mut config = Config::default();
    config.accept = true;
    config
}

/// The same packet with other contents.
fn forged(datagram: &Datagram, change: impl FnOnce(&mut Handshake<'_>)) -> Datagram {
    let mut packet = datagram.handshake().unwrap();
    change(&mut packet);
    Datagram { bytes: emitted(&packet), ..datagram.clone() }
}

fn emitted(packet: &Handshake<'_>) -> Vec<u8> {
    let mut bytes = vec![0; 1_200];
    let length = packet.emit(1, 1_200, &mut bytes);
    bytes.truncate(length);
    bytes
}

fn large_flights(world: &mut World) {
    for number in 0..2 {
        let mut exchanges = exchanges((number as u64) << 32);
        exchanges.settings.filler = [2_000, 12_000, 3_000];
        let mut config = server();
        config.accept = number == 1;
        world.nodes[number] = Node::with_exchanges(number, config, exchanges);
    }
}

#[test]
fn flights_of_many_packets_come_together_through_loss() {
    let mut random = super::support::Random::from_env();
    for _ in 0..10 {
        let mut world = World::pair(Config::default(), server());
        large_flights(&mut world);
        // An unvalidated client gets such a flight about twice in an attempt (§6.2: three times
        // what it has sent), and the deadline leaves it three attempts: at 5 % loss one connect in
        // 30,000 would fail.
        world.rule =
            Box::new(super::support::rule::trouble(super::support::Random::new(random.any()), 2));
        world.connect(0, 1).unwrap();
    }
}

/// Each packet of the handshake, in either direction, is preceded once by a forged one.
// SMT [6.2-13]
#[test]
fn one_forged_packet_costs_at_most_one_attempt() {
    type Change = fn(&mut Handshake<'_>);
    let changes: [Change; 5] = [
        |packet| packet.fragment = b"forged",
        |packet| packet.flight_length = 65_000,
        |packet| {
            packet.fragment = &[0xFF; 40];
            packet.flight_length = 40;
            packet.offset = 0;
        },
        |packet| packet.source = SessionIndex(packet.source.0 + 7),
        |packet| packet.flight = 3,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        for victim in 0..12 {
            let mut world = World::pair(Config::default(), server());
            large_flights(&mut world);
            let mut count = 0;
            world.rule = Box::new(move |datagram, injected| {
                if datagram.handshake().is_some() {
                    count += 1;
                    if count == victim + 1 {
                        injected.push(forged(datagram, change));
                    }
                }
                Verdict::Deliver
            });
            let began = world.now;
            let (session, _) = world
                .connect(0, 1)
                .unwrap_or_else(|e| panic!("change {number} packet {victim}: {e}"));
            assert!(world.now.since(began) < ms(3_000), "change {number}, packet {victim}");
            let rpc = world.call(0, session, body(1, 10));
            world.outcome(0, rpc).unwrap();
        }
    }
}

/// The server forgets the handshake: nothing answers this attempt any more, but the next.
#[test]
fn a_server_that_restarts_in_the_middle_costs_one_attempt() {
    let mut world = World::pair(Config::default(), server());
    world.rule =
        Box::new(
            |datagram, _| {
                if datagram.has(PacketType::Confirm) { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    world.start_connect(0, 1);
    world.run_for(ms(10));
    world.rule = Box::new(|_, _| Verdict::Deliver);
    world.nodes[1] = Node::with_exchanges(1, server(), exchanges(99 << 32));
    world.wait(0, |event| matches!(event, Event::Connected { .. }).then_some(()));
}

// SMT [6.2-18]
#[test]
fn a_server_sends_no_more_than_three_times_what_it_received() {
    let mut world = World::pair(Config::default(), server());
    large_flights(&mut world);
    let bytes = Rc::new(RefCell::new([0usize; 2]));
    let counted = Rc::clone(&bytes);
    // Nothing of the server reaches the client: its address may be forged.
    world.rule = Box::new(move |datagram, _| {
        let mut bytes = counted.borrow_mut();
        bytes[datagram.from] += datagram.bytes.len();
        assert!(bytes[1] <= 3 * bytes[0], "{bytes:?}");
        if datagram.from == 1 { Verdict::Drop } else { Verdict::Deliver }
    });
    world.start_connect(0, 1);
    world.run_for(ms(6_000));
    let [client, server] = *bytes.borrow();
    assert!(server > client, "it does answer");
}

// SMT [6.2-4]
#[test]
fn every_datagram_of_a_clients_handshake_is_padded() {
    let mut world = World::pair(Config::default(), server());
    large_flights(&mut world);
    world.is_recording = true;
    world.connect(0, 1).unwrap();
    let mut flights = world.sent.iter().filter(|sent| sent.from == 0 && sent.handshake().is_some());
    assert!(flights.all(|sent| sent.bytes.len() == 1_200));
}

// SMT [6.4-7]
#[test]
fn a_client_must_show_a_cookie_under_load() {
    let mut config = server();
    config.accepts_without_cookie = 0;
    let mut world = World::pair(Config::default(), config);
    world.is_recording = true;
    world.connect(0, 1).unwrap();
    let cookies: Vec<&Datagram> =
        world.sent.iter().filter(|sent| sent.has(PacketType::Cookie)).collect();
    assert_eq!(cookies.len(), 1);
    assert!(cookies[0].bytes.len() < 100);
    let flights = world.sent.iter().filter(|sent| sent.from == 0).filter_map(Datagram::handshake);
    let without: Vec<u8> =
        flights.filter(|flight| flight.cookie.is_empty()).map(|flight| flight.flight).collect();
    assert_eq!(without, [1], "only the first packet has none");
}

/// Flights from invented addresses: little is kept, and an honest client gets in.
#[test]
fn a_flood_of_first_flights_keeps_nobody_out() {
    let mut world = World::pair(Config::default(), server());
    world.is_recording = true;
    world.start_connect(0, 1);
    let first = world.sent[0].clone();
    world.run_for(ms(500));
    world.is_recording = false;
    let now = world.now;
    for number in 0..5_000_u32 {
        let flood =
            forged(&first, |packet| packet.source = SessionIndex(1_000 + u64::from(number)));
        let [a, b, c, _] = number.to_be_bytes();
        let remote = format!("10.{}.{}.{}:99", c, number as u8, a | b).parse().unwrap();
        let path = Path::between(remote, address_of(1).ip());
        world.nodes[1].endpoint.handle_arrival(now, Arrival::datagram(path, &flood.bytes));
        let node = &mut world.nodes[1];
        while node.endpoint.poll_transmit(now, &mut node.buffer).is_some() {}
    }
    assert!(world.nodes[1].endpoint.statistics().cookies_sent > 0);
    world.connect(0, 1).unwrap();
}

#[test]
fn forged_cookies_do_not_make_a_client_a_flood() {
    let mut world = World::pair(Config::default(), Config::default());
    world.nodes[1] = Node::new(1, Config::default());
    world.start_connect(0, 1);
    let before = world.count;
    for number in 0..1_000_u16 {
        let mut bytes = vec![0; 100];
        let cookie = number.to_be_bytes();
        let packet = smt_wire::Cookie { destination: SessionIndex::new(1, 1), cookie: &cookie };
        let length = packet.emit(1, &mut bytes);
        bytes.truncate(length);
        world.hand_in(&Datagram { is_trimmed: false, at: world.now, from: 1, to: 0, bytes });
    }
    assert!(world.count - before <= 2, "{}", world.count - before);
}

#[test]
fn a_client_that_restarts_on_its_port_gets_in_and_leaves_the_old_session_alone() {
    let (mut world, _, old) = World::connected();
    world.nodes[1].application = Box::new(|_| super::support::Answer::Hold);
    world.nodes[0] = Node::with_exchanges(0, Config::default(), exchanges(77));
    // The same address, the same port, the same index.
    let (client, server) = world.connect(0, 1).unwrap();
    assert_ne!(server, old);
    assert!(world.nodes[1].endpoint.session(old).is_some(), "the old session lives");
    world.nodes[1].endpoint.close(old, smt_proto::CloseCode::Done);
    world.run_for(ms(100));
    assert!(world.nodes[0].endpoint.session(client).is_some());
    world.nodes[1].application = Box::new(|request| super::support::Answer::Reply(request.clone()));
    let rpc = world.call(0, client, body(1, 10));
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 10)));
    // The new one can still be reset.
    world.rule =
        Box::new(
            |datagram, _| {
                if datagram.has(PacketType::Close) { Verdict::Drop } else { Verdict::Deliver }
            },
        );
    world.nodes[0].endpoint.close(client, smt_proto::CloseCode::Done);
    world.run_for(ms(1));
    world.call(1, server, body(1, 10));
    let end = world.wait(1, |event| match event {
        Event::SessionEnded { session, end } if *session == server => Some(end.clone()),
        _ => None,
    });
    assert_eq!(end, smt_proto::SessionEnd::Reset);
}

#[test]
fn a_server_that_refuses_is_believed_after_three_times() {
    let mut world = World::pair(Config::default(), server());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.refuses = true;
    world.nodes[1] = Node::with_exchanges(1, server(), exchanges);
    let began = world.now;
    let error = world.connect(0, 1).unwrap_err();
    assert!(matches!(error, ConnectError::Handshake { .. }), "{error}");
    assert!(world.now.since(began) < ms(1_000));
    assert_eq!(world.nodes[0].endpoint.poll_timeout(), None);
}

/// Three times in a row: what goes wrong otherwise may be anybody's work, and so may each refusal.
#[test]
fn refusals_with_damage_between_them_are_not_added_up() {
    let mut world = World::pair(Config::default(), server());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.refuses = true;
    let refusing = Node::with_exchanges(1, server(), exchanges);
    let running = std::mem::replace(&mut world.nodes[1], refusing);
    let answers = Rc::new(Cell::new(0));
    let count = Rc::clone(&answers);
    world.rule = Box::new(move |datagram, _| {
        if datagram.from == 0 {
            return Verdict::Deliver;
        }
        count.set(count.get() + 1);
        match count.get() {
            2 => Verdict::Replace(vec![flipped(&datagram.bytes, datagram.bytes.len() - 1)]),
            _ => Verdict::Deliver,
        }
    });
    world.start_connect(0, 1);
    let end = world.now + ms(4_000);
    while answers.get() < 4 {
        assert!(world.step(end), "four attempts");
    }
    world.run_for(us(10));
    world.nodes[1] = running;
    world.wait(0, |event| matches!(event, Event::Connected { .. }).then_some(()));
}

#[test]
fn a_client_without_any_answer_gives_up() {
    let mut world = World::pair(Config::default(), server());
    world.rule = Box::new(|_, _| Verdict::Drop);
    let error = world.connect(0, 1).unwrap_err();
    assert_eq!(error, ConnectError::NoAnswer(Duration::from_secs(5)));
}

/// The answer is of another protocol, or the client's own packet.
#[test]
fn a_client_that_another_protocol_answers_gives_up() {
    for answer in [Some(b"HTTP/1.1 400 Bad Request".to_vec()), None] {
        let mut world = World::pair(Config::default(), server());
        world.is_recording = true;
        world.rule = Box::new(|_, _| Verdict::Drop);
        world.start_connect(0, 1);
        let sent = world.sent.iter().find(|sent| sent.from == 0);
        let bytes = answer.unwrap_or_else(|| sent.unwrap().bytes.clone());
        world.hand_in(&Datagram { is_trimmed: false, at: world.now, from: 1, to: 0, bytes });
        let error = world.wait(0, |event| match event {
            Event::ConnectFailed { error, .. } => Some(error.clone()),
            _ => None,
        });
        assert_eq!(error, ConnectError::NotSmt(Duration::from_secs(5)));
    }
}

#[test]
fn a_connect_says_whether_its_host_refused_to_send() {
    for is_refused in [false, true] {
        let mut world = World::pair(Config::default(), server());
        world.rule = Box::new(|_, _| Verdict::Drop);
        world.start_connect(0, 1);
        let refused = if is_refused { 1 } else { 2 };
        let remote = address_of(refused);
        world.nodes[0].endpoint.handle_send_refused(remote);
        let error = world.wait(0, |event| match event {
            Event::ConnectFailed { error, .. } => Some(error.clone()),
            _ => None,
        });
        let after = Duration::from_secs(5);
        let expected = match is_refused {
            true => ConnectError::NotSent(after),
            false => ConnectError::NoAnswer(after),
        };
        assert_eq!(error, expected);
    }
}

/// An answer to it would be answered in turn, for ever.
// SMT [12.2-1], [12.2-3], [14-1]
#[test]
fn a_packet_of_version_0_is_not_answered_whatever_its_type() {
    let mut world = World::pair(Config::default(), server());
    world.is_recording = true;
    for version in [0, 2, smt_wire::PLAINTEXT_VERSION, 255] {
        for kind in 0..=255 {
            world.sent.clear();
            let mut bytes = vec![0; 1_200];
            (bytes[0], bytes[1]) = (version, kind);
            world.hand_in(&Datagram { is_trimmed: false, at: world.now, from: 0, to: 1, bytes });
            world.run_for(ms(2));
            let answers = world.sent.iter().filter(|sent| sent.from == 1).count();
            assert_eq!(answers, usize::from(version != 0), "version {version}, type {kind}");
        }
    }
}

// SMT [9.9-10]
#[test]
fn a_path_that_carries_no_flight_ends_a_connect_with_the_second_word_about_it() {
    for (refused, length, fails) in [(1, 1_200, true), (1, 1_201, false), (2, 1_200, false)] {
        let mut world = World::pair(Config::default(), server());
        world.rule = Box::new(|_, _| Verdict::Drop);
        world.start_connect(0, 1);
        let remote = address_of(refused);
        // More than one datagram of the first flight is refused: that is one word.
        for _ in 0..3 {
            let now = world.now;
            world.nodes[0].endpoint.handle_send_too_large(now, remote, length);
        }
        world.run_for(Duration::from_millis(50));
        let now = world.now;
        world.nodes[0].endpoint.handle_send_too_large(now, remote, length);
        world.run_for(Duration::from_millis(1));
        let failed = world.nodes[0].event(|event| match event {
            Event::ConnectFailed { error, .. } => Some(error.clone()),
            _ => None,
        });
        assert_eq!(failed, fails.then_some(ConnectError::PathTooSmall));
    }
}

/// The second of two connects to one address begins when what is no answer has come.
#[test]
fn packets_before_a_connect_say_nothing_of_its_server() {
    let mut world = World::pair(Config::default(), server());
    world.rule = Box::new(|_, _| Verdict::Drop);
    let first = world.start_connect(0, 1);
    world.hand_in(&Datagram {
        is_trimmed: false,
        at: world.now,
        from: 1,
        to: 0,
        bytes: b"HTTP/1.1 400 Bad Request".to_vec(),
    });
    world.run_for(ms(1));
    let second = world.start_connect(0, 1);
    let after = Duration::from_secs(5);
    let expected = [(first, ConnectError::NotSmt(after)), (second, ConnectError::NoAnswer(after))];
    for (id, expected) in expected {
        let error = world.wait(0, |event| match event {
            Event::ConnectFailed { connect, error } if *connect == id => Some(error.clone()),
            _ => None,
        });
        assert_eq!(error, expected);
    }
}

/// An SMT server that answers beside another protocol is believed.
#[test]
fn a_packet_that_is_no_answer_delays_no_answer() {
    let mut world = World::pair(Config::default(), server());
    let began = world.now;
    world.start_connect(0, 1);
    world.hand_in(&Datagram {
        is_trimmed: false,
        at: world.now,
        from: 1,
        to: 0,
        bytes: b"HTTP/1.1 400 Bad Request".to_vec(),
    });
    world.wait(0, |event| matches!(event, Event::Connected { .. }).then_some(()));
    // Before any flight is repeated.
    let took = world.now.since(began);
    assert!(took < ms(1), "{took:?}");
}

// SMT [9.9-9]
#[test]
fn a_report_that_no_socket_listens_is_believed_after_a_repetition() {
    let mut world = World::pair(Config::default(), server());
    let remote = world.nodes[1].address;
    let flights = Rc::new(Cell::new(0));
    let seen = Rc::clone(&flights);
    world.rule = Box::new(move |_, _| {
        seen.set(seen.get() + 1);
        Verdict::Drop
    });
    let began = world.now;
    world.start_connect(0, 1);
    world.nodes[0].endpoint.handle_unreachable(began, remote);
    world.nodes[0].endpoint.handle_unreachable(began, remote);
    world.run_for(ms(1));
    let sent = flights.get();
    world.run_for(ms(5));
    assert_eq!(flights.get(), 2 * sent);
    let now = world.now;
    world.nodes[0].endpoint.handle_unreachable(now, remote);
    let error = world.wait(0, |event| match event {
        Event::ConnectFailed { error, .. } => Some(error.clone()),
        _ => None,
    });
    assert_eq!(error, ConnectError::NoServer);
    assert_eq!(flights.get(), 2 * sent);
}

#[test]
fn a_report_about_earlier_packets_spoils_no_connect() {
    let mut world = World::pair(Config::default(), server());
    let (now, remote) = (world.now, world.nodes[1].address);
    world.start_connect(0, 1);
    world.nodes[0].endpoint.handle_unreachable(now, remote);
    world.wait(0, |event| match event {
        Event::Connected { .. } => Some(()),
        _ => None,
    });
}

#[test]
fn other_secrets_never_make_a_session() {
    let mut world = World::pair(Config::default(), server());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.secret = b"another".to_vec();
    world.nodes[1] = Node::with_exchanges(1, server(), exchanges);
    assert!(world.connect(0, 1).is_err());
    assert!(world.nodes.iter().all(|node| node.endpoint.sessions_len() == 0));
}

#[test]
fn an_unknown_version_is_answered_and_only_explains_the_failure() {
    let mut world = World::pair(Config::default(), server());
    world.is_recording = true;
    // The network changes the version byte of all that the client sends, for two seconds.
    let end = world.now + ms(2_000);
    world.rule = Box::new(move |datagram, _| {
        if datagram.from == 1 || datagram.at > end {
            return Verdict::Deliver;
        }
        let mut bytes = datagram.bytes.clone();
        bytes[0] = 9;
        Verdict::Replace(vec![bytes])
    });
    world.connect(0, 1).unwrap();
    let answers = world.sent.iter().filter(|sent| sent.has(PacketType::VersionAnswer));
    assert!(answers.clone().count() > 0);
    assert!(answers.clone().all(|sent| sent.bytes.len() < 20));
    let mut other = World::pair(Config::default(), Config::default());
    other.rule = Box::new(|_, injected| {
        injected.clear();
        Verdict::Drop
    });
    other.start_connect(0, 1);
    let bytes = version_answer(7);
    other.hand_in(&Datagram { is_trimmed: false, at: other.now, from: 1, to: 0, bytes });
    let error = other.wait(0, |event| match event {
        Event::ConnectFailed { error, .. } => Some(error.clone()),
        _ => None,
    });
    assert_eq!(error, ConnectError::Version { ours: 1, theirs: vec![7] });
}

/// Somebody on the path says, as the server, that it has version 7 alone.
// SMT [12.2-4]
#[test]
fn a_client_keeps_its_version_whatever_the_answer_says() {
    let mut world = World::pair(Config::default(), server());
    world.is_recording = true;
    world.rule = Box::new(|datagram, injected| {
        if datagram.from == 0 && datagram.has(PacketType::Handshake) {
            injected.push(Datagram {
                from: 1,
                to: 0,
                bytes: version_answer(7),
                ..datagram.clone()
            });
            return Verdict::Delay(us(500));
        }
        Verdict::Deliver
    });
    let (client, _) = world.connect(0, 1).unwrap();
    let rpc = world.call(0, client, body(1, 100));
    assert!(world.outcome(0, rpc).is_ok());
    let mut of_client = world.sent.iter().filter(|sent| sent.from == 0);
    assert!(of_client.all(|sent| sent.bytes[0] == 1));
}

/// The answer of a server that has this version alone.
fn version_answer(version: u8) -> Vec<u8> {
    let answer = VersionAnswer { versions: &[version] };
    let mut bytes = vec![0; answer.packet_len()];
    answer.emit(&mut bytes);
    bytes
}

/// Confirmations that are lost are repeated, by new packets.
// SMT [6.2-11], [6.5-2], [6.5-6]
#[test]
fn lost_confirmations_are_repeated() {
    for from in 0..2 {
        let mut world = World::pair(Config::default(), server());
        let mut lost = 0;
        world.rule = Box::new(move |datagram, _| {
            if datagram.from == from && datagram.has(PacketType::Confirm) && lost < 3 {
                lost += 1;
                return Verdict::Drop;
            }
            Verdict::Deliver
        });
        world.is_recording = true;
        let (session, _) = world.connect(0, 1).unwrap();
        let confirms = world.sent.iter().filter(|sent| sent.from == from);
        let confirms = confirms.flat_map(Datagram::packets).filter_map(|packet| match packet {
            Packet::Control(control) if control.body == Body::Confirm => Some(control.header),
            _ => None,
        });
        let numbers: Vec<u64> = confirms.map(|header| header.number.counter).collect();
        assert_eq!(numbers.len(), 4, "from node {from}");
        assert!(numbers.is_sorted_by(|one, next| one < next), "from node {from}: {numbers:?}");
        let rpc = world.call(0, session, body(1, 10));
        world.outcome(0, rpc).unwrap();
    }
}

/// The server may have the session then, and calls in it, which would be lost with the attempt.
// SMT [6.2-14], [6.1-22]
#[test]
fn a_flight_that_is_forged_once_the_client_has_finished_costs_nothing() {
    // Not a flight; one without parameters whose TLS is none; and one whose TLS is an alert that
    // nothing protects.
    let alert = b"\0\0\x15\x03\x03\0\x02\x02\x28";
    for contents in [&b"forged"[..], b"\0\0forged", alert] {
        let mut world = World::pair(Config::default(), server());
        world.is_recording = true;
        let mut flight_2 = None;
        let mut forged_count = 0;
        world.rule = Box::new(move |datagram, injected| {
            if datagram.from == 1 && datagram.handshake().is_some() {
                flight_2.get_or_insert_with(|| datagram.clone());
            }
            // CONFIRM is the last packet of flight 3's last datagram, so that is lost as well.
            let is_last = datagram.has(PacketType::Confirm) && forged_count < 4;
            let Some(flight_2) = flight_2.as_ref().filter(|_| is_last) else {
                return Verdict::Deliver;
            };
            forged_count += 1;
            injected.push(forged(flight_2, |packet| {
                packet.flight = 4;
                packet.fragment = contents;
                (packet.flight_length, packet.offset) = (contents.len() as u32, 0);
            }));
            Verdict::Drop
        });
        world.connect(0, 1).unwrap();
        let of_client = world.sent.iter().filter(|sent| sent.from == 0);
        let attempts: BTreeSet<SessionIndex> =
            of_client.filter_map(|sent| Some(sent.handshake()?.source)).collect();
        assert_eq!(attempts.len(), 1, "{attempts:?}");
        let of_client = world.sent.iter().filter(|sent| sent.from == 0);
        let most = of_client.filter_map(|sent| Some(sent.handshake()?.flight)).max();
        assert_eq!(most, Some(3), "nothing of TLS follows");
    }
}

/// The client's CONFIRM is held back, and somebody continues the handshake: with nothing, and then
/// with what TLS answers by an alert, for which there would be no flight any more.
// SMT [6.1-9]
#[test]
fn flights_after_the_clients_finished_are_not_heard() {
    for contents in [[&b"\0\0"[..], b"\0\0forged"], [&b"\0\0forged"[..]; 2]] {
        let mut world = World::pair(Config::default(), server());
        world.is_recording = true;
        let mut first_flight_3 = None;
        world.rule = Box::new(move |datagram, injected| {
            let packet = datagram.handshake().filter(|packet| packet.flight == 3);
            let (Some(packet), None) = (packet, &first_flight_3) else {
                return Verdict::Deliver;
            };
            first_flight_3 = Some(datagram.clone());
            let flight_alone = emitted(&packet);
            for (flight, contents) in [5, 7].into_iter().zip(contents) {
                injected.push(forged(datagram, |packet| {
                    (packet.flight, packet.fragment) = (flight, contents);
                    (packet.flight_length, packet.offset) = (contents.len() as u32, 0);
                }));
            }
            injected.insert(0, Datagram { bytes: flight_alone, ..datagram.clone() });
            Verdict::Drop
        });
        world.connect(0, 1).unwrap();
        let of_server = world.sent.iter().filter(|sent| sent.from == 1);
        let flights: BTreeSet<u8> =
            of_server.filter_map(|sent| Some(sent.handshake()?.flight)).collect();
        assert_eq!(flights, BTreeSet::from([2]));
        assert_eq!(world.nodes[1].endpoint.statistics().handshakes_failed, 0);
    }
}

/// A client that begins anew after silence has not been refused three times in a row.
#[test]
fn refusals_with_silence_between_them_are_not_added_up() {
    let mut world = World::pair(Config::default(), server());
    let mut exchanges = exchanges(1 << 32);
    exchanges.settings.refuses = true;
    let refusing = Node::with_exchanges(1, server(), exchanges);
    let running = std::mem::replace(&mut world.nodes[1], refusing);
    let attempts = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&attempts);
    world.rule = Box::new(move |datagram, _| {
        let mut seen = seen.borrow_mut();
        let source = datagram.handshake().map(|packet| packet.source);
        if datagram.from == 0 && !seen.contains(&source) {
            seen.push(source);
        }
        // The third attempt gets no answer.
        match seen.len() {
            3 => Verdict::Drop,
            _ => Verdict::Deliver,
        }
    });
    world.start_connect(0, 1);
    let end = world.now + ms(4_500);
    while attempts.borrow().len() < 5 {
        assert!(world.step(end), "five attempts");
    }
    world.nodes[1] = running;
    world.wait(0, |event| matches!(event, Event::Connected { .. }).then_some(()));
}

/// A peer that holds the keys has finished the handshake; but packets before its CONFIRM are
/// dropped.
// SMT [6.5-3], [6.5-4], [6.5-5]
#[test]
fn nothing_but_confirm_makes_a_session_live() {
    for from in 0..2 {
        let mut world = World::pair(Config::default(), server());
        world.is_recording = true;
        world.rule = Box::new(move |datagram, _| {
            if datagram.from != from || !datagram.has(PacketType::Confirm) {
                return Verdict::Deliver;
            }
            // It is the last packet of its datagram, and has 60 bytes.
            let rest = datagram.bytes.len() - 60;
            Verdict::Replace(vec![datagram.bytes[..rest].to_vec()])
        });
        world.start_connect(0, 1);
        world.run_for(ms(1));
        let mut own = world.sent.iter().filter(|sent| sent.from != from);
        let own = own.find_map(Datagram::handshake).unwrap().source;
        let mut rogue = match from {
            0 => Rogue::client(own),
            _ => Rogue::server(own),
        };
        rogue.say(&mut world, &[Body::Ping(7)]);
        let begun = |world: &World| world.nodes[1 - from].endpoint.statistics().sessions_begun;
        assert_eq!(begun(&world), 0, "from node {from}");
        let own = world.sent.iter().filter(|sent| sent.from != from).flat_map(Datagram::packets);
        let mut under_keys = own.filter_map(|packet| match packet {
            Packet::Control(control) => Some(control.body == Body::Confirm),
            Packet::Data(_) => Some(false),
            _ => None,
        });
        // A server has not even confirmed.
        assert!(under_keys.all(|is_confirm| is_confirm && from == 1), "from node {from}");
        world.rule = Box::new(|_, _| Verdict::Deliver);
        world.run_for(ms(100));
        assert_eq!(begun(&world), 1, "from node {from}");
    }
}

/// The network renames the indices of one side; what that side's parameters say of it stays, and is
/// authentic.
#[test]
fn parameters_that_name_another_index_than_their_packet_end_the_attempt() {
    for from in 0..2 {
        let mut world = World::pair(Config::default(), server());
        world.is_recording = true;
        world.rule = Box::new(move |datagram, _| {
            if datagram.handshake().is_none() {
                return Verdict::Drop;
            }
            let renamed = forged(datagram, |packet| {
                if datagram.from == from {
                    packet.source.0 += 7;
                } else if packet.destination != SessionIndex(0) {
                    packet.destination.0 -= 7;
                }
            });
            Verdict::Replace(vec![renamed.bytes])
        });
        world.start_connect(0, 1);
        world.run_for(ms(70));
        let deceived = world.sent.iter().filter(|sent| sent.from != from);
        let mut flights = deceived.filter_map(Datagram::handshake).map(|packet| packet.flight);
        assert!(flights.all(|flight| flight == 1), "from node {from}");
        let counted = world.nodes[1 - from].endpoint.statistics();
        assert_ne!(counted.handshakes_failed, 0);
    }
}

/// Handshakes that are begun with a valid cookie each, and never finished, all from one address.
#[test]
fn one_validated_address_does_not_keep_all_others_out() {
    let mut configs = vec![Config::default(), server(), Config::default()];
    configs[1].accepts_without_cookie = 0;
    let mut world = World::new(configs);
    occupy(&mut world, |_| address_of(2), 1_100);
    world.connect(0, 1).unwrap();
}

/// One after the other each takes as many places as it gets: half of those that are left, and
/// eleven networks take all.
#[test]
fn a_dozen_validated_addresses_do_not_keep_all_others_out() {
    let mut config = server();
    config.accepts_without_cookie = 0;
    let mut world = World::pair(Config::default(), config);
    let remote = |number: u64| SocketAddr::from(([198, 51, (number / 600) as u8, 9], 7));
    occupy(&mut world, remote, 12 * 600);
    world.connect(0, 1).unwrap();
}

/// The attacker is a neighbour: no other network has more, so addresses have their share, too.
#[test]
fn an_address_does_not_keep_out_its_own_network() {
    let mut config = server();
    config.accepts_without_cookie = 0;
    let mut world = World::pair(Config::default(), config);
    let mut neighbour = address_of(0);
    neighbour.set_ip([192, 0, 2, 77].into());
    occupy(&mut world, |_| neighbour, 1_100);
    world.connect(0, 1).unwrap();
}

/// Begins handshakes at node 1, each with the cookie that it is asked for, and goes on with none of
/// them.
fn occupy(world: &mut World, remote: impl Fn(u64) -> SocketAddr, count: u64) {
    for number in 1..=count {
        let mut packet = Handshake {
            destination: SessionIndex(0),
            source: SessionIndex(number),
            flight: 1,
            cookie: &[],
            flight_length: 5_000,
            offset: 0,
            fragment: &[1],
        };
        let answers = answers_to(world, remote(number), &emitted(&packet));
        let (_, cookie) = answers[0].split_at(20);
        packet.cookie = cookie;
        assert!(answers_to(world, remote(number), &emitted(&packet)).is_empty());
        world.run_for(us(20));
    }
}

/// The answers of node 1 to a datagram from an address that is no node's.
fn answers_to(world: &mut World, remote: SocketAddr, bytes: &[u8]) -> Vec<Vec<u8>> {
    let (now, node) = (world.now, &mut world.nodes[1]);
    let path = Path::between(remote, address_of(1).ip());
    node.endpoint.handle_arrival(now, Arrival::datagram(path, bytes));
    let mut answers = Vec::new();
    while node.endpoint.poll_transmit(now, &mut node.buffer).is_some() {
        answers.push(node.buffer.to_vec());
    }
    answers
}
