// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The books of what is granted: which incoming messages need grants, and how much all of them hold (SPEC §9.2).
//!
//! [`Grants`] holds every opened message of the endpoint that is longer than its unscheduled bytes, in the orders in
//! which a [`GrantPolicy`] is shown them; the policy decides.

mod by_session;
mod one_at_a_time;
mod seats;

use std::collections::BTreeMap;
use std::time::Duration;

use by_session::BySession;
use one_at_a_time::OneAtATime;
use seats::Seats;

use crate::event::RpcId;
use crate::grant_policy::{GrantBudget, GrantPolicy, Grantable, Granted, Pulling};
use crate::limits::RESEND_INTERVAL;
use crate::time::Time;
use crate::work;

/// The messages of an endpoint that need grants, or have not used up those they hold.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    messages: BTreeMap<RpcId, Entry>,
    /// Those that need grants: by bytes left and age, the same by session, and by age alone. A copy of each spares a decision the look-ups.
    by_left: BTreeMap<(u32, u64), Grantable>,
    by_session: BySession,
    by_age: BTreeMap<u64, RpcId>,
    /// For a policy that pulls.
    seats: Seats,
    /// Messages that do not use what they were granted, until more of them comes.
    passed_over: BTreeMap<RpcId, Entry>,
    /// Bytes granted and not arrived, of all messages.
    outstanding: u64,
    order: u64,
    is_dirty: bool,
    /// Whose turn it is while memory is full.
    turns: OneAtATime,
    /// The last look for the next one was long: there is none before.
    look_from: Option<Time>,
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
}

impl Grants {
    /// From now on a policy decides that pulls like this, or does not pull.
    pub(crate) fn set_pulling(&mut self, pulling: Option<Pulling>) {
        self.seats.clear(pulling);
        let rpcs: Vec<RpcId> = self.messages.keys().copied().collect();
        for rpc in rpcs {
            if let Some(mut entry) = self.messages.get(&rpc).copied() {
                self.seats.sit(&mut entry);
                self.messages.insert(rpc, entry);
            }
        }
        self.is_dirty = true;
    }

    pub(crate) fn pulling(&self) -> Option<Pulling> {
        self.seats.pulling()
    }

    /// Something may have changed that [`Self::decide`] does not know of: the policy's time has come.
    pub(crate) fn wake(&mut self) {
        self.is_dirty = true;
    }

    /// A message has begun, or more of it has arrived.
    pub(crate) fn update(&mut self, rpc: RpcId, length: u32, arrived: u32, granted: u32) {
        let known = self.messages.get(&rpc);
        let is_new = known.is_none();
        let before = match known.or_else(|| self.passed_over.get(&rpc)) {
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
        if is_new {
            self.passed_over.remove(&rpc);
        }
        let mut entry = before;
        entry.message.arrived = arrived;
        entry.message.granted = granted;
        if !is_new {
            self.outstanding -= before.outstanding();
            self.take_rank(&before);
        }
        self.outstanding += entry.outstanding();
        if entry.needs_grants() {
            self.by_left.insert(entry.by_left(), entry.message);
            self.by_session.insert(entry.by_left(), entry.message);
            if entry.message.arrived > before.message.arrived {
                self.turns.forget(rpc);
            }
        }
        match (!is_new && before.needs_grants(), entry.needs_grants()) {
            (false, true) => drop(self.by_age.insert(entry.message.order, rpc)),
            (true, false) => drop(self.by_age.remove(&entry.message.order)),
            _ => {}
        }
        self.seats.sit_again(&before, &mut entry);
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

    /// A message is over.
    pub(crate) fn remove(&mut self, rpc: RpcId) {
        self.take_out(rpc);
        self.passed_over.remove(&rpc);
        self.turns.forget(rpc);
    }

    /// A message does not use what it was granted: until more of it comes others get that.
    pub(crate) fn pass_over(&mut self, rpc: RpcId) {
        if let Some(entry) = self.take_out(rpc) {
            self.passed_over.insert(rpc, entry);
        }
        self.turns.pass_over(rpc);
    }

    fn take_out(&mut self, rpc: RpcId) -> Option<Entry> {
        let entry = self.messages.remove(&rpc)?;
        self.outstanding -= entry.outstanding();
        self.take_rank(&entry);
        self.by_age.remove(&entry.message.order);
        self.seats.leave(&entry);
        self.is_dirty = true;
        Some(entry)
    }

    fn take_rank(&mut self, entry: &Entry) {
        if self.by_left.remove(&entry.by_left()).is_some() {
            let session = entry.message.rpc.session;
            self.by_session.remove(entry.by_left(), session);
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
        let is_idle = self.by_left.is_empty() && self.pulling().is_none();
        if !std::mem::take(&mut self.is_dirty) || is_idle {
            return decisions;
        }
        self.is_dirty = is_full;
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        let budget = GrantBudget {
            limit,
            outstanding: self.outstanding,
        };
        if is_full {
            shown.extend(self.one_at_a_time(now, helps));
        } else {
            self.turns.clear();
            self.look_from = None;
            self.show(policy.candidates(), budget, &mut shown);
        }
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
        let next = self.turns.next_timeout().into_iter().chain(self.look_from);
        next.min().filter(|_| is_awaited)
    }

    /// The message that gets on. Who is put aside, or would not help, is walked by, and there may be thousands of those. So
    /// after a long walk there is a pause: walking takes a tenth of the time at most, since a step takes some 0.1 us.
    fn one_at_a_time(&mut self, now: Time, helps: impl Fn(RpcId) -> bool) -> Option<Grantable> {
        let may_look = self.look_from.is_none_or(|from| from <= now);
        let mut steps = 0;
        let of = |rpc| self.messages.get(&rpc).map(|entry| entry.message);
        let walked = self.by_left.values().take_while(|_| may_look);
        let walked = walked.inspect(|_| {
            work::step();
            steps += 1;
        });
        let next = self
            .turns
            .next(now, of, walked.filter(|message| helps(message.rpc)));
        if may_look {
            let pause = RESEND_INTERVAL.max(Duration::from_micros(steps));
            self.look_from = (steps > WALK).then(|| now + pause);
        }
        next
    }

    /// The messages with the fewest bytes left, or those whose turn it is, and the oldest.
    fn show(&mut self, most: usize, budget: GrantBudget, shown: &mut Vec<Grantable>) {
        if self.pulling().is_none() {
            self.by_session.show(most, shown);
        }
        let of = |rpc| self.messages.get(&rpc).map(|entry| entry.message);
        if self.pulling().is_some() {
            shown.extend(self.seats.in_turn(budget).take(most).filter_map(of));
        }
        if let Some((order, oldest)) = self.by_age.first_key_value()
            && shown.iter().all(|message| message.order != *order)
        {
            shown.extend(of(*oldest));
        }
    }
}

/// Messages that may be walked by to find the next one, as often as somebody asks.
const WALK: u64 = 64;

#[cfg(test)]
mod tests;
