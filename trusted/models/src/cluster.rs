// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of three nodes, of which some lie: its states and all that can happen next.

use std::fmt;
use std::sync::Arc;

use smt_attestation::{Algorithm, DeviceId, Epoch, Header, Kind, StreamId};
use stateright::{Model, Property};

use crate::member::{Input, Member};
use crate::system::{Seen, System};
use crate::{LiarDevice, MessageId, Messages, RunId, Runs};

/// The nodes of a group.
pub const NODES: u32 = 3;

/// A stream: device and epoch.
pub type Key = (u32, u64);

/// Three nodes.
pub struct Cluster<S: System> {
    pub(crate) system: Arc<S>,
    pub(crate) liars: Vec<u32>,
    pub(crate) messages: Messages,
    devices: Vec<LiarDevice>,
    runs: Runs<Member<S>>,
    requests: Vec<MessageId>,
}

/// A state: each correct node's, and what the liars have said.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct State {
    pub(crate) correct: Vec<(u32, RunId)>,
    pub(crate) streams: Vec<Stream>,
}

/// The statements of a liar's device in one epoch.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Stream {
    pub(crate) key: Key,
    pub(crate) said: Vec<MessageId>,
}

/// Something that happens.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action<E, L> {
    /// A client's request comes to a node.
    Request(u32, usize),
    /// An event happens to a node.
    Happen(u32, E),
    /// Statements of a stream come to a node, up to a counter.
    Deliver(u32, Key, u64),
    /// A liar attests a statement in a stream, which comes to a node with all that came before.
    Lie(u32, Key, L),
    /// A statement in another's name, without its MAC, comes to a node.
    Forge(u32, Key, L),
}

impl<S: System> Cluster<S> {
    /// A system of which these nodes lie.
    pub fn new(system: S, liars: &[u32]) -> Self {
        let (system, messages) = (Arc::new(system), Messages::default());
        let requests = { system.requests() }.iter().map(|it| messages.number(it)).collect();
        let devices = liars.iter().map(|it| system.device(*it)).collect();
        let of_runs = (system.clone(), messages.clone());
        let runs = Runs::new(move |own| Member::new(of_runs.0.clone(), of_runs.1.clone(), own));
        Self { system, liars: liars.to_vec(), messages, devices, runs, requests }
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
        let of_liar = state.streams.iter().find(|it| it.key == key);
        let of_correct = state.correct.iter().find(|it| (it.0, 1) == key);
        let of_correct = of_correct.map(|it| self.runs.see(it.1).said.clone());
        of_liar.map(|it| it.said.clone()).or(of_correct).unwrap_or_default()
    }

    /// All streams.
    pub(crate) fn keys(&self, state: &State) -> Vec<Key> {
        let mut keys: Vec<_> = state.correct.iter().map(|it| (it.0, 1)).collect();
        keys.extend(state.streams.iter().map(|it| it.key));
        keys.sort_unstable();
        keys
    }

    fn take(&self, state: &mut State, to: u32, inputs: impl IntoIterator<Item = Input<S::Event>>) {
        if let Some((_, run)) = state.correct.iter_mut().find(|it| it.0 == to) {
            for input in inputs {
                *run = self.runs.after(*run, &input);
            }
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
        let row: Vec<_> = row.map(Input::Message).collect();
        self.take(state, to, row.into_iter().rev());
    }

    /// Has a lie attested.
    fn say(&self, state: &mut State, key: Key, lie: &S::Lie) -> Option<()> {
        let body = self.system.body(self, state, (key, lie))?;
        let device = self.liars.iter().position(|it| *it == key.0)?;
        let stream = state.streams.iter_mut().find(|it| it.key == key)?;
        let attestation = self.devices[device].attest(key.1, stream.said.len(), &body)?;
        let halves = [attestation.header_bytes(), attestation.mac()];
        stream.said.push(self.messages.number(&self.system.message(halves, body)));
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

impl<S: System> Model for Cluster<S> {
    type State = State;
    type Action = Action<S::Event, S::Lie>;

    fn init_states(&self) -> Vec<State> {
        let correct = (0..NODES).filter(|it| !self.liars.contains(it));
        let correct = correct.map(|it| (it, self.runs.first(it))).collect();
        let keys = self
            .liars
            .iter()
            .flat_map(|liar| (1..=self.system.epochs()).map(|epoch| (*liar, epoch)));
        let streams = keys.map(|key| Stream { key, said: Vec::new() }).collect();
        vec![State { correct, streams }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Self::Action>) {
        let told: usize = state.streams.iter().map(|it| it.said.len()).sum();
        let may_lie = told < self.system.lies_max();
        for (own, seen) in self.see(state) {
            let requests = 0..self.requests.len();
            let requests = requests.filter(|it| self.system.may_come(self, state, (own, *it)));
            actions.extend(requests.map(|it| Action::Request(own, it)));
            let events = self.system.events(self, state, own);
            actions.extend(events.into_iter().map(|it| Action::Happen(own, it)));
            for key in self.keys(state).into_iter().filter(|it| it.0 != own) {
                let at = seen.view.streams.get(&key);
                if at.is_some_and(|it| it.is_faulty) {
                    continue;
                }
                let held = at.map_or(0, |it| it.held);
                let length = self.said(state, key).len() as u64;
                actions.extend((held + 1..=length).map(|it| Action::Deliver(own, key, it)));
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
        }
    }

    fn next_state(&self, state: &State, action: Self::Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Request(to, it) => {
                self.take(&mut next, to, [Input::Message(self.requests[it])]);
            }
            Action::Happen(to, event) => self.take(&mut next, to, [Input::Event(event)]),
            Action::Deliver(to, key, counter) => self.deliver(&mut next, to, key, counter),
            Action::Lie(to, key, lie) => {
                self.say(&mut next, key, &lie)?;
                let length = self.said(&next, key).len() as u64;
                self.deliver(&mut next, to, key, length);
            }
            Action::Forge(to, key, lie) => {
                let forged = self.forged(state, key, &lie)?;
                self.take(&mut next, to, [Input::Message(forged)]);
            }
        }
        // Most of what comes a second time changes nothing.
        (next != *state).then_some(next)
    }

    fn format_action(&self, action: &Self::Action) -> String {
        match action {
            Action::Request(to, it) => format!("request {it} comes to {to}"),
            Action::Happen(to, event) => format!("{event:?} at {to}"),
            Action::Deliver(to, (device, epoch), counter) => {
                format!("{to} hears {device} up to its statement {counter} in epoch {epoch}")
            }
            Action::Lie(to, (device, epoch), lie) => {
                format!("{device} says to {to} in epoch {epoch}: {lie:?}")
            }
            Action::Forge(to, (device, _), lie) => {
                format!("in the name of {device}, without a MAC, to {to}: {lie:?}")
            }
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.system.properties(&self.liars)
    }
}

impl<S: System> fmt::Debug for Cluster<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NODES} nodes, of which {:?} lie", self.liars)
    }
}
