// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hungry messages in the order of a policy that pulls (SPEC §9.10): of which more is to be on
//! its way.
//!
//! Not here: when one of them gets something, and how much (`pull`).

use alloc::collections::BTreeSet;

use super::Entry;
use crate::event::RpcId;
use crate::grant::ndp::pull::PullOrder;
use crate::grant::policy::{GrantBudget, Pulling};

/// Who is hungry; nobody under a policy that does not pull.
#[derive(Debug, Default)]
pub(super) struct PullQueue {
    pulling: Option<Pulling>,
    pending: BTreeSet<Turn>,
    /// Of those, the ones of which nothing is on its way.
    starved: BTreeSet<Turn>,
    /// The turn that was given last.
    last: u64,
}

/// A place: what the order goes by, age, and whose it is.
type Turn = (u64, u64, RpcId);

impl PullQueue {
    /// From now on a policy decides that pulls like this, or does not pull. All have lost their
    /// seats.
    pub(super) fn clear(&mut self, pulling: Option<Pulling>) {
        self.pulling = pulling;
        self.pending.clear();
        self.starved.clear();
    }

    pub(super) fn pulling(&self) -> Option<Pulling> {
        self.pulling
    }

    /// Puts a message behind the others, if it is hungry.
    pub(super) fn insert(&mut self, entry: &mut Entry) {
        if let Some(pulling) = self.pulling.filter(|p| p.wants_pull(&entry.message)) {
            self.last += 1;
            entry.turn = self.last;
            self.take(entry, pulling.order);
        }
    }

    /// A message has changed: what has merely arrived keeps its place.
    pub(super) fn update_place(&mut self, before: &Entry, entry: &mut Entry) {
        let was_seated = self.leave(before);
        match self.pulling {
            Some(pulling) if was_seated && before.message.granted == entry.message.granted => {
                self.take(entry, pulling.order);
            }
            _ => self.insert(entry),
        }
    }

    /// Whether it had a seat.
    pub(super) fn leave(&mut self, entry: &Entry) -> bool {
        let Some(pulling) = self.pulling else {
            return false;
        };
        let turn = turn_of(entry, pulling.order);
        self.starved.remove(&turn);
        self.pending.remove(&turn)
    }

    /// Those that may get something: beyond the budget only the unfed, whom the others would hide.
    pub(super) fn in_turn(&self, budget: GrantBudget) -> impl Iterator<Item = RpcId> {
        let turns = match budget.left() {
            0 => &self.starved,
            _ => &self.pending,
        };
        turns.iter().map(|(_, _, rpc)| *rpc)
    }

    fn take(&mut self, entry: &Entry, order: PullOrder) {
        let turn = turn_of(entry, order);
        self.pending.insert(turn);
        if entry.message.granted <= entry.message.arrived {
            self.starved.insert(turn);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.starved.is_empty()
    }
}

fn turn_of(entry: &Entry, order: PullOrder) -> Turn {
    let ((left, age), rpc) = (entry.by_left(), entry.message.rpc);
    match order {
        PullOrder::RoundRobin => (entry.turn, age, rpc),
        PullOrder::ShortestFirst => (u64::from(left), age, rpc),
    }
}
