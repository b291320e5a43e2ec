// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An example: a crash-tolerant replicated counter, as it would be without any liar in mind.
//!
//! 2f + 1 nodes have a log of requests in the manner of Viewstamped Replication. The leader of a
//! view orders; a request is executed when f + 1 nodes have it. Nodes whose requests wait too long
//! want the next view, and change to it when f + 1 want it. The new leader takes the longest log of
//! the latest view among f + 1 nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::message::{decode, encode};
use crate::protocol::{Effect, Protocol};

/// The timer for requests that wait.
const PROGRESS: u32 = 0;
/// Ticks until another leader is wanted.
const TICKS: u32 = 15;

/// A request in the log: caller, number, and what is added.
pub type Entry = (Caller, u64, u64);

#[derive(Deserialize, Serialize)]
enum Message {
    /// The leader orders an entry at a place.
    Prepare { view: u64, place: u64, entry: Entry },
    /// The sender has the leader's log up to a length.
    Prepared { view: u64, length: u64 },
    /// The log is executed up to a length.
    Commit { view: u64, length: u64 },
    /// The sender wants this view.
    Want { view: u64 },
    /// The sender's log, for the leader of a new view.
    Change { view: u64, latest: u64, log: Vec<Entry> },
    /// The log with which the new leader begins.
    Begin { view: u64, log: Vec<Entry> },
}

/// One node of the counter.
#[derive(Clone, Debug)]
pub struct Counter {
    own: u32,
    nodes: u32,
    view: u64,
    /// The last view in which this node was, or is, with its leader's log.
    latest: u64,
    is_changing: bool,
    log: Vec<Entry>,
    executed: usize,
    sum: u64,
    /// The last answer to each caller.
    table: BTreeMap<Caller, (u64, u64)>,
    /// Requests that wait.
    pending: BTreeMap<Caller, (u64, u64)>,
    /// The length that each node has, in the leader's view.
    lengths: BTreeMap<u32, u64>,
    wanted: BTreeMap<u32, u64>,
    changes: BTreeMap<u32, (u64, Vec<Entry>)>,
}

impl Counter {
    /// A node of a new group.
    #[must_use]
    pub fn new(own: u32, nodes: u32) -> Self {
        Self {
            own,
            nodes,
            view: 0,
            latest: 0,
            is_changing: false,
            log: Vec::new(),
            executed: 0,
            sum: 0,
            table: BTreeMap::new(),
            pending: BTreeMap::new(),
            lengths: BTreeMap::new(),
            wanted: BTreeMap::new(),
            changes: BTreeMap::new(),
        }
    }

    /// The log that was executed: caller, number and what was added.
    #[must_use]
    pub fn executed(&self) -> &[Entry] {
        &self.log[..self.executed.min(self.log.len())]
    }

    /// The whole log, executed or not.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn log(&self) -> &[Entry] {
        &self.log
    }

    /// The view.
    #[must_use]
    pub fn view(&self) -> u64 {
        self.view
    }

    /// The last view whose leader's log this node has. The log only grows while this is the same.
    #[must_use]
    pub fn latest(&self) -> u64 {
        self.latest
    }

    fn majority(&self) -> usize {
        self.nodes as usize / 2 + 1
    }

    fn leader(&self) -> u32 {
        self.leader_of(self.view)
    }

    fn leader_of(&self, view: u64) -> u32 {
        u32::try_from(view % u64::from(self.nodes)).unwrap_or(0)
    }

    fn leads(&self) -> bool {
        self.leader() == self.own && !self.is_changing
    }

    fn to_all(&self, message: &Message) -> Vec<Effect> {
        let bytes = encode(message);
        let others = (0..self.nodes).filter(|it| *it != self.own);
        others.map(|to| Effect::Send { to, message: bytes.clone() }).collect()
    }

    fn to_leader(&self, message: &Message) -> Vec<Effect> {
        vec![Effect::Send { to: self.leader(), message: encode(message) }]
    }

    fn order(&mut self, entry: Entry) -> Vec<Effect> {
        if self.log.iter().any(|it| (it.0, it.1) == (entry.0, entry.1)) {
            return Vec::new();
        }
        let place = self.log.len() as u64;
        self.log.push(entry);
        self.to_all(&Message::Prepare { view: self.view, place, entry })
    }

    /// Executes what a majority has.
    fn commit(&mut self) -> Vec<Effect> {
        let mut lengths: Vec<u64> = self.lengths.values().copied().collect();
        lengths.push(self.log.len() as u64);
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let length = lengths.get(self.majority() - 1).copied().unwrap_or(0);
        if length <= self.executed as u64 {
            return Vec::new();
        }
        let mut effects = self.execute(length);
        effects.extend(self.to_all(&Message::Commit { view: self.view, length }));
        effects
    }

    fn execute(&mut self, length: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        let before = self.executed;
        while self.executed < self.log.len() && (self.executed as u64) < length {
            let (caller, number, added) = self.log[self.executed];
            self.executed += 1;
            self.sum = self.sum.wrapping_add(added);
            self.table.insert(caller, (number, self.sum));
            if self.pending.get(&caller).is_some_and(|it| it.0 <= number) {
                self.pending.remove(&caller);
            }
            if self.leads() {
                let answer = self.sum.to_be_bytes().to_vec();
                effects.push(Effect::Reply { caller, number, answer });
            }
        }
        if self.executed > before {
            effects.push(self.timer());
        }
        effects
    }

    /// The timer as it is to be after progress.
    fn timer(&self) -> Effect {
        match self.pending.is_empty() && !self.is_changing {
            true => Effect::Disarm { timer: PROGRESS },
            false => Effect::Arm { timer: PROGRESS, ticks: TICKS },
        }
    }

    fn want(&mut self, from: u32, view: u64) -> Vec<Effect> {
        let known = self.wanted.entry(from).or_default();
        *known = view.max(*known);
        let mut views: Vec<u64> = self.wanted.values().copied().collect();
        views.sort_unstable_by(|a, b| b.cmp(a));
        let next = views.get(self.majority() - 1).copied().unwrap_or(0);
        if next > self.view { self.enter(next) } else { Vec::new() }
    }

    /// Leaves its view for a later one that a majority wants.
    fn enter(&mut self, next: u64) -> Vec<Effect> {
        self.view = next;
        self.is_changing = true;
        self.lengths.clear();
        self.changes.clear();
        let mut effects = vec![self.timer()];
        if self.wanted.get(&self.own).is_none_or(|it| *it < next) {
            self.wanted.insert(self.own, next);
            effects.extend(self.to_all(&Message::Want { view: next }));
        }
        match self.leader() == self.own {
            true => effects.extend(self.change(self.own, self.latest, self.log.clone())),
            false => {
                let (latest, log) = (self.latest, self.log.clone());
                effects.extend(self.to_leader(&Message::Change { view: next, latest, log }));
            }
        }
        effects
    }

    /// The new leader takes a log, and begins when it has those of a majority.
    fn change(&mut self, from: u32, latest: u64, log: Vec<Entry>) -> Vec<Effect> {
        self.changes.insert(from, (latest, log));
        if !self.is_changing || self.changes.len() < self.majority() {
            return Vec::new();
        }
        let best = self.changes.values().max_by_key(|it| (it.0, it.1.len())).cloned();
        self.log = best.map(|it| it.1).unwrap_or_default();
        self.is_changing = false;
        self.latest = self.view;
        let begin = Message::Begin { view: self.view, log: self.log.clone() };
        let mut effects = self.to_all(&begin);
        for (caller, (number, added)) in self.pending.clone() {
            effects.extend(self.order((caller, number, added)));
        }
        effects.push(self.timer());
        effects
    }
}

impl Protocol for Counter {
    fn message(&mut self, from: u32, message: &[u8]) -> Vec<Effect> {
        let is_current = |view: u64| view == self.view && !self.is_changing;
        match decode(message) {
            Some(Message::Prepare { view, place, entry })
                if is_current(view) && place == self.log.len() as u64 =>
            {
                self.log.push(entry);
                self.to_leader(&Message::Prepared { view, length: place + 1 })
            }
            Some(Message::Prepared { view, length }) if is_current(view) && self.leads() => {
                self.lengths.insert(from, length.min(self.log.len() as u64));
                self.commit()
            }
            Some(Message::Commit { view, length }) if is_current(view) => self.execute(length),
            Some(Message::Want { view }) => self.want(from, view),
            Some(Message::Change { view, latest, log })
                if view >= self.view && self.leader_of(view) == self.own =>
            {
                // The sender knows of a majority that this node has not heard yet.
                let mut effects = if view > self.view { self.enter(view) } else { Vec::new() };
                effects.extend(self.change(from, latest, log));
                effects
            }
            Some(Message::Begin { view, log })
                if view > self.view || (view == self.view && self.is_changing) =>
            {
                (self.view, self.latest, self.is_changing) = (view, view, false);
                self.log = log;
                let length = self.log.len() as u64;
                let mut effects = self.to_leader(&Message::Prepared { view, length });
                effects.push(self.timer());
                effects
            }
            _ => Vec::new(),
        }
    }

    fn timeout(&mut self, _: u32) -> Vec<Effect> {
        let view = self.view.max(self.wanted.get(&self.own).copied().unwrap_or(0)) + 1;
        let mut effects = vec![Effect::Arm { timer: PROGRESS, ticks: TICKS }];
        effects.extend(self.to_all(&Message::Want { view }));
        effects.extend(self.want(self.own, view));
        effects
    }

    fn request(&mut self, caller: Caller, number: u64, operation: &[u8]) -> Vec<Effect> {
        let Ok(added) = operation.try_into().map(u64::from_be_bytes) else {
            return Vec::new();
        };
        match self.table.get(&caller) {
            Some((last, sum)) if *last >= number => {
                let answer = sum.to_be_bytes().to_vec();
                let is_it = *last == number && self.leads();
                return is_it
                    .then_some(Effect::Reply { caller, number, answer })
                    .into_iter()
                    .collect();
            }
            _ => {}
        }
        let is_first = self.pending.is_empty();
        self.pending.insert(caller, (number, added));
        let mut effects = Vec::new();
        if is_first {
            effects.push(Effect::Arm { timer: PROGRESS, ticks: TICKS });
        }
        if self.leads() {
            effects.extend(self.order((caller, number, added)));
        }
        effects
    }
}

/// The bytes of a message by which a leader begins a view with a log, for liars.
#[cfg(feature = "sim")]
#[must_use]
pub fn begin(view: u64, log: Vec<Entry>) -> Vec<u8> {
    encode(&Message::Begin { view, log })
}
