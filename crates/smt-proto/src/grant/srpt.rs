// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Homa's way to grant: shortest remaining first, a few at once (SPEC §9.2).
//!
//! A small share is for the oldest message, so that long ones are not starved by ever new short
//! ones.
//!
//! Not here: which messages need grants, and how much all of them hold (`scheduler`).

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::grant::policy::{GrantBudget, GrantPolicy, Grantable, Granted};
use crate::limits::{GRANT_WINDOW_MIN, OLDEST_SHARE, OVERCOMMIT};
use crate::time::Time;

/// Homa's policy.
#[derive(Debug)]
pub struct ShortestRemainingFirst {
    /// Messages granted at once.
    overcommit: usize,
    /// Bytes that one message may have granted and not arrived, least and most.
    window: RangeInclusive<u32>,
    /// Bytes that the oldest message is still owed, in thousandths.
    owed: u64,
    /// Messages that had places at the last decision, in their order; the vector's memory is used
    /// again.
    places: Vec<Grantable>,
}

impl ShortestRemainingFirst {
    /// Grants `overcommit` messages at once. Each has its share of the budget, within these limits:
    /// at least a whole record and its overhead (SPEC §9.2), at most what keeps a path busy
    /// (bandwidth times round trip). The least is granted even if the budget is used up: by
    /// messages that were overtaken, or whose senders are slow.
    #[must_use]
    pub fn new(overcommit: usize, window: RangeInclusive<u32>) -> Self {
        Self { overcommit, window, owed: 0, places: Vec::new() }
    }
}

impl Default for ShortestRemainingFirst {
    /// Eight at once, at least two full records each, so that one is always on its way.
    fn default() -> Self {
        Self::new(OVERCOMMIT, GRANT_WINDOW_MIN..=u32::MAX)
    }
}

impl GrantPolicy for ShortestRemainingFirst {
    fn candidates(&self) -> usize {
        self.overcommit.max(1)
    }

    fn grant(
        &mut self,
        _now: Time,
        messages: &[Grantable],
        budget: GrantBudget,
        decisions: &mut Vec<Granted>,
    ) {
        // Which messages have places was decided before, for each session has its share: the oldest
        // one stands behind them, and takes none away.
        let most = self.candidates();
        let of_class = |is_limited| {
            let class = messages.iter();
            let class = class.filter(move |message| message.is_sender_limited == is_limited);
            class.take(most)
        };
        let mut places = core::mem::take(&mut self.places);
        places.clear();
        // While no other message wants grants, messages that their senders limit share the budget
        // like others: on a path with a long round trip they can use more than a least window.
        let are_all_limited = of_class(false).next().is_none();
        places.extend(of_class(are_all_limited));
        places.sort_unstable_by_key(|message| (message.length - message.arrived, message.order));
        let share = if are_all_limited {
            self.grant_places(&places, budget.of_sender_limited(), decisions)
        } else {
            let share = self.grant_places(&places, budget, decisions);
            self.grant_sender_limited(of_class(true), decisions);
            share
        };
        let oldest = messages.iter().min_by_key(|message| message.order);
        let mut placed = places.iter().chain(of_class(true));
        if oldest.is_some_and(|oldest| placed.any(|message| message.order == oldest.order)) {
            // The oldest message has its own share, and is owed nothing.
            self.owed = 0;
        } else if let Some(oldest) = oldest {
            let is_beside = oldest.is_sender_limited && !are_all_limited;
            let share = if is_beside { self.least() } else { share };
            self.grant_oldest(oldest, share, decisions);
        }
        self.places = places;
    }
}

impl ShortestRemainingFirst {
    /// Decides for the messages that have places, in their order. Returns the rest of the budget.
    fn grant_places(
        &mut self,
        places: &[Grantable],
        budget: GrantBudget,
        decisions: &mut Vec<Granted>,
    ) -> Share {
        let (least, most) = (*self.window.start(), *self.window.end());
        let mut share = Share {
            least,
            window: (budget.limit / places.len().max(1) as u32).min(most).max(least),
            left: budget.left(),
        };
        // The lowest levels that suffice: what overtakes finds a free one above (Homa §3.4), else
        // what the overtaken message has on its way would be as urgent.
        let level = |rank| u8::try_from(rank).unwrap_or(u8::MAX);
        let highest = SCHEDULED_MAX.min(level(places.len().saturating_sub(1)));
        for (rank, message) in places.iter().enumerate() {
            if let Some(end) = share.end_of(message) {
                share.take(message, end);
                self.owe_oldest(end - message.granted);
                decisions.push(Granted {
                    rpc: message.rpc,
                    end,
                    priority: highest.saturating_sub(level(rank)),
                });
            }
        }
        share
    }

    /// A message that its sender limits has a least window while others want grants, beside the
    /// budget.
    fn grant_sender_limited<'a>(
        &mut self,
        messages: impl Iterator<Item = &'a Grantable>,
        decisions: &mut Vec<Granted>,
    ) {
        let share = self.least();
        for message in messages {
            if let Some(end) = share.end_of(message) {
                self.owe_oldest(end - message.granted);
                decisions.push(Granted { rpc: message.rpc, end, priority: 0 });
            }
        }
    }

    /// The share of a sender-limited message: a least window and no part of the budget.
    fn least(&self) -> Share {
        let least = *self.window.start();
        Share { least, window: least, left: 0 }
    }

    /// Counts `bytes` bytes that are granted to another message than the oldest.
    fn owe_oldest(&mut self, bytes: u32) {
        self.owed += u64::from(bytes) * u64::from(OLDEST_SHARE);
    }

    /// Grants the oldest message its small part of the bytes that all others are granted.
    fn grant_oldest(&mut self, oldest: &Grantable, share: Share, decisions: &mut Vec<Granted>) {
        // The oldest message does not save up while its sender is slow: it may have enough for the
        // next window, and the rest of the last.
        self.owed = self.owed.min(u64::from(share.window) * 2 * 1000);
        let cost = |end: u32| u64::from(end - oldest.granted) * 1000;
        let end = share.end_of(oldest).filter(|end| self.owed >= cost(*end));
        if let Some(end) = end {
            self.owed -= cost(end);
            decisions.push(Granted { rpc: oldest.rpc, end, priority: SCHEDULED_MAX });
        }
    }
}

/// The bounds of each message's window, and of all together.
struct Share {
    least: u32,
    window: u32,
    /// The rest of the budget.
    left: u32,
}

impl Share {
    /// The new end of what a message may send, if the step is worth a packet: at least a quarter of
    /// the bytes then on their way, or up to the message's end.
    fn end_of(&self, message: &Grantable) -> Option<u32> {
        let within = |window: u32| message.length.min(message.arrived.saturating_add(window));
        let affordable = message.granted.saturating_add(self.left);
        let end = within(self.window).min(affordable).max(within(self.least));
        let more = end.checked_sub(message.granted).filter(|more| *more > 0)?;
        (end == message.length || more >= (end - message.arrived) / 4).then_some(end)
    }

    fn take(&mut self, message: &Grantable, end: u32) {
        self.left = self.left.saturating_sub(end - message.granted);
    }
}

/// Highest priority of scheduled bytes; the levels above are for unscheduled ones (Homa:
/// `max_sched_prio`).
const SCHEDULED_MAX: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RpcId;
    use crate::limits::INCOMING_MAX;
    use smt_wire::{MessageId, SessionIndex};

    fn message(id: u64, length: u32, arrived: u32, order: u64) -> Grantable {
        let rpc = RpcId { session: SessionIndex(1), id: MessageId(id) };
        Grantable { rpc, length, arrived, granted: arrived, order, is_sender_limited: false }
    }

    fn decide(policy: &mut ShortestRemainingFirst, messages: &[Grantable]) -> Vec<Granted> {
        let mut decisions = Vec::new();
        let budget = GrantBudget { limit: LIMIT, outstanding: 0, sender_limited: 0 };
        policy.grant(Time::default(), messages, budget, &mut decisions);
        decisions
    }

    #[test]
    fn the_shortest_comes_first_and_has_the_highest_priority() {
        let messages = [message(1, 1_000_000, 60_000, 1), message(2, 190_000, 60_000, 2)];
        let decisions = decide(&mut ShortestRemainingFirst::default(), &messages);
        assert_eq!(decisions[0].rpc.id, MessageId(2));
        assert_eq!(decisions[0].end, 190_000);
        assert!(decisions[0].priority > decisions[1].priority);
    }

    #[test]
    fn priorities_are_the_lowest_that_suffice() {
        let priorities = |count: u64| -> Vec<u8> {
            let messages: Vec<_> =
                (0..count).map(|id| message(id, 1_000_000 + id as u32, 0, id)).collect();
            let decisions = decide(&mut ShortestRemainingFirst::default(), &messages);
            decisions.iter().map(|granted| granted.priority).collect()
        };
        assert_eq!(priorities(1), [0]);
        assert_eq!(priorities(3), [2, 1, 0]);
        assert_eq!(priorities(6), [3, 2, 1, 0, 0, 0]);
    }

    #[test]
    fn eight_messages_at_most_are_granted_at_once() {
        let messages: Vec<_> =
            (0..20).map(|id| message(id, 1_000_000 + id as u32, 0, id)).collect();
        assert_eq!(decide(&mut ShortestRemainingFirst::default(), &messages).len(), OVERCOMMIT);
    }

    #[test]
    fn the_oldest_is_not_starved() {
        let mut policy = ShortestRemainingFirst::default();
        let mut messages: Vec<_> = (1..=8).map(|id| message(id, 500_000, 0, id)).collect();
        messages.push(message(99, 50_000_000, 0, 0));
        let oldest = messages[8].rpc;
        let rounds = (0..100)
            .find(|_| decide(&mut policy, &messages).iter().any(|granted| granted.rpc == oldest));
        assert!(rounds.is_some(), "the oldest message was never granted");
    }

    /// Bytes granted to the last message, and to the others, in a number of rounds in which all
    /// granted bytes come.
    fn rounds(
        policy: &mut ShortestRemainingFirst,
        messages: &[Grantable],
        rounds: usize,
    ) -> (u64, u64) {
        let (mut last, mut others) = (0, 0);
        let rpc = messages.last().map(|message| message.rpc);
        for granted in (0..rounds).flat_map(|_| decide(policy, messages)) {
            let to = if Some(granted.rpc) == rpc { &mut last } else { &mut others };
            *to += u64::from(granted.end);
        }
        (last, others)
    }

    #[test]
    fn the_oldest_has_a_twentieth_whatever_was_granted_before() {
        let mut policy = ShortestRemainingFirst::default();
        let mut messages: Vec<_> = (1..=8).map(|id| message(id, 500_000, 0, id)).collect();
        rounds(&mut policy, &messages, 1_000);
        messages.push(message(99, 50_000_000, 0, 0));
        let (oldest, others) = rounds(&mut policy, &messages, 100);
        let share = others * u64::from(OLDEST_SHARE) / 1_000;
        let window = u64::from(GRANT_WINDOW_MIN);
        assert!((share - window..=share + window).contains(&oldest), "{oldest} beside {others}");
    }

    /// Eight messages that their senders limit, an older one with more bytes left, and another one
    /// that has all of the budget.
    fn nine_limited_and_another() -> Vec<Grantable> {
        let mut messages: Vec<_> = (1..=8).map(|id| message(id, 500_000, 0, id)).collect();
        let mut another = message(50, 1_000_000, 0, 50);
        another.granted = 1_000_000 - 1;
        messages.insert(0, another);
        messages.push(message(99, 50_000_000, 0, 0));
        for message in &mut messages {
            message.is_sender_limited = message.order != another.order;
        }
        messages
    }

    #[test]
    fn the_oldest_has_its_share_of_what_messages_get_that_their_senders_limit() {
        let limited = nine_limited_and_another();
        for messages in [&limited[..], &limited[1..]] {
            let mut policy = ShortestRemainingFirst::default();
            let (oldest, others) = rounds(&mut policy, messages, 100);
            let share = others * u64::from(OLDEST_SHARE) / 1_000;
            let window = u64::from(GRANT_WINDOW_MIN);
            assert!(
                (share - window..=share + window).contains(&oldest),
                "{oldest} beside {others}"
            );
        }
    }

    #[test]
    fn an_oldest_message_that_its_sender_limits_has_a_least_window_beside_another() {
        let messages = nine_limited_and_another();
        let mut policy = ShortestRemainingFirst::default();
        let mut grants = (0..100).flat_map(|_| decide(&mut policy, &messages));
        let oldest = grants.find(|granted| granted.rpc == messages[9].rpc);
        assert_eq!(oldest.map(|granted| granted.end), Some(GRANT_WINDOW_MIN));
    }

    #[test]
    fn the_oldest_message_saves_up_no_share_while_it_has_enough_on_its_way() {
        let mut policy = ShortestRemainingFirst::default();
        let mut messages: Vec<_> = (1..=8).map(|id| message(id, 500_000, 0, id)).collect();
        let mut oldest = message(99, 50_000_000, 0, 0);
        oldest.granted = 40_000;
        messages.push(oldest);
        assert_eq!(rounds(&mut policy, &messages, 1_000).0, 0);
        messages[8].granted = 0;
        let (oldest, others) = rounds(&mut policy, &messages, 100);
        let share = others * u64::from(OLDEST_SHARE) / 1_000;
        assert!(oldest <= share + 3 * u64::from(GRANT_WINDOW_MIN), "{oldest} beside {others}");
    }

    #[test]
    fn the_shortest_of_hundreds_is_still_the_most_urgent() {
        let messages: Vec<_> =
            (0..300).map(|id| message(id, 1_000_000 + id as u32, 0, id)).collect();
        let mut policy = ShortestRemainingFirst::new(1_000, 1_000..=1_000);
        let decisions = decide(&mut policy, &messages);
        let priorities: Vec<u8> = decisions.iter().map(|granted| granted.priority).collect();
        assert_eq!(priorities[..5], [3, 2, 1, 0, 0]);
        assert!(priorities[4..].iter().all(|priority| *priority == 0));
    }

    #[test]
    fn eight_at_once_share_the_budget() {
        let messages: Vec<_> = (0..8).map(|id| message(id, 10_000_000, 0, id)).collect();
        let granted: u32 = decide(&mut ShortestRemainingFirst::default(), &messages)
            .iter()
            .map(|granted| granted.end)
            .sum();
        assert!(granted <= LIMIT.max(8 * GRANT_WINDOW_MIN));
    }

    #[test]
    fn small_windows_go_on_in_their_own_steps_although_the_budget_is_used_up() {
        let mut policy = ShortestRemainingFirst::new(8, 10_000..=10_000);
        let used_up = GrantBudget { limit: 80_000, outstanding: 80_000, sender_limited: 0 };
        let mut on_its_way = message(1, 1_000_000, 2_499, 1);
        on_its_way.granted = 10_000;
        let mut decisions = Vec::new();
        policy.grant(Time::default(), &[on_its_way], used_up, &mut decisions);
        assert_eq!(decisions, []);
        on_its_way.arrived = 2_500;
        policy.grant(Time::default(), &[on_its_way], used_up, &mut decisions);
        assert_eq!(decisions[0].end, 12_500);
    }

    const LIMIT: u32 = INCOMING_MAX;
}
