// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The actions of the applications of a case: messages at random times, together, more than a
//! memory holds, or longer than a host takes.

use std::time::Duration;

use smt_proto::Config;

use super::{Action, Case, Planned, SMALL_MEMORY_MAX};
use crate::net::packet::HostId;
use crate::random::Random;
use crate::swarm::check::{Content, InParts, Sent};

impl Case {
    pub(super) fn draw_plan(&mut self, random: &mut Random) {
        for number in 0..random.between(200, 260) {
            let (host, to) = self.two_hosts(random);
            let length = length(random);
            let is_one_way = random.chance(200_000);
            let content = Content {
                number: (random.any() & !0xFFFF) | number,
                length,
                reply_length: self::length(random),
            };
            let some = |random: &mut Random| {
                let micros = random.between(1, 20_000);
                random.chance(100_000).then(|| Duration::from_micros(micros))
            };
            let (deadline, cancel_after) = (some(random), some(random));
            let action = Action::Send {
                sent: Sent {
                    content,
                    from: host,
                    to,
                    is_one_way,
                    may_be_given_up: deadline.is_some() || cancel_after.is_some(),
                    parts: InParts::default(),
                },
                deadline,
                cancel_after,
            };
            let at = self.moment(random);
            self.plan.push(Planned { at, host, action });
        }
        if random.chance(100_000) {
            let (host, peer) = self.two_hosts(random);
            let (at, action) = (self.moment(random), Action::Close(peer));
            self.plan.push(Planned { at, host, action });
            self.may_end.add(host, peer);
        }
    }

    /// Some messages leave together with the one before, to the same host: what is small of them
    /// fits a bundle.
    pub(super) fn draw_bursts(&mut self, random: &mut Random) {
        for later in 1..self.plan.len() {
            let [before, planned] = &mut self.plan[later - 1..=later] else {
                continue;
            };
            if let (Action::Send { sent: first, .. }, Action::Send { sent, .. }) =
                (&before.action, &mut planned.action)
                && random.chance(400_000)
            {
                (sent.from, sent.to) = (first.from, first.to);
                (planned.at, planned.host) = (before.at, before.host);
            }
        }
    }

    /// Long messages of all others arrive at once where there is little memory: what they may send
    /// without being asked is many times as much.
    pub(super) fn draw_pressure(&mut self, random: &mut Random) {
        let is_small = |config: &Config| config.memory_max <= SMALL_MEMORY_MAX;
        let Some(small) = self.configs.iter().position(is_small) else {
            return;
        };
        let (to, at) = (HostId(small as u32), self.moment(random));
        for number in 0..random.between(40, 80) {
            let (host, is_one_way) = (self.other_than(to, random), random.chance(500_000));
            let content = Content {
                number: (random.any() & !0xFFFF) | (PRESSURE_NUMBER + number),
                length: random.between(60_000, 130_000) as u32,
                reply_length: 0,
            };
            let sent = Sent {
                content,
                from: host,
                to,
                is_one_way,
                may_be_given_up: false,
                parts: InParts::default(),
            };
            let action = send(sent);
            self.plan.push(Planned { at, host, action });
        }
    }

    /// In a quarter of the cases a host takes messages and replies up to a length that many have,
    /// and a few exceed, some by a byte.
    pub(super) fn draw_limit(&mut self, random: &mut Random) {
        if !random.chance(250_000) {
            return;
        }
        let host = HostId(random.below(u64::from(self.hosts())) as u32);
        let config = &mut self.configs[host.0 as usize];
        // A message that fills a small memory is long.
        if config.memory_max <= SMALL_MEMORY_MAX {
            return;
        }
        let limit = random.between(2_000, 60_000) as u32;
        config.message_limit = limit;
        for planned in &mut self.plan {
            let Action::Send { sent, .. } = &mut planned.action else {
                continue;
            };
            let content = &mut sent.content;
            if sent.to == host {
                content.length = content.length.min(limit);
            } else if sent.from == host {
                content.reply_length = content.reply_length.min(limit);
            }
        }
        for number in 0..random.between(6, 12) {
            let other = self.other_than(host, random);
            let (long, short) = (*random.pick(&[limit, limit + 1, 2 * limit]), length(random));
            let is_reply = random.chance(500_000);
            let ((from, to), (length, reply_length)) = match is_reply {
                true => ((host, other), (short, long)),
                false => ((other, host), (long, short)),
            };
            let content = Content {
                number: (random.any() & !0xFFFF) | (LIMIT_NUMBER + number),
                length,
                reply_length,
            };
            let sent = Sent {
                content,
                from,
                to,
                is_one_way: !is_reply && random.chance(500_000),
                may_be_given_up: false,
                parts: InParts::default(),
            };
            let (at, action) = (self.moment(random), send(sent));
            self.plan.push(Planned { at, host: from, action });
        }
    }
}

/// To send a message that nobody gives up.
fn send(sent: Sent) -> Action {
    Action::Send { sent, deadline: None, cancel_after: None }
}

/// Most messages are small; every fourth has several records; few are large.
fn length(random: &mut Random) -> u32 {
    let (least, most) = match random.below(100) {
        0..5 => (0, 11),
        5..72 => (12, 1_000),
        72..92 => (1_200, 20_000),
        92..99 => (20_000, 60_000),
        _ => (60_000, 250_000),
    };
    random.between(least, most) as u32
}

/// Keeps the numbers of messages that fill a small memory, and of those about a host's limit, apart
/// from the others'.
const PRESSURE_NUMBER: u64 = 1_000;
const LIMIT_NUMBER: u64 = 2_000;
