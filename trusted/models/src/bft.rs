// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A model of `smt-bft`: replicas, one of which lies, and clients with a request each.

mod lies;
mod properties;
mod replica;

use std::fmt;
use std::sync::Arc;

use smt_bft::{Message, Rule, Statement};
use stateright::{Model, Property};

use crate::{LiarDevice, MessageId, Messages, RunId, Runs};
use replica::{Input, Member, Seen, members, requests};

pub use lies::Lie;
pub use properties::{names, twins};

/// The replicas of the group.
const REPLICAS: u32 = 3;

/// The most that happens.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many clients have a request, each one: 1 or 2.
    pub requests: usize,
    /// The last view that replicas want.
    pub views: u64,
    /// The most statements of a liar, over all its epochs.
    pub lies: usize,
    /// Whether the liar's device may restart.
    pub restarts: bool,
    /// Whether a liar's statements may arrive two at once, the second first.
    pub rows: bool,
}

/// Replicas and their bounds.
pub struct Bft {
    bounds: Bounds,
    liars: Vec<u32>,
    devices: Vec<LiarDevice>,
    runs: Runs<Member>,
    messages: Messages,
    requests: Vec<MessageId>,
    answers: properties::Answers,
}

/// A state: each correct replica's, and what the liars have said.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct State {
    correct: Vec<(u32, RunId)>,
    streams: Vec<Stream>,
}

/// The statements of a liar's device in one epoch.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Stream {
    liar: u32,
    epoch: u64,
    said: Vec<MessageId>,
}

/// An event.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// A client's request comes to a replica.
    Request(u32, usize),
    /// Time passes at a replica.
    Tick(u32),
    /// Statements of a device in an epoch come to a replica, up to a counter.
    Deliver(u32, (u32, u64), u64),
    /// A liar attests statements in an epoch, which come to a replica with all that came before.
    Lie(u32, (u32, u64), Vec<Lie>),
    /// A statement in another's name, without its MAC, comes to a replica.
    Forge(u32, (u32, u64), Lie),
}

impl Bft {
    /// Replicas of which these lie. The correct ones may lack a check.
    #[must_use]
    pub fn new(bounds: Bounds, liars: &[u32], lacking: Option<Rule>) -> Self {
        let group = Arc::new(smt_bft::sim::observe::group(REPLICAS, 0));
        let messages = Messages::default();
        let device = |it: &u32| {
            LiarDevice::new(*it, REPLICAS, group.stream, smt_bft::sim::observe::secret)
        };
        Self {
            bounds,
            liars: liars.to_vec(),
            devices: liars.iter().map(device).collect(),
            runs: members(&group, &messages, lacking),
            requests: requests(&group, bounds.requests, &messages),
            answers: properties::Answers::new(group, lacking),
            messages,
        }
    }

    /// How many states of single replicas were reached, and how many of their steps were played.
    pub fn runs(&self) -> (usize, usize) {
        self.runs.count()
    }

    fn see(&self, state: &State) -> Vec<(u32, Arc<Seen>)> {
        state.correct.iter().map(|(own, run)| (*own, self.runs.see(*run))).collect()
    }

    /// The statements of a device in an epoch, so far.
    fn said(&self, state: &State, key: (u32, u64)) -> Vec<MessageId> {
        let of_liar = state.streams.iter().find(|it| (it.liar, it.epoch) == key);
        let of_correct = state.correct.iter().find(|it| it.0 == key.0 && key.1 == 1);
        let of_correct = of_correct.map(|it| self.runs.see(it.1).said.clone());
        of_liar.map(|it| it.said.clone()).or(of_correct).unwrap_or_default()
    }

    /// The ways in which a correct replica can hear more of a stream.
    fn deliveries(&self, own: u32, seen: &Seen, said: (u32, u64, usize), actions: &mut Vec<Action>) {
        let (device, epoch, length) = said;
        let at = seen.observed.streams.get(&(device, epoch));
        if at.is_some_and(|it| it.is_faulty) {
            return;
        }
        let held = at.map_or(0, |it| it.held);
        for counter in held + 1..=length as u64 {
            actions.push(Action::Deliver(own, (device, epoch), counter));
        }
    }

    fn take(&self, state: &mut State, to: u32, inputs: impl IntoIterator<Item = Input>) {
        if let Some((_, run)) = state.correct.iter_mut().find(|it| it.0 == to) {
            for input in inputs {
                *run = self.runs.after(*run, &input);
            }
        }
    }

    /// Delivers a stream up to a counter, the last statement first.
    fn deliver(&self, state: &mut State, to: u32, key: (u32, u64), counter: u64) {
        let said = self.said(state, key);
        let Some((_, run)) = state.correct.iter().find(|it| it.0 == to) else {
            return;
        };
        let seen = self.runs.see(*run);
        let held = seen.observed.streams.get(&key).map_or(0, |it| it.held);
        let first = usize::try_from(held).unwrap_or(usize::MAX);
        let row = said.iter().take(usize::try_from(counter).unwrap_or(0)).skip(first);
        let row: Vec<Input> = row.rev().map(|it| Input::Message(*it)).collect();
        self.take(state, to, row);
    }
}

impl Model for Bft {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let correct = (0..REPLICAS).filter(|it| !self.liars.contains(it));
        let correct = correct.map(|it| (it, self.runs.first(it))).collect();
        let epochs = if self.bounds.restarts { 2 } else { 1 };
        let streams = self.liars.iter().flat_map(|liar| {
            (1..=epochs).map(|epoch| Stream { liar: *liar, epoch, said: Vec::new() })
        });
        vec![State { correct, streams: streams.collect() }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (own, seen) in self.see(state) {
            let requests = 0..self.requests.len();
            actions.extend(requests.map(|it| Action::Request(own, it)));
            if seen.observed.promised < self.bounds.views {
                actions.push(Action::Tick(own));
            }
            for (other, run) in state.correct.iter().filter(|it| it.0 != own) {
                let said = self.runs.see(*run).said.len();
                self.deliveries(own, &seen, (*other, 1, said), actions);
            }
            for stream in &state.streams {
                let said = (stream.liar, stream.epoch, stream.said.len());
                self.deliveries(own, &seen, said, actions);
            }
        }
        self.lies(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Request(to, it) => {
                self.take(&mut next, to, [Input::Message(self.requests[it])]);
            }
            Action::Tick(to) => self.take(&mut next, to, [Input::Tick]),
            Action::Deliver(to, key, counter) => self.deliver(&mut next, to, key, counter),
            Action::Lie(to, key, lies) => {
                for lie in lies {
                    self.say(&mut next, key, &lie)?;
                }
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

    fn format_action(&self, action: &Action) -> String {
        match action {
            Action::Request(to, it) => format!("request {it} comes to {to}"),
            Action::Tick(to) => format!("time passes at {to}"),
            Action::Deliver(to, (device, epoch), counter) => {
                format!("{to} hears {device} (epoch {epoch}) up to its statement {counter}")
            }
            Action::Lie(to, (device, epoch), lies) => {
                format!("{device} (epoch {epoch}) lies to {to}: {lies:?}")
            }
            Action::Forge(to, (device, _), lie) => {
                format!("a forged statement of {device} comes to {to}: {lie:?}")
            }
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(self)
    }
}

impl fmt::Debug for Bft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bft of {REPLICAS}, liars {:?}, {:?}", self.liars, self.bounds)
    }
}

/// The statement of attested bytes in a message.
fn statement(message: &[u8]) -> Option<(smt_bft::Attested, Statement)> {
    match Message::decode(message)? {
        Message::Statement(it) => postcard::from_bytes(&it.body).ok().map(|said| (it, said)),
        _ => None,
    }
}
