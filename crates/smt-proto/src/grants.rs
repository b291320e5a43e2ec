// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which incoming messages may send more, and how much (SPEC §9.2).
//!
//! [`Grants`] holds every opened message of the endpoint that is longer than its unscheduled bytes; a
//! [`GrantPolicy`] decides. The default is Homa's: shortest remaining first, a few at once, and a small share
//! for the oldest, so that long messages are not starved by ever new short ones. NDP's is in `pull`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::event::RpcId;
use crate::limits::{OLDEST_SHARE, OVERCOMMIT};
use crate::pull::PullOrder;
use crate::time::Time;

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

/// Bytes that the endpoint has granted, over all messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GrantBudget {
    /// The most that may be granted and not yet arrived ([`crate::Config::incoming_max`]).
    pub limit: u32,
    /// What is granted and has not arrived; of messages that a policy no longer looks at, too.
    pub outstanding: u64,
}

impl GrantBudget {
    /// What may still be granted.
    #[must_use]
    pub fn left(&self) -> u32 {
        u64::from(self.limit).saturating_sub(self.outstanding) as u32
    }
}

/// What a policy that pulls wants to be shown (SPEC §9.10).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pulling {
    /// Bytes of a message that are to be on their way.
    pub window: u32,
    /// Which message comes first.
    pub order: PullOrder,
}

impl Pulling {
    /// Whether more of a message is to be on its way.
    #[must_use]
    pub fn is_hungry(&self, message: &Grantable) -> bool {
        let most = message.arrived.saturating_add(self.window.max(1));
        message.granted < message.length.min(most)
    }
}

/// Decides which messages may send more. Called whenever something has changed, or when its own time has come.
///
/// A policy that has a pace says so by [`Self::pulls`] and has the methods after it; others have no use for time.
pub trait GrantPolicy: Send {
    /// How many messages it chooses among: it sees so many of those with the fewest bytes left, and the oldest one.
    /// A look costs time for each, however many wait.
    fn candidates(&self) -> usize {
        4 * OVERCOMMIT
    }

    /// Appends decisions. To stay within the budget is the policy's own affair, and so is going beyond it where
    /// else a message would wait for one that is slow.
    fn grant(
        &mut self,
        now: Time,
        messages: &[Grantable],
        budget: GrantBudget,
        decisions: &mut Vec<Granted>,
    );

    /// Whether it pulls: then it is shown hungry messages only, in its order, and what the network has cut is asked
    /// for again at its pace.
    fn pulls(&self) -> Option<Pulling> {
        None
    }

    /// Whether its pace lets something go now. If not, [`Self::next_timeout`] says when.
    fn may_pull(&mut self, _now: Time) -> bool {
        false
    }

    /// So many bytes were let go, by a decision (to the end of a record) or by asking again, or have come unasked.
    fn spend(&mut self, _now: Time, _bytes: u32) {}

    /// When something that waits may go. Nothing waits: no time.
    fn next_timeout(&self) -> Option<Time> {
        None
    }
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
    /// record and its overhead (SPEC §9.2), at most what keeps a path busy (bandwidth times round trip). The least is
    /// granted even if the budget is used up: by messages that were overtaken, or whose senders are slow.
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
        let mut order: Vec<&Grantable> = messages.iter().collect();
        order.sort_unstable_by_key(|message| (message.length - message.arrived, message.order));
        let active = order.len().min(self.overcommit.max(1));
        let (least, most) = (*self.window.start(), *self.window.end());
        let mut share = Share {
            least,
            window: (budget.limit / active.max(1) as u32).min(most).max(least),
            left: budget.left(),
        };
        // The lowest levels that suffice: what overtakes finds a free one above (Homa §3.4), else what the overtaken
        // message has on its way would be as urgent.
        let highest = SCHEDULED_MAX.min(active.saturating_sub(1) as u8);
        for (rank, message) in order.iter().take(active).enumerate() {
            if let Some(end) = share.end_of(message) {
                share.take(message, end);
                self.owed += u64::from(end - message.granted) * u64::from(OLDEST_SHARE);
                decisions.push(Granted {
                    rpc: message.rpc,
                    end,
                    priority: highest.saturating_sub(rank as u8),
                });
            }
        }
        let oldest = messages.iter().min_by_key(|message| message.order);
        let is_left_out =
            |oldest: &&Grantable| order.iter().skip(active).any(|other| other == oldest);
        let Some(oldest) = oldest.filter(is_left_out) else {
            return;
        };
        let cost = |end: u32| u64::from(end - oldest.granted) * 1000;
        let end = share.end_of(oldest).filter(|end| self.owed >= cost(*end));
        if let Some(end) = end {
            self.owed -= cost(end);
            decisions.push(Granted {
                rpc: oldest.rpc,
                end,
                priority: SCHEDULED_MAX,
            });
        }
    }
}

/// What each message may have, and all together.
struct Share {
    least: u32,
    window: u32,
    /// Of the budget.
    left: u32,
}

impl Share {
    /// The new end of what a message may send, if that is worth a packet: a quarter of what is then on its way, or
    /// the message's end.
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

/// The messages of an endpoint that need grants, or have not used up those they hold.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    messages: BTreeMap<RpcId, Entry>,
    /// Those that need grants: by bytes left, and by age.
    by_left: BTreeSet<(u32, u64, RpcId)>,
    by_age: BTreeSet<(u64, RpcId)>,
    /// For a policy that pulls: what it wants, and the messages of which more is to be on its way, in its order.
    pulling: Option<Pulling>,
    hungry: BTreeSet<(u64, u64, RpcId)>,
    turn: u64,
    /// Bytes granted and not arrived, of all messages.
    outstanding: u64,
    order: u64,
    is_dirty: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    message: Grantable,
    /// End of what it could send without a grant.
    free: u32,
    /// Since when it is hungry.
    turn: u64,
}

impl Entry {
    fn outstanding(&self) -> u64 {
        let from = self.message.arrived.max(self.free);
        u64::from(self.message.granted.saturating_sub(from))
    }

    fn by_left(&self) -> (u32, u64, RpcId) {
        let message = &self.message;
        (message.length - message.arrived, message.order, message.rpc)
    }

    fn by_age(&self) -> (u64, RpcId) {
        (self.message.order, self.message.rpc)
    }

    /// Its place among the hungry.
    fn by_turn(&self, order: PullOrder) -> (u64, u64, RpcId) {
        let (left, age, rpc) = self.by_left();
        match order {
            PullOrder::RoundRobin => (self.turn, age, rpc),
            PullOrder::ShortestFirst => (u64::from(left), age, rpc),
        }
    }
}

impl Grants {
    /// From now on a policy decides that pulls like this, or does not pull.
    pub(crate) fn set_pulling(&mut self, pulling: Option<Pulling>) {
        self.pulling = pulling;
        self.hungry.clear();
        let rpcs: Vec<RpcId> = self.messages.keys().copied().collect();
        for rpc in rpcs {
            if let Some(mut entry) = self.messages.get(&rpc).copied() {
                self.seat(&mut entry);
                self.messages.insert(rpc, entry);
            }
        }
        self.is_dirty = true;
    }

    pub(crate) fn pulling(&self) -> Option<Pulling> {
        self.pulling
    }

    /// Something may have changed that [`Self::decide`] does not know of: the policy's time has come.
    pub(crate) fn wake(&mut self) {
        self.is_dirty = true;
    }

    /// Puts a message behind the other hungry ones, if it is hungry.
    fn seat(&mut self, entry: &mut Entry) {
        if let Some(pulling) = self.pulling.filter(|p| p.is_hungry(&entry.message)) {
            self.turn += 1;
            entry.turn = self.turn;
            self.hungry.insert(entry.by_turn(pulling.order));
        }
    }

    /// A message has begun, or more of it has arrived.
    pub(crate) fn update(&mut self, rpc: RpcId, length: u32, arrived: u32, granted: u32) {
        let mut entry = match self.messages.get(&rpc) {
            Some(before)
                if (before.message.arrived, before.message.granted) == (arrived, granted) =>
            {
                return;
            }
            Some(before) => *before,
            // All of it may come already: the common case.
            None if granted >= length => return,
            None => self.first_sight(rpc, length, granted),
        };
        let is_in_line = self.is_seated(&entry) && entry.message.granted == granted;
        self.remove(rpc);
        entry.message.arrived = arrived;
        entry.message.granted = granted;
        if is_in_line && let Some(pulling) = self.pulling {
            self.hungry.insert(entry.by_turn(pulling.order));
        } else {
            self.seat(&mut entry);
        }
        self.outstanding += entry.outstanding();
        if granted < length {
            self.by_left.insert(entry.by_left());
            self.by_age.insert(entry.by_age());
        }
        self.messages.insert(rpc, entry);
        self.is_dirty = true;
    }

    fn first_sight(&mut self, rpc: RpcId, length: u32, granted: u32) -> Entry {
        self.order += 1;
        let message = Grantable {
            rpc,
            length,
            arrived: 0,
            granted,
            order: self.order,
        };
        Entry {
            message,
            free: granted,
            turn: 0,
        }
    }

    fn is_seated(&self, entry: &Entry) -> bool {
        self.pulling
            .is_some_and(|pulling| self.hungry.contains(&entry.by_turn(pulling.order)))
    }

    /// A message needs no more grants, or does not use those it has.
    pub(crate) fn remove(&mut self, rpc: RpcId) {
        if let Some(entry) = self.messages.remove(&rpc) {
            self.outstanding -= entry.outstanding();
            self.by_left.remove(&entry.by_left());
            self.by_age.remove(&entry.by_age());
            if let Some(pulling) = self.pulling {
                self.hungry.remove(&entry.by_turn(pulling.order));
            }
            self.is_dirty = true;
        }
    }

    /// Decisions, if anything has changed since the last call, within `limit` bytes granted and not arrived. While
    /// memory `is_full` only the shortest message gets on, so that memory becomes free again.
    pub(crate) fn decide(
        &mut self,
        now: Time,
        policy: &mut dyn GrantPolicy,
        limit: u32,
        is_full: bool,
    ) -> Vec<Granted> {
        let mut decisions = Vec::new();
        let is_idle = self.by_left.is_empty() && self.pulling.is_none();
        if !std::mem::take(&mut self.is_dirty) || is_idle {
            return decisions;
        }
        self.is_dirty = is_full;
        let most = if is_full { 1 } else { policy.candidates() };
        let candidates = self.candidates(most, is_full);
        let budget = GrantBudget {
            limit,
            outstanding: self.outstanding,
        };
        policy.grant(now, &candidates, budget, &mut decisions);
        decisions
    }

    /// The messages with the fewest bytes left, or those whose turn it is, and the oldest.
    fn candidates(&self, most: usize, is_full: bool) -> Vec<Grantable> {
        if self.pulling.is_some() && !is_full {
            return self.hungry_candidates(most);
        }
        let shortest = self.by_left.iter().take(most).map(|(_, _, rpc)| *rpc);
        let mut rpcs: Vec<RpcId> = shortest.collect();
        let oldest = self.by_age.first().map(|(_, rpc)| *rpc);
        rpcs.extend(oldest.filter(|oldest| !is_full && !rpcs.contains(oldest)));
        let messages = rpcs.iter().filter_map(|rpc| self.messages.get(rpc));
        messages.map(|entry| entry.message).collect()
    }

    fn hungry_candidates(&self, most: usize) -> Vec<Grantable> {
        let first = self.hungry.iter().take(most).map(|(_, _, rpc)| *rpc);
        let mut rpcs: Vec<RpcId> = first.collect();
        let oldest = self.by_age.first().map(|(_, rpc)| *rpc);
        rpcs.extend(oldest.filter(|oldest| !rpcs.contains(oldest)));
        let messages = rpcs.iter().filter_map(|rpc| self.messages.get(rpc));
        messages.map(|entry| entry.message).collect()
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
        let budget = GrantBudget {
            limit: LIMIT,
            outstanding: 0,
        };
        policy.grant(Time::default(), messages, budget, &mut decisions);
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
    fn priorities_are_the_lowest_that_suffice() {
        let priorities = |count: u64| -> Vec<u8> {
            let messages: Vec<_> = (0..count)
                .map(|id| message(id, 1_000_000 + id as u32, 0, id))
                .collect();
            let decisions = decide(&mut ShortestRemainingFirst::default(), &messages);
            decisions.iter().map(|granted| granted.priority).collect()
        };
        assert_eq!(priorities(1), [0]);
        assert_eq!(priorities(3), [2, 1, 0]);
        assert_eq!(priorities(6), [3, 2, 1, 0, 0, 0]);
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

    /// Messages of these lengths begin one after the other, with 60,000 bytes that need no grant and of which nothing
    /// arrives but 1,000; each is granted what the policy says. The end of what each may send.
    fn begin_one_after_the_other(
        policy: &mut dyn GrantPolicy,
        lengths: impl IntoIterator<Item = u32>,
    ) -> Vec<u32> {
        let mut grants = Grants::default();
        let mut ends = BTreeMap::new();
        for (id, length) in lengths.into_iter().enumerate() {
            let rpc = message(id as u64, 0, 0, 0).rpc;
            grants.update(rpc, length, 1_000, FREE);
            ends.insert(rpc, (length, FREE));
            for granted in grants.decide(Time::default(), policy, LIMIT, false) {
                let (length, end) = ends.get_mut(&granted.rpc).unwrap();
                assert!(granted.end > *end && granted.end <= *length);
                *end = granted.end;
                grants.update(granted.rpc, *length, 1_000, granted.end);
            }
        }
        ends.values().map(|(_, end)| *end).collect()
    }

    fn outstanding(ends: &[u32]) -> u32 {
        ends.iter().map(|end| end - FREE).sum()
    }

    #[test]
    fn granted_and_not_arrived_stays_within_the_budget() {
        let messages: Vec<_> = (0..8).map(|id| message(id, 10_000_000, 0, id)).collect();
        let granted: u32 = decide(&mut ShortestRemainingFirst::default(), &messages)
            .iter()
            .map(|granted| granted.end)
            .sum();
        assert!(granted <= LIMIT);
        let mut policy = ShortestRemainingFirst::default();
        let ends = begin_one_after_the_other(&mut policy, [400_000; 50]);
        let sum = outstanding(&ends);
        assert!((LIMIT / 2..=LIMIT).contains(&sum), "{sum}");
    }

    /// What was overtaken keeps what it has: the budget is used up, and who comes first still has a little.
    #[test]
    fn what_overtakes_when_the_budget_is_used_up_has_the_least_window() {
        let mut policy = ShortestRemainingFirst::new(8, 100_000..=200_000);
        let ends = begin_one_after_the_other(&mut policy, (0..50).map(|at| 4_000_000 - at));
        assert_eq!(ends.last(), Some(&101_000));
        let sum = outstanding(&ends);
        assert!(sum <= LIMIT + 50 * (101_000 - FREE), "{sum}");
        assert!(ends.first() > ends.last());
    }

    #[test]
    fn small_windows_go_on_in_their_own_steps_although_the_budget_is_used_up() {
        let mut policy = ShortestRemainingFirst::new(8, 10_000..=10_000);
        let used_up = GrantBudget {
            limit: 80_000,
            outstanding: 80_000,
        };
        let mut on_its_way = message(1, 1_000_000, 2_499, 1);
        on_its_way.granted = 10_000;
        let mut decisions = Vec::new();
        policy.grant(Time::default(), &[on_its_way], used_up, &mut decisions);
        assert_eq!(decisions, []);
        on_its_way.arrived = 2_500;
        policy.grant(Time::default(), &[on_its_way], used_up, &mut decisions);
        assert_eq!(decisions[0].end, 12_500);
    }

    #[test]
    fn a_policy_grants_as_many_at_once_as_it_wants() {
        let mut grants = Grants::default();
        for id in 0..200 {
            grants.update(message(id, 0, 0, 0).rpc, 400_000, FREE, FREE);
        }
        let mut policy = ShortestRemainingFirst::new(100, 1_000..=100_000);
        assert_eq!(
            grants
                .decide(Time::default(), &mut policy, LIMIT, false)
                .len(),
            100
        );
        assert!(
            grants
                .decide(Time::default(), &mut policy, LIMIT, false)
                .is_empty()
        );
    }

    /// Grants nothing; notes how many messages it was shown.
    #[derive(Default)]
    struct Shown(Vec<usize>);

    impl GrantPolicy for Shown {
        fn grant(&mut self, _: Time, messages: &[Grantable], _: GrantBudget, _: &mut Vec<Granted>) {
            self.0.push(messages.len());
        }
    }

    #[test]
    fn a_decision_looks_at_few_messages_however_many_wait() {
        let mut policy = Shown::default();
        begin_one_after_the_other(&mut policy, [2_000_000; 10_000]);
        assert_eq!(policy.0.len(), 10_000);
        let most = policy.0.iter().max().copied().unwrap();
        assert_eq!(most, policy.candidates());
    }

    #[test]
    fn the_oldest_is_shown_although_it_is_the_longest() {
        let mut grants = Grants::default();
        for id in 0..100u64 {
            let rpc = message(id, 0, 0, 0).rpc;
            grants.update(rpc, 4_000_000 - id as u32, 1_000, FREE);
        }
        let shown = |is_full| {
            let candidates = grants.candidates(8, is_full).into_iter();
            candidates
                .map(|message| message.rpc.id.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(false), [99, 98, 97, 96, 95, 94, 93, 92, 0]);
        assert_eq!(shown(true).last(), Some(&92));
    }

    #[test]
    fn what_ends_gives_its_part_of_the_budget_back() {
        let mut grants = Grants::default();
        let rpc = message(1, 0, 0, 0).rpc;
        grants.update(rpc, 400_000, 1_000, FREE);
        grants.update(rpc, 400_000, 1_000, 400_000);
        assert_eq!(grants.outstanding, u64::from(400_000 - FREE));
        grants.update(rpc, 400_000, 300_000, 400_000);
        assert_eq!(grants.outstanding, 100_000);
        grants.remove(rpc);
        assert_eq!(grants.outstanding, 0);
        assert!(grants.by_left.is_empty() && grants.by_age.is_empty());
    }

    #[test]
    fn a_policy_that_pulls_is_shown_the_hungry_in_turn() {
        let mut grants = Grants::default();
        let pulling = |order| Pulling {
            window: 10_000,
            order,
        };
        grants.set_pulling(Some(pulling(PullOrder::RoundRobin)));
        for id in 0..4u64 {
            let length = 400_000 - 10 * id as u32;
            grants.update(message(id, 0, 0, 0).rpc, length, 60_000, FREE);
        }
        let rpc = |id| message(id, 0, 0, 0).rpc;
        let shown = |grants: &Grants| {
            let shown = grants.hungry_candidates(8).into_iter();
            shown.map(|message| message.rpc.id.0).collect::<Vec<_>>()
        };
        assert_eq!(shown(&grants), [0, 1, 2, 3]);
        // Whoever was granted goes behind the others, whoever has enough is gone (but the oldest, which is always
        // shown), and what merely arrives keeps its place.
        grants.update(rpc(1), 400_000 - 10, 60_000, FREE + 1_000);
        grants.update(rpc(2), 400_000 - 20, 61_000, FREE);
        grants.update(rpc(0), 400_000, 60_000, FREE + 10_000);
        assert_eq!(shown(&grants), [2, 3, 1, 0]);
        grants.set_pulling(Some(pulling(PullOrder::ShortestFirst)));
        assert_eq!(shown(&grants), [2, 3, 1, 0]);
        grants.update(rpc(1), 400_000 - 10, 63_000, FREE + 1_000);
        assert_eq!(shown(&grants), [1, 2, 3, 0]);
        grants.set_pulling(None);
        assert!(grants.hungry.is_empty());
        (0..4).for_each(|id| grants.remove(rpc(id)));
        assert!(grants.hungry.is_empty() && grants.by_left.is_empty());
    }

    /// The default of `incoming_max`.
    const LIMIT: u32 = 512 * 1024;
    /// What each message may send without a grant.
    const FREE: u32 = 60_000;
}
