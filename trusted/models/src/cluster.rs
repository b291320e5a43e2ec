// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of a few nodes, of which some lie: its states and all that can happen next.

use std::fmt;
use std::sync::Arc;

use smt_attestation::{Algorithm, DeviceId, Epoch, Header, Kind, StreamId};
use stateright::{Model, Property};

use crate::action::Action;
use crate::counts::Counts;
use crate::explore::Limited;
use crate::member::{Input, Member};
use crate::system::{Seen, System};
use crate::{LiarDevice, MessageId, Messages, RunId, Runs};

/// The nodes of a group, if a system does not say otherwise.
pub const NODES: u32 = 3;

/// A stream: device and epoch.
pub type Key = (u32, u64);

/// The nodes of a group.
pub struct Cluster<S: System> {
    pub(crate) system: Arc<S>,
    pub(crate) liars: Vec<u32>,
    pub(crate) messages: Messages,
    devices: Vec<LiarDevice>,
    pub(crate) runs: Runs<Member<S>>,
    requests: Vec<MessageId>,
    counts: Arc<Counts>,
}

/// A state: each correct node's, and what the liars have said.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct State {
    pub(crate) correct: Vec<(u32, RunId)>,
    pub(crate) streams: Vec<Stream>,
    /// How many statements liars have said since the beginning.
    pub(crate) told: usize,
}

/// The statements of a liar's device in one epoch.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Stream {
    pub(crate) key: Key,
    pub(crate) said: Vec<MessageId>,
}

impl<S: System> Cluster<S> {
    /// A system of which these nodes lie.
    pub fn new(system: S, liars: &[u32]) -> Self {
        let (system, messages) = (Arc::new(system), Messages::default());
        let requests = { system.requests() }.iter().map(|it| messages.number(it)).collect();
        let devices = liars.iter().map(|it| system.device(*it)).collect();
        let of_runs = (system.clone(), messages.clone());
        let runs = Runs::new(move |own| Member::new(of_runs.0.clone(), of_runs.1.clone(), own));
        let counts = Arc::default();
        Self { system, liars: liars.to_vec(), messages, devices, runs, requests, counts }
    }

    /// The counts of an exploration, also when the model is gone.
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// How many states of single nodes were reached, and how many of their steps were played.
    pub fn runs(&self) -> (usize, usize) {
        self.runs.count()
    }

    /// The state of each correct node.
    pub(crate) fn see(&self, state: &State) -> Vec<(u32, Arc<Seen<S::Observed>>)> {
        state.correct.iter().map(|(own, run)| (*own, self.runs.see(*run))).collect()
    }

    /// The parts of a correct node that properties look at.
    pub(crate) fn observed(&self, state: &State, own: u32) -> Option<Arc<S::Observed>> {
        let (_, run) = state.correct.iter().find(|it| it.0 == own)?;
        self.runs.see(*run).observed.clone()
    }

    /// The statements of a stream, so far.
    pub(crate) fn said(&self, state: &State, key: Key) -> Vec<MessageId> {
        if let Some(of_liar) = state.streams.iter().find(|it| it.key == key) {
            return of_liar.said.clone();
        }
        let of_correct = state.correct.iter().find(|it| it.0 == key.0);
        let said = of_correct.and_then(|it| self.runs.see(it.1).said.get(&key.1).cloned());
        said.unwrap_or_default()
    }

    /// All streams.
    pub(crate) fn keys(&self, state: &State) -> Vec<Key> {
        let epochs = self.see(state).into_iter();
        let epochs = epochs.flat_map(|(own, seen)| (1..=seen.epoch).map(move |it| (own, it)));
        let mut keys: Vec<_> = epochs.collect();
        keys.extend(state.streams.iter().map(|it| it.key));
        keys.sort_unstable();
        keys
    }

    /// A correct node takes inputs, the first one first.
    fn take(&self, state: &mut State, to: u32, inputs: &[Input<S::Event>]) {
        if let Some((_, run)) = state.correct.iter_mut().find(|it| it.0 == to)
            && !inputs.is_empty()
        {
            *run = self.runs.after(*run, inputs);
        }
    }

    /// Delivers a stream up to a counter, the last statement first.
    fn deliver(&self, state: &mut State, to: u32, key: Key, counter: u64) {
        let Some((_, run)) = state.correct.iter().find(|it| it.0 == to) else {
            return;
        };
        let held = self.runs.see(*run).view.streams.get(&key).map_or(0, |it| it.held);
        let number = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
        let said = self.said(state, key);
        let row = said.into_iter().take(number(counter)).skip(number(held));
        let mut row: Vec<_> = row.map(Input::Message).collect();
        row.reverse();
        self.take(state, to, &row);
    }

    /// Has a lie attested, which nobody hears yet.
    pub(crate) fn say(&self, state: &mut State, key: Key, lie: &S::Lie) -> Option<()> {
        let body = self.system.body(self, state, (key, lie))?;
        let device = self.liars.iter().position(|it| *it == key.0)?;
        let stream = state.streams.iter_mut().find(|it| it.key == key)?;
        let attestation = self.devices[device].attest(key.1, stream.said.len(), &body)?;
        let halves = [attestation.header_bytes(), attestation.mac()];
        stream.said.push(self.messages.number(&self.system.message(halves, body)));
        state.told += 1;
        Some(())
    }

    /// A statement that the device of `key` has not attested, with a MAC of zeros.
    fn forged(&self, state: &State, key: Key, lie: &S::Lie) -> Option<MessageId> {
        let body = self.system.body(self, state, (key, lie))?;
        let header = Header {
            algorithm: Algorithm::HmacSha256,
            kind: Kind::Message,
            stream: StreamId(self.devices.first()?.stream()),
            device: DeviceId(key.0),
            length: u32::try_from(body.len()).ok()?,
            epoch: Epoch(key.1),
            counter: self.said(state, key).len() as u64 + 1,
        };
        Some(self.messages.number(&self.system.message([header.encode(), [0; 32]], body)))
    }
}

impl<S: System> Cluster<S> {
    /// The state after an action. Nothing if it cannot happen.
    pub(crate) fn step(&self, state: &State, action: &Action<S::Event, S::Lie>) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Request(to, it) => {
                self.take(&mut next, *to, &[Input::Message(self.requests[*it])]);
            }
            Action::Happen(to, event) => self.take(&mut next, *to, &[Input::Event(*event)]),
            Action::Deliver(to, key, counter) => self.deliver(&mut next, *to, *key, *counter),
            Action::Lie(to, key, lie) => {
                self.say(&mut next, *key, lie)?;
                let counter = self.said(&next, *key).len() as u64;
                self.deliver(&mut next, *to, *key, counter);
            }
            Action::Forge(to, key, lie) => {
                let forged = self.forged(&next, *key, lie)?;
                self.take(&mut next, *to, &[Input::Message(forged)]);
            }
            Action::Give(to, from, number) => {
                let run = next.correct.iter().find(|it| it.0 == *from)?.1;
                let given = *self.runs.see(run).given.get(*number)?;
                self.take(&mut next, *to, &[Input::Message(given)]);
            }
            Action::Show(to, lie) => {
                let bytes = self.system.show(self, &mut next, lie)?;
                self.take(&mut next, *to, &[Input::Message(self.messages.number(&bytes))]);
            }
        }
        Some(next)
    }

    /// The things that can happen at a correct node: messages of others, requests, and events.
    fn actions_at(&self, state: &State, (own, seen): (u32, &Seen<S::Observed>)) -> Vec<Of<S>> {
        let mut actions = Vec::new();
        let requests = 0..self.requests.len();
        let requests = requests.filter(|it| self.system.may_come(self, state, (own, *it)));
        actions.extend(requests.map(|it| Action::Request(own, it)));
        let events = self.system.events(self, state, own);
        actions.extend(events.into_iter().map(|it| Action::Happen(own, it)));
        let may_lie = state.told < self.system.lies_max();
        for key in self.keys(state).into_iter().filter(|it| it.0 != own) {
            let at = seen.view.streams.get(&key);
            if at.is_some_and(|it| it.is_faulty) {
                continue;
            }
            let held = at.map_or(0, |it| it.held);
            let length = self.said(state, key).len() as u64;
            let least = if self.system.has_whole_rows() { length } else { 1 };
            let rows = least.max(held + 1)..=length;
            actions.extend(rows.map(|it| Action::Deliver(own, key, it)));
            if may_lie && self.liars.contains(&key.0) {
                let lies = self.system.alphabet(self, state, key);
                actions.extend(lies.into_iter().map(|it| Action::Lie(own, key, it)));
            }
        }
        for (key, lie) in self.system.forgeries(self, state) {
            if key.0 != own {
                actions.push(Action::Forge(own, key, lie));
            }
        }
        for (from, seen) in self.see(state).into_iter().filter(|it| it.0 != own) {
            actions.extend((0..seen.given.len()).map(|it| Action::Give(own, from, it)));
        }
        if may_lie {
            let shown = self.system.shown(self, state).into_iter();
            actions.extend(shown.map(|it| Action::Show(own, it)));
        }
        actions
    }
}

/// An action in a system.
type Of<S> = Action<<S as System>::Event, <S as System>::Lie>;

impl<S: System> Model for Cluster<S> {
    type State = State;
    type Action = Of<S>;

    fn init_states(&self) -> Vec<State> {
        let correct = (0..self.system.nodes()).filter(|it| !self.liars.contains(it));
        let correct = correct.map(|it| (it, self.runs.first(it))).collect();
        let keys = self
            .liars
            .iter()
            .flat_map(|liar| (1..=self.system.epochs()).map(|epoch| (*liar, epoch)));
        let streams = keys.map(|key| Stream { key, said: Vec::new() }).collect();
        let first = State { correct, streams, told: 0 };
        vec![State { told: 0, ..self.system.begin(self, first) }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Self::Action>) {
        if self.counts.are_all() {
            return;
        }
        for (own, seen) in self.see(state) {
            actions.extend(self.actions_at(state, (own, &seen)));
        }
    }

    fn next_state(&self, state: &State, action: Self::Action) -> Option<State> {
        let next = self.step(state, &action);
        let changes = next.as_ref().is_some_and(|it| it.correct != state.correct);
        self.counts.count(&action, changes);
        next.filter(|it| it != state)
    }

    fn format_action(&self, action: &Self::Action) -> String {
        action.to_string()
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.system.properties(&self.liars)
    }
}

impl<S: System> Limited for Cluster<S> {
    fn end_after(&self, ways: Option<usize>) {
        self.counts.end_after(ways);
    }
}

impl<S: System> fmt::Debug for Cluster<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} nodes, of which {:?} lie", self.system.nodes(), self.liars)
    }
}
