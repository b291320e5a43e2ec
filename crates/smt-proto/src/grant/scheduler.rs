// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The account of grants: which incoming messages need grants, and how much all of them hold (SPEC
//! §9.2).
//!
//! [`GrantScheduler`] holds every opened message of the endpoint that is longer than its
//! unscheduled bytes, in the orders in which a [`GrantPolicy`] is shown them; the policy decides.

use alloc::vec::Vec;
mod by_session;
mod memory_pressure;
mod pull_queue;
mod usage;

use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

use by_session::BySession;
use memory_pressure::MemoryPressure;
use pull_queue::PullQueue;
pub(crate) use usage::Progress;
use usage::{Usage, Verdict};

use crate::collections::step_count;
use crate::event::RpcId;
use crate::grant::policy::{GrantBudget, GrantPolicy, Grantable, Granted, Pulling};
use crate::limits::RESEND_INTERVAL;
use crate::time::Time;

/// The messages of an endpoint that need grants, or have not used up their grants.
#[derive(Debug, Default)]
pub(crate) struct GrantScheduler {
    messages: BTreeMap<RpcId, Entry>,
    /// Messages that need grants, by bytes left and age. A copy of each saves a decision the
    /// look-ups.
    by_left: BTreeMap<(u32, u64), Grantable>,
    /// Messages that need grants by session, without those that are limited by their senders.
    by_session: BySession,
    /// Messages that are limited by their senders, by session.
    sender_limited: BySession,
    /// Messages that need grants, by age alone.
    by_age: BTreeMap<u64, RpcId>,
    /// The pull queue, for a policy that pulls.
    pull_queue: PullQueue,
    /// Messages that do not use their grants, until more of them arrives.
    passed_over: BTreeMap<RpcId, Entry>,
    /// Bytes granted and not arrived, of all messages but those that are limited by their senders.
    outstanding: u64,
    /// Bytes granted and not arrived, of the messages that are limited by their senders.
    outstanding_limited: u64,
    /// When a measurement ends that shows whether a message uses its grants.
    measured: BTreeSet<(Time, RpcId)>,
    order: u64,
    is_dirty: bool,
    /// The turns of messages while memory is full.
    turns: MemoryPressure,
    /// The last walk for the next message was long: there is no further one before this moment.
    look_from: Option<Time>,
    /// The messages shown at the last decision; the vector's memory is used again.
    shown: Vec<Grantable>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    message: Grantable,
    /// End of its unscheduled bytes.
    free: u32,
    /// The turn by which it is in the pull queue.
    turn: u64,
    /// How fast its sender uses what it may send.
    usage: Option<Usage>,
}

impl Entry {
    /// Bytes granted and not arrived.
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

    fn progress(&self) -> Progress {
        Progress {
            length: self.message.length,
            arrived: self.message.arrived,
            granted: self.message.granted,
        }
    }

    /// Goes on measuring how fast its sender uses what it may send. A new measurement counts what
    /// arrived after `from`.
    fn measure(&mut self, now: Time, from: u32) {
        let progress = self.progress();
        let verdict = |usage: Option<Usage>| {
            usage.map_or(Verdict::Void, |usage| usage.verdict(now, progress))
        };
        let mut found = verdict(self.usage);
        self.message.is_sender_limited |= found == Verdict::SenderLimited;
        if matches!(found, Verdict::SenderLimited | Verdict::Void) {
            self.usage = Usage::new(now, progress, from);
            found = verdict(self.usage);
        }
        if found == Verdict::Used {
            self.message.is_sender_limited = false;
            self.usage = Usage::new(now, progress, progress.arrived);
        }
    }

    /// Another policy decides: under a pacer usage tells nothing of a sender.
    fn forget_usage(&mut self) {
        self.usage = None;
        self.message.is_sender_limited = false;
    }

    /// When its measurement ends that may show that its sender limits it, if that is not known yet.
    fn measured(&self) -> Option<(Time, RpcId)> {
        let usage = self.usage.filter(Usage::is_permitted);
        let usage = usage.filter(|_| !self.message.is_sender_limited)?;
        Some((usage.until, self.message.rpc))
    }
}

impl GrantScheduler {
    /// Takes the way in which a new policy pulls, or that it does not pull.
    pub(crate) fn set_pulling(&mut self, pulling: Option<Pulling>) {
        let rpcs: Vec<RpcId> = self.messages.keys().copied().collect();
        let entries: Vec<Entry> = rpcs.into_iter().filter_map(|rpc| self.take_out(rpc)).collect();
        self.pull_queue.clear(pulling);
        for mut entry in entries {
            entry.forget_usage();
            self.pull_queue.insert(&mut entry);
            self.put_in(entry);
        }
        self.passed_over.values_mut().for_each(Entry::forget_usage);
        self.is_dirty = true;
    }

    pub(crate) fn pulling(&self) -> Option<Pulling> {
        self.pull_queue.pulling()
    }

    /// Makes [`Self::decide`] look again although no message has changed: the policy's time has
    /// come.
    pub(crate) fn wake(&mut self) {
        self.is_dirty = true;
    }

    /// Takes a message that has begun, of which more has arrived, or of which more may be sent.
    pub(crate) fn update(&mut self, now: Time, rpc: RpcId, progress: Progress) {
        let known = self.messages.get(&rpc);
        let before = match known.or_else(|| self.passed_over.get(&rpc)) {
            Some(before) if before.progress() == progress => return,
            Some(before) => *before,
            // All of it may come already: the common case.
            None if progress.granted >= progress.length => return,
            None => self.first_sight(rpc, progress),
        };
        self.take_out(rpc);
        self.passed_over.remove(&rpc);
        let mut entry = before;
        entry.message.arrived = progress.arrived;
        entry.message.granted = progress.granted;
        if self.pulling().is_none() {
            entry.measure(now, before.message.arrived);
        }
        if entry.needs_grants() && progress.arrived > before.message.arrived {
            self.turns.forget(rpc);
        }
        self.pull_queue.update_place(&before, &mut entry);
        self.put_in(entry);
    }

    /// Finds the messages whose senders have not used what they may send. Others get their part of
    /// the budget.
    pub(crate) fn measure(&mut self, now: Time) {
        while let Some((until, rpc)) = self.measured.first().copied()
            && until <= now
        {
            self.measured.pop_first();
            if let Some(mut entry) = self.take_out(rpc) {
                entry.measure(now, entry.message.arrived);
                self.put_in(entry);
            }
        }
    }

    fn first_sight(&mut self, rpc: RpcId, progress: Progress) -> Entry {
        self.order += 1;
        let message = Grantable {
            rpc,
            length: progress.length,
            arrived: 0,
            granted: progress.granted,
            order: self.order,
            is_sender_limited: false,
        };
        Entry { message, free: progress.granted, turn: 0, usage: None }
    }

    /// Removes a message that is over.
    pub(crate) fn remove(&mut self, rpc: RpcId) {
        self.leave(rpc);
        self.passed_over.remove(&rpc);
        self.turns.forget(rpc);
    }

    /// Passes over a message that does not use its grants: until more of it comes, others get them.
    pub(crate) fn pass_over(&mut self, rpc: RpcId) {
        if let Some(entry) = self.leave(rpc) {
            self.passed_over.insert(rpc, entry);
        }
        self.turns.pass_over(rpc);
    }

    fn leave(&mut self, rpc: RpcId) -> Option<Entry> {
        let entry = self.take_out(rpc)?;
        self.pull_queue.leave(&entry);
        Some(entry)
    }

    /// Takes a message out of all orders but the pull queue.
    fn take_out(&mut self, rpc: RpcId) -> Option<Entry> {
        let entry = self.messages.remove(&rpc)?;
        self.is_dirty = true;
        *self.outstanding_of(&entry) -= entry.outstanding();
        if let Some(measured) = entry.measured() {
            self.measured.remove(&measured);
        }
        if entry.needs_grants() {
            self.by_left.remove(&entry.by_left());
            self.by_age.remove(&entry.message.order);
            self.class(&entry).remove(entry.by_left(), rpc.session);
        }
        Some(entry)
    }

    /// Puts a message into all orders but the pull queue.
    fn put_in(&mut self, entry: Entry) {
        let (message, rank) = (entry.message, entry.by_left());
        self.is_dirty = true;
        *self.outstanding_of(&entry) += entry.outstanding();
        self.measured.extend(entry.measured());
        if entry.needs_grants() {
            self.by_left.insert(rank, message);
            self.by_age.insert(message.order, message.rpc);
            self.class(&entry).insert(rank, message);
        }
        self.messages.insert(message.rpc, entry);
    }

    /// The messages with which a message competes: those that are limited by their senders, or the
    /// others.
    fn class(&mut self, entry: &Entry) -> &mut BySession {
        match entry.message.is_sender_limited {
            false => &mut self.by_session,
            true => &mut self.sender_limited,
        }
    }

    /// The sum in which a message's outstanding bytes count.
    fn outstanding_of(&mut self, entry: &Entry) -> &mut u64 {
        match entry.message.is_sender_limited {
            false => &mut self.outstanding,
            true => &mut self.outstanding_limited,
        }
    }

    /// Decisions, if anything has changed since the last call, within `limit` bytes granted and not
    /// arrived. While memory is full there is `frees_memory`: one message at a time gets on, out of
    /// those whose end frees memory.
    pub(crate) fn decide(
        &mut self,
        now: Time,
        policy: &mut dyn GrantPolicy,
        limit: u32,
        frees_memory: Option<&dyn Fn(RpcId) -> bool>,
    ) -> Vec<Granted> {
        let mut decisions = Vec::new();
        let is_idle = self.by_left.is_empty() && self.pulling().is_none();
        if !core::mem::take(&mut self.is_dirty) || is_idle {
            return decisions;
        }
        self.is_dirty = frees_memory.is_some();
        let mut shown = core::mem::take(&mut self.shown);
        shown.clear();
        let budget = GrantBudget {
            limit,
            outstanding: self.outstanding,
            sender_limited: self.outstanding_limited,
        };
        if let Some(frees_memory) = frees_memory {
            shown.extend(self.under_memory_pressure(now, frees_memory));
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

    /// When the next message may get on while memory is full, or another one's part of the budget
    /// may become free.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let is_awaited = !self.by_left.is_empty();
        let measured = self.measured.first().map(|(until, _)| *until);
        // A decision that is due anyway looks at all; and a message alone has the whole budget.
        let measured = measured.filter(|_| !self.is_dirty && self.messages.len() > 1);
        let next = self.turns.next_timeout().into_iter().chain(self.look_from);
        next.chain(measured).min().filter(|_| is_awaited)
    }

    /// The message that gets on. Messages that are set back, or would not free memory, are skipped,
    /// and there may be thousands of them. A pause therefore follows a long walk: walking takes a
    /// tenth of the time at most, since a step takes some 0.1 us.
    fn under_memory_pressure(
        &mut self,
        now: Time,
        frees_memory: &dyn Fn(RpcId) -> bool,
    ) -> Option<Grantable> {
        let may_look = self.look_from.is_none_or(|from| from <= now);
        let mut steps = 0;
        let of = |rpc| self.messages.get(&rpc).map(|entry| entry.message);
        let walked = self.by_left.values().take_while(|_| may_look);
        let walked = walked.inspect(|_| {
            step_count::step();
            steps += 1;
        });
        let next = self.turns.next(now, of, walked.filter(|message| frees_memory(message.rpc)));
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
            self.sender_limited.show(most, shown);
        }
        let of = |rpc| self.messages.get(&rpc).map(|entry| entry.message);
        if self.pulling().is_some() {
            shown.extend(self.pull_queue.in_turn(budget).take(most).filter_map(of));
        }
        if let Some((order, oldest)) = self.by_age.first_key_value()
            && shown.iter().all(|message| message.order != *order)
        {
            shown.extend(of(*oldest));
        }
    }
}

/// Messages that one walk may skip to find the next one.
const WALK: u64 = 64;

#[cfg(test)]
mod tests;
