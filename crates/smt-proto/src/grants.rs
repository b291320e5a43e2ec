// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which incoming messages may send more, and how much (SPEC §9.2).
//!
//! [`Grants`] holds every opened message of the endpoint that is longer than its unscheduled bytes; a
//! [`GrantPolicy`] decides. The default is Homa's: shortest remaining first, a few at once, and a small share
//! for the oldest, so that long messages are not starved by ever new short ones.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::event::RpcId;
use crate::limits::{OLDEST_SHARE, OVERCOMMIT};

/// A message that needs grants. Offsets count in its record stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grantable {
    /// Which.
    pub rpc: RpcId,
    /// Bytes of the whole record stream.
    pub length: u32,
    /// Bytes that have arrived and opened.
    pub arrived: u32,
    /// End of what may be sent.
    pub granted: u32,
    /// Age: messages that began earlier have a smaller number.
    pub order: u64,
}

/// A decision to let a message send more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Granted {
    /// Which.
    pub rpc: RpcId,
    /// The new end of what may be sent.
    pub end: u32,
    /// Priority of those bytes, 0..7, 7 most urgent.
    pub priority: u8,
}

/// Decides which messages may send more. Called whenever something has changed.
pub trait GrantPolicy: Send {
    /// Appends decisions. `budget` is the endpoint's limit of bytes granted and not yet arrived.
    fn grant(&mut self, messages: &[Grantable], budget: u32, decisions: &mut Vec<Granted>);
}

/// Homa's policy.
#[derive(Debug)]
pub struct ShortestRemainingFirst {
    /// Messages granted at once.
    overcommit: usize,
    /// Bytes that one message may have granted and not arrived, least and most.
    window: RangeInclusive<u32>,
    /// Bytes that the oldest message is still owed, in thousandths.
    owed: u64,
}

impl ShortestRemainingFirst {
    /// Grants `overcommit` messages at once. Each has its share of the budget, within these limits: at least a whole
    /// record and its overhead (SPEC §9.2), at most what keeps a path busy (bandwidth times round trip).
    #[must_use]
    pub fn new(overcommit: usize, window: RangeInclusive<u32>) -> Self {
        Self {
            overcommit,
            window,
            owed: 0,
        }
    }
}

impl Default for ShortestRemainingFirst {
    /// Eight at once, at least two full records each, so that one is always on its way.
    fn default() -> Self {
        Self::new(OVERCOMMIT, WINDOW_MIN..=u32::MAX)
    }
}

impl GrantPolicy for ShortestRemainingFirst {
    fn grant(&mut self, messages: &[Grantable], budget: u32, decisions: &mut Vec<Granted>) {
        let mut order: Vec<&Grantable> = messages.iter().collect();
        order.sort_unstable_by_key(|message| (message.length - message.arrived, message.order));
        let Some(oldest) = order.iter().min_by_key(|message| message.order).copied() else {
            return;
        };
        let active = order.len().min(self.overcommit.max(1));
        let (least, most) = (*self.window.start(), *self.window.end());
        let window = (budget / active as u32).min(most).max(least);
        for (rank, message) in order.iter().take(active).enumerate() {
            let end = message.length.min(message.arrived.saturating_add(window));
            if worth_granting(message, end, window) {
                self.owed += u64::from(end - message.granted) * u64::from(OLDEST_SHARE);
                decisions.push(Granted {
                    rpc: message.rpc,
                    end,
                    priority: SCHEDULED_MAX.saturating_sub(rank as u8),
                });
            }
        }
        let is_left_out = order
            .iter()
            .skip(active)
            .any(|message| message.rpc == oldest.rpc);
        let end = oldest.length.min(oldest.arrived.saturating_add(window));
        if is_left_out && self.owed >= u64::from(window) * 1000 && end > oldest.granted {
            self.owed -= u64::from(window) * 1000;
            decisions.push(Granted {
                rpc: oldest.rpc,
                end,
                priority: SCHEDULED_MAX,
            });
        }
    }
}

/// Small steps would cost a packet each: a quarter of the window, or the end.
fn worth_granting(message: &Grantable, end: u32, window: u32) -> bool {
    end > message.granted && (end == message.length || end - message.granted >= window / 4)
}

/// The messages of an endpoint that need grants.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    messages: BTreeMap<RpcId, Grantable>,
    order: u64,
    is_dirty: bool,
}

impl Grants {
    /// A message has begun, or more of it has arrived.
    pub(crate) fn update(&mut self, rpc: RpcId, length: u32, arrived: u32, granted: u32) {
        if granted >= length {
            self.remove(rpc);
            return;
        }
        if let Some(message) = self.messages.get_mut(&rpc) {
            self.is_dirty |= (message.arrived, message.granted) != (arrived, granted);
            message.arrived = arrived;
            message.granted = granted;
            return;
        }
        self.order += 1;
        let message = Grantable {
            rpc,
            length,
            arrived,
            granted,
            order: self.order,
        };
        self.messages.insert(rpc, message);
        self.is_dirty = true;
    }

    /// A message needs no more grants, or does not use those it has.
    pub(crate) fn remove(&mut self, rpc: RpcId) {
        self.is_dirty |= self.messages.remove(&rpc).is_some();
    }

    /// Decisions, if anything has changed since the last call. While memory `is_full` only the shortest
    /// message gets on, so that memory becomes free again.
    pub(crate) fn decide(
        &mut self,
        policy: &mut dyn GrantPolicy,
        budget: u32,
        is_full: bool,
    ) -> Vec<Granted> {
        let mut decisions = Vec::new();
        if !std::mem::take(&mut self.is_dirty) || self.messages.is_empty() {
            return decisions;
        }
        let mut messages: Vec<Grantable> = self.messages.values().copied().collect();
        if is_full {
            let shortest = messages
                .iter()
                .min_by_key(|message| (message.length - message.arrived, message.order))
                .copied();
            messages = Vec::from_iter(shortest);
            self.is_dirty = true;
        }
        policy.grant(&messages, budget, &mut decisions);
        decisions
    }
}

/// Two full records.
const WINDOW_MIN: u32 = 2 * 16_406;
/// Highest priority of scheduled bytes; the levels above are for unscheduled ones (Homa: `max_sched_prio`).
const SCHEDULED_MAX: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use smt_wire::{MessageId, SessionIndex};

    fn message(id: u64, length: u32, arrived: u32, order: u64) -> Grantable {
        let rpc = RpcId {
            session: SessionIndex(1),
            id: MessageId(id),
        };
        Grantable {
            rpc,
            length,
            arrived,
            granted: arrived,
            order,
        }
    }

    fn decide(policy: &mut ShortestRemainingFirst, messages: &[Grantable]) -> Vec<Granted> {
        let mut decisions = Vec::new();
        policy.grant(messages, 512 * 1024, &mut decisions);
        decisions
    }

    #[test]
    fn the_shortest_comes_first_and_has_the_highest_priority() {
        let messages = [
            message(1, 1_000_000, 60_000, 1),
            message(2, 200_000, 60_000, 2),
        ];
        let decisions = decide(&mut ShortestRemainingFirst::default(), &messages);
        assert_eq!(decisions[0].rpc.id, MessageId(2));
        assert_eq!(decisions[0].end, 200_000);
        assert!(decisions[0].priority > decisions[1].priority);
    }

    #[test]
    fn at_most_eight_are_granted_at_once() {
        let messages: Vec<_> = (0..20)
            .map(|id| message(id, 1_000_000 + id as u32, 0, id))
            .collect();
        assert_eq!(
            decide(&mut ShortestRemainingFirst::default(), &messages).len(),
            OVERCOMMIT
        );
    }

    #[test]
    fn the_oldest_is_not_starved() {
        let mut policy = ShortestRemainingFirst::default();
        let mut messages: Vec<_> = (1..=8).map(|id| message(id, 500_000, 0, id)).collect();
        messages.push(message(99, 50_000_000, 0, 0));
        let oldest = messages[8].rpc;
        let rounds = (0..100).find(|_| {
            decide(&mut policy, &messages)
                .iter()
                .any(|granted| granted.rpc == oldest)
        });
        assert!(rounds.is_some(), "the oldest message was never granted");
    }

    #[test]
    fn granted_and_not_arrived_stays_within_the_budget() {
        let messages: Vec<_> = (0..8).map(|id| message(id, 10_000_000, 0, id)).collect();
        let granted: u32 = decide(&mut ShortestRemainingFirst::default(), &messages)
            .iter()
            .map(|granted| granted.end)
            .sum();
        assert!(granted <= 512 * 1024);
    }
}
