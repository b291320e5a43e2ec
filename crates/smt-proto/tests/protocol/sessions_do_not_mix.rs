// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two servers may choose the same index; the same ids are used with both.

use smt_carrier::{Arrival, Path};
use smt_wire::{Packet, VERSION, parse};

use super::support::configs::ethernet;
use super::support::rule::trouble;
use super::support::{Random, Verdict, World, body, ms};

#[test]
fn sessions_do_not_mix_although_both_servers_chose_the_same_index() {
    let mut server = ethernet();
    server.accept = true;
    let mut world = World::new(vec![ethernet(), server.clone(), server]);
    let (first, remote_of_first) = world.connect(0, 1).unwrap();
    let (second, remote_of_second) = world.connect(0, 2).unwrap();
    assert_eq!(remote_of_first, remote_of_second);
    // Both leave in turns, and the turns end in the middle of records.
    let now = world.now;
    let endpoint = &mut world.nodes[0].endpoint;
    let calls = [(first, 1), (second, 2)].map(|(session, seed)| {
        let rpc = endpoint.call(now, session, body(seed, 1_000_000), None);
        (rpc.unwrap(), seed)
    });
    for (rpc, seed) in calls {
        assert!(world.outcome(0, rpc) == Ok(body(seed, 1_000_000)));
    }
    for node in &world.nodes {
        assert_eq!(node.endpoint.statistics().records_failed, 0);
    }
}

/// Two sessions between the same sockets, whose packets could share datagrams.
// SMT [6.6-4], [15.1-1]
#[test]
fn each_datagram_has_whole_packets_of_one_session() {
    let mut world = World::pair(ethernet(), ethernet());
    world.is_recording = true;
    let sessions = [0; 2].map(|_| world.connect(0, 1).unwrap().0);
    // Two that wait at once would fit in one datagram.
    let (now, endpoint) = (world.now, &mut world.nodes[0].endpoint);
    let small = sessions.map(|session| endpoint.call(now, session, body(1, 64), None).unwrap());
    for rpc in small {
        assert_eq!(world.outcome(0, rpc), Ok(body(1, 64)));
    }
    world.rule = Box::new(trouble(Random::from_env(), 10));
    let bodies = (0..40).map(|number| body(number, 200 * number as usize));
    let calls: Vec<_> = bodies
        .enumerate()
        .map(|(at, body)| (world.call(0, sessions[at % 2], body.clone()), body))
        .collect();
    for (rpc, body) in calls {
        assert_eq!(world.outcome(0, rpc), Ok(body));
    }
    let mut several = 0;
    for sent in &world.sent {
        let mut names = Vec::new();
        let mut rest = sent.bytes.as_slice();
        while !rest.is_empty() {
            let (packet, further) = parse(VERSION, rest).unwrap_or_else(|_| panic!("{sent:?}"));
            names.push(match packet {
                Packet::Data(data) => data.header.session,
                Packet::Control(control) => control.header.session,
                Packet::Handshake(handshake) => handshake.destination,
                other => panic!("{other}"),
            });
            rest = further;
        }
        several += usize::from(names.len() > 1);
        names.dedup();
        assert_eq!(names.len(), 1, "{}", sent.line());
    }
    assert!(several > 5, "so few that this shows nothing");
}

/// A packet is of a session only if it came on that session's way (SPEC §6.3).
#[test]
fn sessions_do_not_mix_although_a_packet_comes_by_another_address_of_the_host() {
    let (mut world, session, _) = World::connected();
    world.rule = Box::new(|_, _| Verdict::Drop);
    world.is_recording = true;
    let rpc = world.call(0, session, body(1, 100));
    let path = Path::between(world.nodes[0].address, [198, 51, 100, 1].into());
    let (now, server) = (world.now, &mut world.nodes[1].endpoint);
    server.handle_arrival(now, Arrival::datagram(path, &world.sent[0].bytes));
    assert_eq!(server.statistics().packets_unknown_session, 1);
    world.run_for(ms(1));
    assert!(world.nodes[1].delivered.is_empty());
    world.rule = Box::new(|_, _| Verdict::Deliver);
    assert_eq!(world.outcome(0, rpc), Ok(body(1, 100)));
}
