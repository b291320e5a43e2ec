// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The books of what is granted: which incoming messages need grants, and how much all of them hold (SPEC §9.2).
//!
//! [`Grants`] holds every opened message of the endpoint that is longer than its unscheduled bytes, in the orders in
//! which a [`GrantPolicy`] is shown them; the policy decides.

mod one_at_a_time;

use std::collections::{BTreeMap, BTreeSet};

use one_at_a_time::OneAtATime;

use crate::event::RpcId;
use crate::grant_policy::{GrantBudget, GrantPolicy, Grantable, Granted, Pulling};
use crate::pull::PullOrder;
use crate::time::Time;

/// The messages of an endpoint that need grants, or have not used up those they hold.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    messages: BTreeMap<RpcId, Entry>,
    /// Those that need grants: by bytes left and age, and by age alone. A copy of each spares a decision the look-ups.
    by_left: BTreeMap<(u32, u64), Grantable>,
    by_age: BTreeMap<u64, RpcId>,
    /// For a policy that pulls: what it wants, and the messages of which more is to be on its way, in its order.
    pulling: Option<Pulling>,
    hungry: BTreeSet<(u64, u64, RpcId)>,
    turn: u64,
    /// Bytes granted and not arrived, of all messages.
    outstanding: u64,
    order: u64,
    is_dirty: bool,
    /// Whose turn it is while memory is full.
    turns: OneAtATime,
    /// What was shown at the last decision: its room is used again.
    shown: Vec<Grantable>,
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

    /// Whether it needs grants.
    fn needs_grants(&self) -> bool {
        self.message.granted < self.message.length
    }

    fn by_left(&self) -> (u32, u64) {
        let message = &self.message;
        (message.length - message.arrived, message.order)
    }

    /// Its place among the hungry.
    fn by_turn(&self, order: PullOrder) -> (u64, u64, RpcId) {
        let ((left, age), rpc) = (self.by_left(), self.message.rpc);
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
        let (before, is_new) = match self.messages.get(&rpc) {
            Some(before)
                if (before.message.arrived, before.message.granted) == (arrived, granted) =>
            {
                return;
            }
            Some(before) => (*before, false),
            // All of it may come already: the common case.
            None if granted >= length => return,
            None => (self.first_sight(rpc, length, granted), true),
        };
        let mut entry = before;
        entry.message.arrived = arrived;
        entry.message.granted = granted;
        if !is_new {
            self.outstanding -= before.outstanding();
            self.by_left.remove(&before.by_left());
        }
        self.outstanding += entry.outstanding();
        if entry.needs_grants() {
            self.by_left.insert(entry.by_left(), entry.message);
            if entry.message.arrived > before.message.arrived {
                self.turns.forget(rpc);
            }
        }
        match (!is_new && before.needs_grants(), entry.needs_grants()) {
            (false, true) => drop(self.by_age.insert(entry.message.order, rpc)),
            (true, false) => drop(self.by_age.remove(&entry.message.order)),
            _ => {}
        }
        if self.pulling.is_some() {
            self.seat_again(&before, &mut entry);
        }
        self.messages.insert(rpc, entry);
        self.is_dirty = true;
    }

    /// A message has changed: what has merely arrived keeps its place among the hungry.
    fn seat_again(&mut self, before: &Entry, entry: &mut Entry) {
        let Some(pulling) = self.pulling else { return };
        let was_seated = self.hungry.remove(&before.by_turn(pulling.order));
        if was_seated && before.message.granted == entry.message.granted {
            self.hungry.insert(entry.by_turn(pulling.order));
        } else {
            self.seat(entry);
        }
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

    /// A message is over.
    pub(crate) fn remove(&mut self, rpc: RpcId) {
        self.take_out(rpc);
        self.turns.forget(rpc);
    }

    /// A message does not use what it was granted: until more of it comes others get that.
    pub(crate) fn pass_over(&mut self, rpc: RpcId) {
        self.take_out(rpc);
        self.turns.pass_over(rpc);
    }

    fn take_out(&mut self, rpc: RpcId) {
        if let Some(entry) = self.messages.remove(&rpc) {
            self.outstanding -= entry.outstanding();
            self.by_left.remove(&entry.by_left());
            self.by_age.remove(&entry.message.order);
            if let Some(pulling) = self.pulling {
                self.hungry.remove(&entry.by_turn(pulling.order));
            }
            self.is_dirty = true;
        }
    }

    /// Decisions, if anything has changed since the last call, within `limit` bytes granted and not arrived. While
    /// memory `is_full` one message at a time gets on, of those that it helps to become free again.
    pub(crate) fn decide(
        &mut self,
        now: Time,
        policy: &mut dyn GrantPolicy,
        (limit, is_full): (u32, bool),
        helps: impl Fn(RpcId) -> bool,
    ) -> Vec<Granted> {
        let mut decisions = Vec::new();
        let is_idle = self.by_left.is_empty() && self.pulling.is_none();
        if !std::mem::take(&mut self.is_dirty) || is_idle {
            return decisions;
        }
        self.is_dirty = is_full;
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        if is_full {
            shown.extend(self.one_at_a_time(now, helps));
        } else {
            self.turns.clear();
            self.show(policy.candidates(), &mut shown);
        }
        let budget = GrantBudget {
            limit,
            outstanding: self.outstanding,
        };
        policy.grant(now, &shown, budget, &mut decisions);
        self.shown = shown;
        decisions
    }

    /// Whether [`Self::decide`] has something to do.
    pub(crate) fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// When the next message may get on while memory is full.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let is_awaited = !self.by_left.is_empty();
        self.turns.next_timeout().filter(|_| is_awaited)
    }

    fn one_at_a_time(&mut self, now: Time, helps: impl Fn(RpcId) -> bool) -> Option<Grantable> {
        let of = |rpc| self.messages.get(&rpc).map(|entry| entry.message);
        let shortest = self.by_left.values();
        let waiting = shortest.filter(|message| helps(message.rpc));
        self.turns.next(now, of, waiting)
    }

    /// The messages with the fewest bytes left, or those whose turn it is, and the oldest.
    fn show(&self, most: usize, shown: &mut Vec<Grantable>) {
        let of = |rpc: &RpcId| self.messages.get(rpc).map(|entry| entry.message);
        if self.pulling.is_some() {
            let first = self.hungry.iter().take(most);
            shown.extend(first.filter_map(|(_, _, rpc)| of(rpc)));
        } else {
            shown.extend(self.by_left.values().take(most));
        }
        if let Some((order, oldest)) = self.by_age.first_key_value()
            && shown.iter().all(|message| message.order != *order)
        {
            shown.extend(of(oldest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shortest_remaining::ShortestRemainingFirst;
    use smt_wire::{MessageId, SessionIndex};

    fn rpc(id: u64) -> RpcId {
        RpcId {
            session: SessionIndex(1),
            id: MessageId(id),
        }
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
            let rpc = rpc(id as u64);
            grants.update(rpc, length, 1_000, FREE);
            ends.insert(rpc, (length, FREE));
            for granted in grants.decide(Time::default(), policy, (LIMIT, false), |_| true) {
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
    fn a_policy_grants_as_many_at_once_as_it_wants() {
        let mut grants = Grants::default();
        for id in 0..200 {
            grants.update(rpc(id), 400_000, FREE, FREE);
        }
        let mut policy = ShortestRemainingFirst::new(100, 1_000..=100_000);
        assert_eq!(
            grants
                .decide(Time::default(), &mut policy, (LIMIT, false), |_| true)
                .len(),
            100
        );
        assert!(
            grants
                .decide(Time::default(), &mut policy, (LIMIT, false), |_| true)
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
            let rpc = rpc(id);
            grants.update(rpc, 4_000_000 - id as u32, 1_000, FREE);
        }
        let mut shown = Vec::new();
        grants.show(8, &mut shown);
        let ids: Vec<u64> = shown.iter().map(|message| message.rpc.id.0).collect();
        assert_eq!(ids, [99, 98, 97, 96, 95, 94, 93, 92, 0]);
    }

    #[test]
    fn what_ends_gives_its_part_of_the_budget_back() {
        let mut grants = Grants::default();
        let rpc = rpc(1);
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
            grants.update(rpc(id), length, 60_000, FREE);
        }
        let shown = |grants: &Grants| {
            let mut shown = Vec::new();
            grants.show(8, &mut shown);
            let ids = shown.iter().map(|message| message.rpc.id.0);
            ids.collect::<Vec<_>>()
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

    fn rpc_of(session: u32, id: u64) -> RpcId {
        RpcId {
            session: SessionIndex(session.into()),
            id: MessageId(id),
        }
    }

    /// Who may get on at a time while memory is full, if anybody.
    fn turn(grants: &mut Grants, at: u64) -> Option<u64> {
        let now = Time::from_nanos(at * 1_000_000);
        let next = grants.one_at_a_time(now, |_| true);
        next.map(|message| message.rpc.id.0)
    }

    /// Of session 1 messages 1 to 3, of session 2 message 4, in the order of their lengths.
    fn four_of_two_sessions() -> Grants {
        let mut grants = Grants::default();
        for (session, id) in [(1, 1), (1, 2), (1, 3), (2, 4)] {
            let length = 300_000 + id as u32;
            grants.update(rpc_of(session, id), length, 1_000, FREE);
        }
        grants
    }

    #[test]
    fn while_memory_is_full_only_what_helps_gets_on() {
        let mut grants = four_of_two_sessions();
        let next = grants.one_at_a_time(Time::default(), |rpc| rpc.id.0 > 2);
        assert_eq!(next.map(|message| message.rpc.id.0), Some(3));
    }

    #[test]
    fn who_was_granted_all_is_waited_for() {
        let mut grants = four_of_two_sessions();
        assert_eq!(turn(&mut grants, 0), Some(1));
        grants.update(rpc_of(1, 1), 300_001, 1_000, 300_001);
        assert_eq!(turn(&mut grants, 1), None);
        grants.update(rpc_of(1, 1), 300_001, 250_000, 300_001);
        assert_eq!(turn(&mut grants, 4), None);
        grants.remove(rpc_of(1, 1));
        assert_eq!(turn(&mut grants, 4), Some(2));
    }

    #[test]
    fn but_not_for_ever_and_then_another_session_gets_on() {
        let mut grants = four_of_two_sessions();
        assert_eq!(turn(&mut grants, 0), Some(1));
        grants.update(rpc_of(1, 1), 300_001, 1_000, 300_001);
        assert_eq!(turn(&mut grants, 4), None);
        assert_eq!(grants.next_timeout(), Some(Time::from_nanos(5_000_000)));
        assert_eq!(turn(&mut grants, 5), Some(4));
        grants.remove(rpc_of(2, 4));
        assert_eq!(
            turn(&mut grants, 6),
            None,
            "all are of the session that waits"
        );
        assert_eq!(grants.next_timeout(), None);
        grants.remove(rpc_of(1, 1));
        assert_eq!(turn(&mut grants, 6), Some(2));
    }

    #[test]
    fn nor_does_one_of_the_session_that_waits_when_nobody_expects_the_rest() {
        let mut grants = four_of_two_sessions();
        assert_eq!(turn(&mut grants, 0), Some(1));
        grants.update(rpc_of(1, 1), 300_001, 1_000, 300_001);
        grants.pass_over(rpc_of(1, 1));
        assert_eq!(turn(&mut grants, 1), Some(4));
        grants.remove(rpc_of(2, 4));
        assert_eq!(turn(&mut grants, 2), None);
        grants.remove(rpc_of(1, 1));
        assert_eq!(turn(&mut grants, 3), Some(2));
    }

    #[test]
    fn who_stops_half_way_is_overtaken_until_more_comes() {
        let mut grants = four_of_two_sessions();
        grants.update(rpc_of(1, 1), 300_001, 100_000, 200_000);
        assert_eq!(turn(&mut grants, 0), Some(1), "its window is the policy's");
        assert_eq!(turn(&mut grants, 5), Some(4));
        grants.update(rpc_of(1, 1), 300_001, 101_000, 200_000);
        grants.remove(rpc_of(2, 4));
        assert_eq!(turn(&mut grants, 6), Some(1));
    }
}
