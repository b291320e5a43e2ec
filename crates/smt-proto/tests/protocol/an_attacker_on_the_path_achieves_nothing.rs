// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An attacker that sees, changes, drops, repeats, reorders and injects packets can delay messages,
//! and nothing else.

use std::cell::Cell;
use std::rc::Rc;

use smt_proto::{Config, Event};
use smt_record::KeyLimits;
use smt_wire::{PacketType, SessionIndex};

use super::support::configs::ethernet;
use super::support::forge::{EPOCH, ID, MESSAGE_LENGTH, OFFSET, SESSION, set_u32, set_u64};
use super::support::load::assert_nothing_lives;
use super::support::{Datagram, Load, Random, Verdict, World};

struct Attacker {
    random: Random,
    ends: [SessionIndex; 2],
    seen: Vec<Datagram>,
    is_active: Rc<Cell<bool>>,
}

impl Attacker {
    fn treat(&mut self, datagram: &Datagram, injected: &mut Vec<Datagram>) -> Verdict {
        if self.seen.len() < 3_000 {
            self.seen.push(datagram.clone());
        } else {
            let at = self.random.below(3_000);
            self.seen[at] = datagram.clone();
        }
        if !self.is_active.get() {
            return Verdict::Deliver;
        }
        while self.random.percent(40) {
            let at = self.random.below(self.seen.len());
            let other = self.seen[at].clone();
            injected.push(self.changed(other));
        }
        match self.random.below(20) {
            0 => Verdict::Drop,
            1 => Verdict::Duplicate,
            2 => Verdict::Delay(super::support::us(self.random.below(20_000) as u64)),
            3 => Verdict::Replace(vec![self.changed(datagram.clone()).bytes]),
            _ => Verdict::Deliver,
        }
    }

    /// One of many lies about a genuine packet.
    fn changed(&mut self, mut datagram: Datagram) -> Datagram {
        let random = &mut self.random;
        let number = random.any();
        let length = datagram.bytes.len();
        let bytes = &mut datagram.bytes;
        let has_header = length >= 36;
        match random.below(14) {
            0 => {}
            1 => bytes[random.below(length)] ^= 1 << random.below(8),
            2 => bytes.truncate(1 + random.below(length)),
            3 if has_header => set_u64(bytes, ID, number % 2_000),
            4 if has_header => set_u32(bytes, OFFSET, number as u32 % 100_000),
            5 if has_header => set_u32(bytes, MESSAGE_LENGTH, number as u32 % 100_000),
            6 if has_header => set_u32(bytes, MESSAGE_LENGTH, number as u32),
            7 => bytes[EPOCH.min(length - 1)] = number as u8,
            8 if has_header => set_u64(bytes, SESSION, self.ends[number as usize % 2].0),
            9 => {
                let types = PacketType::ALL;
                bytes[1.min(length - 1)] = types[random.below(types.len())] as u8;
            }
            10 => {
                // Reflected.
                std::mem::swap(&mut datagram.from, &mut datagram.to);
                if has_header {
                    set_u64(&mut datagram.bytes, SESSION, self.ends[datagram.to].0);
                }
            }
            11 => {
                let at = random.below(self.seen.len());
                let tail = &self.seen[at].bytes;
                bytes.extend_from_slice(&tail[tail.len() / 2..]);
            }
            12 => (0..10).for_each(|_| bytes[random.below(length)] = random.any() as u8),
            _ => bytes.extend((0..random.below(50)).map(|at| at as u8)),
        }
        datagram
    }
}

fn attack(config: Config, messages: usize, size_max: usize) {
    let mut random = Random::from_env();
    let (mut world, client, server) = World::connected_with(config.clone(), config);
    let is_active = Rc::new(Cell::new(true));
    let mut attacker = Attacker {
        random: Random::new(random.any()),
        ends: [client, server],
        seen: Vec::new(),
        is_active: Rc::clone(&is_active),
    };
    world.rule = Box::new(move |datagram, injected| attacker.treat(datagram, injected));
    for _ in 0..3 {
        let load = Load { messages, at_once: 20, size_max, random: Random::new(random.any()) };
        load.run(&mut world, [client, server]);
        for node in &mut world.nodes {
            assert!(!node.events.iter().any(|event| matches!(event, Event::SessionEnded { .. })));
            assert_eq!(node.endpoint.statistics().violations, 0);
            node.delivered.clear();
        }
        is_active.set(!is_active.get());
    }
    assert_nothing_lives(&world, [client, server]);
    // Forged packets that wait for a record 0 which never comes.
    let held = world.nodes.iter().map(|node| node.endpoint.memory());
    assert!(held.max() <= Some(256 * 1024));
}

#[test]
fn an_attacker_achieves_nothing_against_small_messages() {
    attack(Config::default(), 2_000, 1_000);
}

#[test]
fn an_attacker_achieves_nothing_against_messages_of_many_packets() {
    attack(ethernet(), 500, 300_000);
}

#[test]
fn an_attacker_achieves_nothing_against_many_key_epochs() {
    let mut config = ethernet();
    config.key_limits = KeyLimits::new(4_096, 64, 1 << 30).unwrap();
    attack(config, 500, 50_000);
}

#[test]
fn an_attacker_achieves_nothing_against_stripes() {
    let mut config = ethernet();
    config.stripes_log2 = 2;
    config.window = 64;
    attack(config, 500, 50_000);
}
