// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The record stream of a message on its way: its bytes leave in order, as far as the peer permits,
//! and are the same bytes whenever they leave (SPEC §5.3, §9.1).

use std::collections::BTreeMap;

use smt_proto::{Config, RpcId};
use smt_wire::{Body, Grant, List, MessageId, Resend, SessionIndex};

use super::keys_are_renewed_under_load::Miser;
use super::support::configs::ethernet;
use super::support::rogue::Rogue;
use super::support::rule::trouble;
use super::support::{Load, Random, Verdict, World, body, ms};

/// Checks every DATA packet that has left against what has left of its message before.
fn assert_streams_are_kept(world: &World) {
    let mut streams: BTreeMap<(usize, SessionIndex, MessageId), Vec<u8>> = BTreeMap::new();
    let mut again = 0;
    for sent in &world.sent {
        let Some(data) = sent.data() else { continue };
        let name = (sent.from, data.header.session, data.header.id);
        let stream = streams.entry(name).or_default();
        let (start, line) = (data.header.offset as usize, sent.line());
        assert!(start <= stream.len(), "bytes before it have not left: {line}");
        let known = data.payload.len().min(stream.len() - start);
        assert!(stream[start..start + known] == data.payload[..known], "other bytes: {line}");
        let is_again = known == data.payload.len();
        assert_eq!(data.header.retransmit, is_again, "{line}");
        if is_again && start == 0 {
            assert!(sent.bytes.len() <= 1_200, "record 0 in a larger datagram: {line}");
        }
        again += usize::from(is_again);
        stream.extend_from_slice(&data.payload[known..]);
    }
    assert!(again > 10, "so little was sent again that this shows nothing");
}

// SMT [5.5-2], [9.1-4], [9.1-5], [9.1-6], [9.3-21]
#[test]
fn bytes_leave_in_order_and_are_marked_and_the_same_when_they_leave_again() {
    let mut random = Random::from_env();
    for config in [ethernet(), Config::default()] {
        let (mut world, client, server) = World::connected_with(config.clone(), config);
        world.rule = Box::new(trouble(Random::new(random.any()), 5));
        world.is_recording = true;
        let random = Random::new(random.any());
        let load = Load { messages: 300, at_once: 20, size_max: 100_000, random };
        load.run(&mut world, [client, server]);
        assert_streams_are_kept(&world);
    }
}

/// A one-way message of many records to a peer that grants nothing, and of which nothing arrives
/// but what a rogue says.
fn unheard() -> (World, RpcId, Rogue) {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    world.nodes[1].endpoint.set_grant_policy(Box::new(Miser));
    world.is_recording = true;
    world.rule = Box::new(|datagram, _| match datagram.from {
        1 => Verdict::Drop,
        _ => Verdict::Deliver,
    });
    let rpc = world.send_one_way(0, session, body(1, 400_000));
    world.run_for(ms(1));
    (world, rpc, Rogue::server(session))
}

/// Where the bytes of node 0 begin and end that were recorded, by offsets in their record stream.
fn range(world: &World) -> (u32, u32) {
    let data = world.sent.iter().filter_map(|sent| sent.data());
    let ends = |data: smt_wire::Data<'_>| {
        let start = data.header.offset;
        (start, start + data.payload.len() as u32)
    };
    let ranges: Vec<(u32, u32)> = data.map(ends).collect();
    let start = ranges.iter().map(|(start, _)| *start).min();
    (start.unwrap_or(0), ranges.iter().map(|(_, end)| *end).max().unwrap_or(0))
}

/// Bytes of record 0, and of each of the others but the last.
const FIRST: u32 = 1_142 + 22;
const OTHER: u32 = 16_384 + 22;

/// 60,000 bytes need no grant, and end in the fourth record behind record 0.
// SMT [5.3-4], [9.1-2], [8-4]
#[test]
fn a_limit_inside_a_record_reaches_to_its_end_and_no_further() {
    let (mut world, rpc, mut rogue) = unheard();
    assert_eq!(range(&world), (0, FIRST + 4 * OTHER));
    let receiver = world.nodes[1].endpoint.statistics();
    assert_eq!(receiver.packets_contradicting, 0, "its receiver cuts no record either");
    let mut grant = |granted: u32| {
        let grants = [Grant { id: rpc.id, granted, received: 0, priority: 0 }];
        rogue.say(&mut world, &[Body::Grant(List::from(&grants[..]))]);
        range(&world).1
    };
    assert_eq!(grant(FIRST + 4 * OTHER + 1), FIRST + 5 * OTHER);
    assert_eq!(grant(FIRST), FIRST + 5 * OTHER, "it does not go back");
    // One that comes behind a further one, before anything has left by that.
    let overtaken = [FIRST + 7 * OTHER, FIRST + 6 * OTHER].map(|granted| Grant {
        id: rpc.id,
        granted,
        received: 0,
        priority: 0,
    });
    rogue.say(&mut world, &[Body::Grant(List::from(&overtaken[..]))]);
    assert_eq!(range(&world).1, FIRST + 7 * OTHER);
}

// SMT [5.3-7], [8-6]
#[test]
fn a_question_is_answered_by_its_range_by_all_of_record_0_and_by_nothing_that_may_not_leave() {
    let (mut world, rpc, mut rogue) = unheard();
    let mut answer = |offset: u32, length: u32| {
        world.sent.clear();
        let resends = [Resend { id: rpc.id, offset, length }];
        rogue.say(&mut world, &[Body::Resend(List::from(&resends[..]))]);
        assert!(world.sent.iter().all(|sent| sent.data().is_some_and(|it| it.header.retransmit)));
        range(&world)
    };
    assert_eq!(answer(20_000, 3_000), (20_000, 23_000));
    assert_eq!(answer(FIRST - 1, 1), (0, FIRST));
    assert_eq!(answer(0, Resend::TO_THE_END), (0, FIRST + 4 * OTHER));
}
