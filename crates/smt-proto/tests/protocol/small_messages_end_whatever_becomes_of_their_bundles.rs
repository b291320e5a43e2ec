// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bundles under everything at once: trouble of the network, small windows, stripes, short keys,
//! cancels, deadlines.
//!
//! 1. Bursts of small calls and one-way messages begin on both sides, as far as the windows let
//!    them.
//! 2. Applications echo, abort, or answer later; some messages are given up.
//! 3. Each message has one end, which is true; in the end nothing is left on either side.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{
    Config, Event, Execution, OneWayOutcome, Pull, PullOrder, Refused, RpcId, Statistics,
};
use smt_record::{KeyLimits, Padding};
use smt_wire::{AbortCode, SessionIndex};

use super::support::load::assert_nothing_is_left;
use super::support::rule::trouble;
use super::support::{Answer, Random, Verdict, World, body, ms, us};

/// A message that has not ended.
struct Message {
    body: Bytes,
    is_one_way: bool,
}

/// Messages that were begun, and how they ended.
#[derive(Default)]
struct Ledger {
    waiting: BTreeMap<(usize, RpcId), Message>,
    /// By body, which no other message has: how often it may have been delivered, at least and at
    /// most.
    ends: BTreeMap<Bytes, std::ops::RangeInclusive<usize>>,
    begun: u64,
    bundles: u64,
    updates: u64,
}

fn config(random: &mut Random) -> Config {
    let mut config = Config::default();
    config.window = 64;
    config.stripes_log2 = random.below(3) as u8;
    // Long enough to ask again about what was lost.
    config.key_limits = KeyLimits::new(4_096, 24, 1 << 20).unwrap();
    if random.percent(20) {
        config.first_record_size = 64 + random.below(500) as u16;
    }
    if random.percent(20) {
        config.padding = Padding::Block(64.try_into().unwrap());
    }
    config
}

fn world(random: &mut Random) -> (World, [SessionIndex; 2]) {
    let (mut world, client, server) = World::connected_with(config(random), config(random));
    let pulls = random.percent(50);
    for node in &mut world.nodes {
        if pulls {
            let order = [PullOrder::ShortestFirst, PullOrder::RoundRobin][random.below(2)];
            let policy = Pull::new(10_000_000_000, 20_000).in_order(order);
            node.endpoint.set_pull_policy(Box::new(policy));
        }
        let mut answers = Random::new(random.any());
        node.application = Box::new(move |request| match answers.below(20) {
            0 => Answer::Abort(AbortCode::Dropped),
            1..4 => Answer::Hold,
            _ => Answer::Reply(request.clone()),
        });
    }
    let mut cut = Random::new(random.any());
    let mut others = trouble(Random::new(random.any()), 10);
    world.rule = Box::new(move |datagram, injected| {
        if datagram.data().is_some() && cut.percent(5) {
            return Verdict::Trim;
        }
        others(datagram, injected)
    });
    (world, [client, server])
}

impl Ledger {
    /// Begins what the window lets begin of a burst.
    fn burst(&mut self, world: &mut World, ends: [SessionIndex; 2], random: &mut Random) {
        let node = random.below(2);
        for _ in 0..1 + random.below(30) {
            let length = match random.below(20) {
                0 => 3_000,
                1..5 => 600,
                _ => 120,
            };
            self.begun += 1;
            let body = body(self.begun, 8 + random.below(length));
            let is_one_way = random.percent(40);
            let deadline = random.percent(5).then(|| ms(1 + random.below(40) as u64));
            let now = world.now;
            let endpoint = &mut world.nodes[node].endpoint;
            let begun = match is_one_way {
                true => endpoint.send_one_way(now, ends[node], body.clone(), deadline),
                false => endpoint.call(now, ends[node], body.clone(), deadline),
            };
            match begun {
                Ok(rpc) => {
                    let message = Message { body, is_one_way };
                    self.waiting.insert((node, rpc), message);
                }
                Err(Refused::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn give_up_some(&self, world: &mut World, random: &mut Random) {
        let names = self.waiting.keys().filter(|_| random.percent(5));
        for (node, rpc) in names.copied().collect::<Vec<_>>() {
            let now = world.now;
            world.nodes[node].endpoint.cancel(now, rpc);
        }
    }

    /// Requests that were held are answered, if their callers still wait.
    fn answer_held(world: &mut World, held: &mut [usize; 2]) {
        let now = world.now;
        for (node, answered) in world.nodes.iter_mut().zip(held) {
            for (rpc, body) in &node.delivered[*answered..] {
                // Others were answered, or were no requests.
                let _ = node.endpoint.reply(now, *rpc, body.clone());
            }
            *answered = node.delivered.len();
        }
    }

    fn take_events(&mut self, world: &mut World) {
        for node in 0..2 {
            while let Some(event) = world.nodes[node].events.pop_front() {
                self.take(node, event);
            }
        }
    }

    fn take(&mut self, node: usize, event: Event) {
        let (rpc, times) = match &event {
            Event::Reply { rpc, .. } => (*rpc, 1..=1),
            Event::CallFailed { rpc, error } if error.execution == Execution::DidNotRun => {
                (*rpc, 0..=0)
            }
            Event::CallFailed { rpc, .. } => (*rpc, 0..=1),
            Event::OneWayDone { rpc, outcome } => match outcome {
                OneWayOutcome::Delivered => (*rpc, 1..=1),
                OneWayOutcome::NotDelivered(_) => (*rpc, 0..=0),
                _ => (*rpc, 0..=1),
            },
            Event::OneWay { .. } | Event::Cancelled(_) | Event::Unblocked(_) => return,
            other => panic!("node {node}: {other:?}"),
        };
        let message = self.waiting.remove(&(node, rpc)).expect("one end each");
        let is_of_one_way = matches!(event, Event::OneWayDone { .. });
        assert_eq!(message.is_one_way, is_of_one_way);
        if let Event::Reply { body, .. } = event {
            assert!(body == message.body, "the echo differs from the request");
        }
        self.ends.insert(message.body, times);
    }

    fn check(&mut self, world: &World, ends: [SessionIndex; 2]) {
        assert_nothing_is_left(world, ends);
        let mut delivered: BTreeMap<&Bytes, usize> = BTreeMap::new();
        for (_, body) in world.nodes.iter().flat_map(|node| &node.delivered) {
            *delivered.entry(body).or_default() += 1;
        }
        for (body, times) in &self.ends {
            let count = delivered.remove(body).unwrap_or(0);
            assert!(times.contains(&count), "delivered {count} times: {times:?}");
        }
        assert!(delivered.is_empty(), "delivered, but nobody sent it");
        for node in &world.nodes {
            let Statistics { violations, bundles_sent, key_updates, .. } =
                node.endpoint.statistics();
            assert_eq!(violations, 0);
            self.bundles += bundles_sent;
            self.updates += key_updates;
        }
    }
}

/// One case: bundles sent and keys renewed in it.
fn case(seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let (mut world, ends) = world(&mut random);
    let mut ledger = Ledger::default();
    let mut held = [0; 2];
    for _ in 0..30 {
        ledger.burst(&mut world, ends, &mut random);
        if random.percent(50) {
            ledger.burst(&mut world, ends, &mut random);
        }
        // Some are given up before anything has left.
        if random.percent(30) {
            ledger.give_up_some(&mut world, &mut random);
        }
        world.run_for(us(random.below(8_000) as u64));
        ledger.take_events(&mut world);
        ledger.give_up_some(&mut world, &mut random);
        if random.percent(30) {
            Ledger::answer_held(&mut world, &mut held);
        }
    }
    let end = world.now + Duration::from_secs(60);
    while !ledger.waiting.is_empty() {
        Ledger::answer_held(&mut world, &mut held);
        assert!(world.now < end, "{} never end", ledger.waiting.len());
        world.run_for(ms(5));
        ledger.take_events(&mut world);
    }
    world.run_for(Duration::from_secs(20));
    ledger.check(&world, ends);
    (ledger.bundles, ledger.updates)
}

#[test]
fn small_messages_end_in_some_hundred_random_cases() {
    let mut random = Random::from_env();
    let mut sums = (0, 0);
    for number in 0..CASES {
        let seed = random.any();
        println!("case {number}: seed {seed}");
        let (bundles, updates) = case(seed);
        sums.0 += bundles;
        sums.1 += updates;
    }
    // Else the cases are about something else.
    assert!(sums.0 > 10 * CASES && sums.1 > CASES, "{sums:?}");
}

const CASES: u64 = 300;
