// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One identity cannot take all sessions of a server: its own unused ones give way (SPEC §10).

use smt_proto::{CloseCode, Config, Event, SessionEnd};
use smt_wire::SessionIndex;

use super::support::{Answer, Node, World, body, exchanges, ms};

/// A server, node 1, that sees this certificate of every client, or none; and two clients.
fn world(certificate: Option<&[u8]>, sessions_max: usize, of_identity: Option<usize>) -> World {
    let mut server = Config::default();
    server.accept = true;
    server.sessions_max = sessions_max;
    server.sessions_of_identity_max = of_identity;
    let configs = [Config::default(), server, Config::default()];
    let nodes = configs.into_iter().enumerate().map(|(number, config)| {
        let mut exchanges = exchanges((number as u64) << 32);
        if number == 1 {
            exchanges.settings.certificate = certificate.map(<[u8]>::to_vec);
        }
        Node::with_exchanges(number, config, exchanges)
    });
    World::of(nodes.collect())
}

/// The sessions of a node that have ended, and how.
fn ended(world: &mut World, node: usize) -> Vec<(SessionIndex, SessionEnd)> {
    let next = || {
        world.nodes[node].event(|event| match event {
            Event::SessionEnded { session, end } => Some((*session, end.clone())),
            _ => None,
        })
    };
    std::iter::from_fn(next).collect()
}

// SMT [10-23]
#[test]
fn the_longest_unused_session_of_an_identity_gives_way_to_a_newer_one() {
    for longest_unused in 0..3 {
        let mut world = world(Some(b"alice"), 100, Some(3));
        let sessions: Vec<_> = (0..3).map(|_| world.connect(0, 1).unwrap().0).collect();
        for used in (0..3).filter(|used| *used != longest_unused) {
            let rpc = world.call(0, sessions[used], body(1, 10));
            world.outcome(0, rpc).unwrap();
        }
        // Until the replies are acknowledged, those sessions are in use.
        world.run_for(ms(60_000));
        world.connect(2, 1).unwrap();
        let closed = SessionEnd::ClosedByPeer(CloseCode::Idle);
        assert_eq!(ended(&mut world, 0), [(sessions[longest_unused], closed)]);
        assert_eq!(world.nodes[1].endpoint.sessions_len(), 3);
    }
}

// SMT [10-23]
#[test]
fn a_new_session_is_closed_where_all_others_of_its_identity_are_in_use() {
    let mut world = world(Some(b"alice"), 8, None);
    world.nodes[1].application = Box::new(|_| Answer::Hold);
    for _ in 0..2 {
        let (session, _) = world.connect(0, 1).unwrap();
        world.call(0, session, body(1, 10));
        world.run_for(ms(5));
    }
    world.start_connect(2, 1);
    world.run_for(ms(50));
    assert_eq!(ended(&mut world, 0), []);
    let ends: Vec<_> = ended(&mut world, 2).into_iter().map(|(_, end)| end).collect();
    assert_eq!(ends, [SessionEnd::ClosedByPeer(CloseCode::TooMany)]);
    assert_eq!(world.nodes[1].endpoint.sessions_len(), 2);
}

#[test]
fn sessions_that_end_make_room_and_clients_without_identity_are_not_counted() {
    let mut with = world(Some(b"alice"), 100, Some(2));
    for _ in 0..5 {
        let (session, _) = with.connect(0, 1).unwrap();
        with.nodes[0].endpoint.close(session, CloseCode::Done);
        with.run_for(ms(5));
    }
    let ends = ended(&mut with, 0);
    assert!(ends.iter().all(|(_, end)| *end == SessionEnd::ClosedHere), "{ends:?}");
    let mut without = world(None, 100, Some(2));
    for _ in 0..5 {
        without.connect(0, 1).unwrap();
    }
    assert_eq!(without.nodes[1].endpoint.sessions_len(), 5);
}
