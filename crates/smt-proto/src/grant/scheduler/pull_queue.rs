// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The pull queue: messages of which more is to be on its way, in the order of a policy that pulls
//! (SPEC §9.10).
//!
//! Not here: when one of them is granted something, and how much (`ndp::pull`).

use alloc::collections::BTreeSet;

use super::Entry;
use crate::event::RpcId;
use crate::grant::ndp::pull::PullOrder;
use crate::grant::policy::{GrantBudget, Pulling};

/// Messages whose pull window is not full; empty under a policy that does not pull.
#[derive(Debug, Default)]
pub(super) struct PullQueue {
    pulling: Option<Pulling>,
    pending: BTreeSet<Turn>,
    /// The pending messages of which nothing is on its way.
    starved: BTreeSet<Turn>,
    /// The turn that was given last.
    last: u64,
}

/// A place in the queue: the key of the order, the age, and the message.
type Turn = (u64, u64, RpcId);

impl PullQueue {
    /// Takes the way in which a new policy pulls, or that it does not pull, and empties the queue.
    pub(super) fn clear(&mut self, pulling: Option<Pulling>) {
        self.pulling = pulling;
        self.pending.clear();
        self.starved.clear();
    }

    pub(super) fn pulling(&self) -> Option<Pulling> {
        self.pulling
    }

    /// Puts a message behind the others, if its pull window is not full.
    pub(super) fn insert(&mut self, entry: &mut Entry) {
        if let Some(pulling) = self.pulling.filter(|p| p.wants_pull(&entry.message)) {
            self.last += 1;
            entry.turn = self.last;
            self.take(entry, pulling.order);
        }
    }

    /// Takes a message that has changed. One of which bytes have merely arrived keeps its place.
    pub(super) fn update_place(&mut self, before: &Entry, entry: &mut Entry) {
        let was_seated = self.leave(before);
        match self.pulling {
            Some(pulling) if was_seated && before.message.granted == entry.message.granted => {
                self.take(entry, pulling.order);
            }
            _ => self.insert(entry),
        }
    }

    /// Returns whether it was in the queue.
    pub(super) fn leave(&mut self, entry: &Entry) -> bool {
        let Some(pulling) = self.pulling else {
            return false;
        };
        let turn = turn_of(entry, pulling.order);
        self.starved.remove(&turn);
        self.pending.remove(&turn)
    }

    /// The messages that may be granted something. Beyond the budget these are only the starved
    /// ones, which the others would hide.
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
