// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Many messages in both directions, and the check that each was delivered once and unchanged.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{CallError, Event, OneWayOutcome, RpcId};
use smt_wire::SessionIndex;

use super::{Random, World, body};

/// The messages that are sent.
pub struct Load {
    pub messages: usize,
    /// Outstanding at once, over both directions.
    pub at_once: usize,
    pub size_max: usize,
    pub random: Random,
}

/// Both ends' index of a session.
pub type Ends = [SessionIndex; 2];

impl Load {
    /// Runs it between nodes 0 and 1, whose applications must echo. Every message must succeed.
    pub fn run(self, world: &mut World, ends: Ends) {
        let failures = self.run_with_failures(world, ends);
        assert!(failures.is_empty(), "{failures:?}");
    }

    /// Runs it; failed calls are returned. Each delivered message was delivered once and unchanged,
    /// in any case.
    pub fn run_with_failures(mut self, world: &mut World, ends: Ends) -> Vec<CallError> {
        let mut issued: Vec<Bytes> = Vec::new();
        let mut waiting: BTreeMap<(usize, RpcId), Bytes> = BTreeMap::new();
        let mut failures = Vec::new();
        let end = world.now + Duration::from_secs(3_000);
        while issued.len() < self.messages || !waiting.is_empty() {
            while issued.len() < self.messages && waiting.len() < self.at_once {
                let (name, body) = self.start_message(world, ends);
                issued.push(body.clone());
                waiting.insert(name, body);
            }
            assert!(world.step(end), "{} messages never end", waiting.len());
            for node in 0..2 {
                while let Some(event) = world.nodes[node].events.pop_front() {
                    take(node, event, &mut waiting, &mut failures);
                }
            }
        }
        world.run_for(Duration::from_secs(20));
        check_delivered(world, &issued, failures.len());
        failures
    }

    fn start_message(&mut self, world: &mut World, ends: Ends) -> ((usize, RpcId), Bytes) {
        let random = &mut self.random;
        let node = random.below(2);
        let most = match random.below(10) {
            0..6 => 1_000,
            6..9 => 20_000,
            _ => 300_000,
        };
        let size = 8 + random.below(self.size_max.min(most));
        let body = body(random.any(), size);
        let rpc = if random.percent(20) {
            world.send_one_way(node, ends[node], body.clone())
        } else {
            world.call(node, ends[node], body.clone())
        };
        ((node, rpc), body)
    }
}

fn take(
    node: usize,
    event: Event,
    waiting: &mut BTreeMap<(usize, RpcId), Bytes>,
    failures: &mut Vec<CallError>,
) {
    match event {
        Event::Reply { rpc, body, .. } => {
            let sent = waiting.remove(&(node, rpc)).expect("one end per call");
            assert!(sent == body, "the echo differs from the request");
        }
        Event::OneWayDone { rpc, outcome } => {
            waiting.remove(&(node, rpc)).expect("one end per message");
            assert_eq!(outcome, OneWayOutcome::Delivered);
        }
        Event::CallFailed { rpc, error } => {
            waiting.remove(&(node, rpc)).expect("one end per call");
            failures.push(error);
        }
        Event::OneWay { .. } => {}
        other => panic!("node {node}: {other:?}"),
    }
}

fn check_delivered(world: &World, issued: &[Bytes], failed: usize) {
    let mut delivered: BTreeMap<&Bytes, usize> = BTreeMap::new();
    for (_, body) in world.nodes.iter().flat_map(|node| &node.delivered) {
        *delivered.entry(body).or_default() += 1;
    }
    assert!(delivered.values().all(|times| *times == 1), "something was delivered twice");
    let known = issued.iter().filter(|body| delivered.contains_key(body));
    let known = known.count();
    assert_eq!(known, delivered.len(), "something was delivered that nobody sent");
    assert!(known + failed >= issued.len(), "something was not delivered");
}

/// Nothing is left behind by messages that have ended.
pub fn assert_nothing_is_left(world: &World, ends: Ends) {
    assert_nothing_lives(world, ends);
    let held = world.nodes.iter().map(|node| node.endpoint.memory());
    assert_eq!(held.sum::<usize>(), 0, "bytes held");
}

/// No message is live.
pub fn assert_nothing_lives(world: &World, ends: Ends) {
    for (node, session) in world.nodes.iter().zip(ends) {
        let facts = node.endpoint.session(session).expect("a live session");
        assert_eq!((facts.calls, facts.served), (0, 0), "live messages");
    }
}
