// SPDX-License-Identifier: Apache-2.0 OR MIT
//! NDP's way to grant: pull one record at a time, at the pace of this host's link (SPEC §9.10).
//!
//! Bytes that arrive make room for more, but more is permitted only as fast as the link can carry
//! it. Ranges that were trimmed on the way come first, then the next record of the message whose
//! turn it is. Queues stay short wherever this host's link is the bottleneck, however many hosts
//! send to it.
//!
//! Not here: which messages are in the pull queue and whose turn it is (`scheduler`), and which
//! ranges were trimmed (`trimmed`).

use crate::grant::ndp::pacer::Pacer;
use crate::grant::policy::{GrantBudget, GrantPolicy, Grantable, Granted, PullPolicy, Pulling};
use crate::limits::{OLDEST_SHARE, OVERCOMMIT};
use crate::time::Time;
use alloc::vec::Vec;

/// NDP's policy.
#[derive(Debug)]
pub struct Pull {
    pace: Pacer,
    pulling: Pulling,
    /// Pulls since the oldest message had one out of its turn.
    since_oldest: u32,
    /// Whether a pull waits for the pacer now.
    is_waiting: bool,
    /// Whether a pull has waited since the last time that none did.
    has_waited: bool,
}

/// The order in which messages are pulled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PullOrder {
    /// Each message in turn.
    RoundRobin,
    /// The message with the fewest bytes left; a share is for the oldest.
    ShortestFirst,
}

impl Pull {
    /// Pulls `bits_per_second` of record streams: what this host's link carries, less headers (of
    /// packets of 1,500 bytes 93 %). Each message has about `window` bytes on their way, which is
    /// what keeps a path busy (bandwidth times round trip), and at least a record. Messages in
    /// turn.
    ///
    /// # Panics
    /// If the rate is 0.
    #[must_use]
    pub fn new(bits_per_second: u64, window: u32) -> Self {
        let order = PullOrder::RoundRobin;
        Self {
            pace: Pacer::new(bits_per_second, window),
            pulling: Pulling { window, order },
            since_oldest: 0,
            is_waiting: false,
            has_waited: false,
        }
    }

    /// The same policy with another order.
    #[must_use]
    pub fn in_order(mut self, order: PullOrder) -> Self {
        self.pulling.order = order;
        self
    }

    /// The message whose turn it is. The bytes on their way stay within the budget. Beyond it each
    /// message may have one record on its way, so that none waits for another whose sender is slow.
    fn choose<'a>(
        &mut self,
        messages: &'a [Grantable],
        budget: GrantBudget,
    ) -> Option<&'a Grantable> {
        let may = |message: &&Grantable| {
            self.pulling.wants_pull(message)
                && (budget.left() > 0 || message.granted <= message.arrived)
        };
        let first = messages.iter().find(may)?;
        if self.pulling.order == PullOrder::RoundRobin {
            return Some(first);
        }
        self.since_oldest += OLDEST_SHARE;
        if self.since_oldest < 1_000 {
            return Some(first);
        }
        self.since_oldest = 0;
        messages.iter().filter(may).min_by_key(|one| one.order)
    }
}

impl GrantPolicy for Pull {
    fn candidates(&self) -> usize {
        OVERCOMMIT
    }

    fn grant(
        &mut self,
        now: Time,
        messages: &[Grantable],
        budget: GrantBudget,
        decisions: &mut Vec<Granted>,
    ) {
        if !messages.iter().any(|one| self.pulling.wants_pull(one)) {
            // Trimmed ranges are asked for before; while one of them waits, this is not reached.
            self.is_waiting = false;
            self.has_waited = false;
            return;
        }
        if !self.may_pull(now) {
            return;
        }
        decisions.extend(self.choose(messages, budget).map(|message| Granted {
            rpc: message.rpc,
            // Up to the end of the next record.
            end: message.granted + 1,
            priority: PRIORITY,
        }));
    }
}

impl PullPolicy for Pull {
    fn pulling(&self) -> Pulling {
        self.pulling
    }

    fn may_pull(&mut self, now: Time) -> bool {
        self.is_waiting = !self.pace.is_free(now);
        self.has_waited |= self.is_waiting;
        !self.is_waiting
    }

    fn spend(&mut self, now: Time, bytes: u32) {
        self.pace.spend(now, bytes, self.has_waited);
    }

    fn came_unscheduled(&mut self, now: Time, bytes: u32) {
        self.pace.put_off(now, bytes);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.is_waiting.then(|| self.pace.free_at())
    }
}

/// Priority of pulled bytes; the levels above are for unscheduled bytes.
const PRIORITY: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RpcId;
    use smt_wire::{MessageId, SessionIndex};

    const NOW: Time = Time::from_nanos(1_000_000_000);
    const BUDGET: GrantBudget =
        GrantBudget { limit: 512 * 1_024, outstanding: 0, sender_limited: 0 };
    const USED_UP: GrantBudget = GrantBudget { outstanding: 512 * 1_024, ..BUDGET };

    fn message(id: u64, arrived: u32, granted: u32) -> Grantable {
        Grantable {
            rpc: RpcId { session: SessionIndex(1), id: MessageId(id) },
            length: 1_000_000,
            arrived,
            granted,
            order: id,
            is_sender_limited: false,
        }
    }

    fn pulled(
        policy: &mut Pull,
        now: Time,
        messages: &[Grantable],
        budget: GrantBudget,
    ) -> Option<u64> {
        let mut decisions = Vec::new();
        policy.grant(now, messages, budget, &mut decisions);
        assert!(decisions.len() <= 1);
        decisions.first().map(|granted| granted.rpc.id.0)
    }

    #[test]
    fn a_pull_waits_for_the_pace_and_a_timer_tells_until_when() {
        let mut policy = Pull::new(10_000_000_000, 0);
        let pending = [message(1, 0, 0).with_length(10)];
        let mut policy_at = |now| pulled(&mut policy, now, &pending, BUDGET);
        // Nothing may be on its way with a window of 0 but a record.
        assert_eq!(policy_at(NOW), Some(1));
        policy.spend(NOW, 1_250);
        assert_eq!(policy.next_timeout(), None);
        assert_eq!(pulled(&mut policy, NOW, &pending, BUDGET), None);
        let due = policy.next_timeout().unwrap();
        assert_eq!(due.since(NOW).as_nanos(), 1_000);
        assert_eq!(pulled(&mut policy, due, &pending, BUDGET), Some(1));
        assert_eq!(policy.next_timeout(), None);
    }

    #[test]
    fn no_timer_runs_without_messages_to_pull() {
        let mut policy = Pull::new(10_000_000_000, 10_000);
        policy.spend(NOW, 100_000);
        let pending = [message(1, 0, 0)];
        assert_eq!(pulled(&mut policy, NOW, &pending, BUDGET), None);
        assert!(policy.next_timeout().is_some(), "it waits for the pace");
        let full = [message(1, 0, 10_000)];
        assert_eq!(pulled(&mut policy, NOW, &full, BUDGET), None);
        assert_eq!(policy.next_timeout(), None);
        assert_eq!(pulled(&mut policy, NOW, &[], BUDGET), None);
        assert_eq!(policy.next_timeout(), None);
    }

    // SMT [9.10-3]
    #[test]
    fn each_message_may_have_one_record_on_its_way_beyond_the_budget() {
        let mut policy = Pull::new(10_000_000_000, 10_000);
        let messages = [message(1, 5_000, 10_000), message(2, 5_000, 5_000)];
        assert_eq!(pulled(&mut policy, NOW, &messages, BUDGET), Some(1));
        assert_eq!(pulled(&mut policy, NOW, &messages, USED_UP), Some(2));
        assert_eq!(pulled(&mut policy, NOW, &messages[..1], USED_UP), None);
    }

    #[test]
    fn shortest_first_leaves_a_twentieth_to_the_oldest() {
        let mut policy = Pull::new(10_000_000_000, 10_000).in_order(PullOrder::ShortestFirst);
        let messages = [message(9, 0, 0), message(1, 0, 0)];
        let turns = (0..100).filter(|_| pulled(&mut policy, NOW, &messages, BUDGET) == Some(1));
        assert_eq!(turns.count(), 5);
        let mut fair = Pull::new(10_000_000_000, 10_000);
        let turns = (0..100).filter(|_| pulled(&mut fair, NOW, &messages, BUDGET) == Some(1));
        assert_eq!(turns.count(), 0, "in turn means the first one shown");
    }

    impl Grantable {
        fn with_length(mut self, length: u32) -> Self {
            self.length = length;
            self
        }
    }
}
