// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The alphabet of a liar: each step that the protocol makes, and steps that it does not make.

use std::collections::{BTreeMap, VecDeque};

use ed25519_dalek::SigningKey;
use smt_transform::counter::{Counter, begin};
use smt_transform::{Caller, Effect, Input, Protocol, Request, Step};

use super::{Transform, step, steps};
use crate::{Cluster, Key, NODES, State};

/// A step that a liar has attested.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Lie {
    /// It takes the first message of a node, or a later one: then it leaves one out.
    Message {
        /// The node.
        from: u32,
        /// How many it leaves out.
        left_out: usize,
    },
    /// It takes a message that nobody has sent: a log of its own, in a node's name.
    Invent {
        /// The node.
        from: u32,
    },
    /// A timer runs out. It is a lie if it was not armed.
    Timeout,
    /// It takes a request; one above the last is one that no client has signed.
    Request {
        /// The request.
        request: usize,
    },
    /// It takes a request, and states no effects.
    WithoutEffects {
        /// The request.
        request: usize,
    },
    /// It takes the first message of a node, and states another answer to the client.
    WrongAnswer {
        /// The node.
        from: u32,
    },
}

/// The protocol of a liar, as its own steps give it.
pub(super) struct Run {
    machine: Counter,
    is_armed: bool,
    /// How many messages of each node it has taken.
    taken: BTreeMap<u32, Vec<(u64, Vec<u8>)>>,
}

impl Run {
    /// A run after steps.
    pub(super) fn after(own: u32, steps: &[Step]) -> Self {
        let (machine, taken) = (Counter::new(own, NODES), BTreeMap::new());
        let mut run = Self { machine, is_armed: false, taken };
        for step in steps {
            run.take(&step.input);
        }
        run
    }

    /// Takes an input, and gives the effects of the protocol.
    fn take(&mut self, input: &Input) -> Vec<Effect> {
        let effects = match input {
            Input::Message { from, counter, message } => {
                self.taken.entry(*from).or_default().push((*counter, message.clone()));
                self.machine.message(*from, message)
            }
            Input::Timeout { timer } => {
                self.is_armed = false;
                self.machine.timeout(*timer)
            }
            Input::Request(it) => self.machine.request(Caller::of(it), it.number, &it.operation),
        };
        for effect in &effects {
            match effect {
                Effect::Arm { .. } => self.is_armed = true,
                Effect::Disarm { .. } => self.is_armed = false,
                Effect::Send { .. } | Effect::Reply { .. } => {}
            }
        }
        effects
    }

    /// Whether the protocol makes this step next. Messages are those that wait.
    pub(super) fn makes(&mut self, step: &Step, waiting: &BTreeMap<u32, Waiting>) -> bool {
        let is_input = match &step.input {
            Input::Message { from, counter, message } => {
                let taken = self.taken.get(from).map_or(0, Vec::len);
                let next = waiting.get(from).and_then(|it| it.get(taken));
                next == Some(&(*counter, message.clone()))
            }
            Input::Timeout { .. } => self.is_armed,
            Input::Request(_) => true,
        };
        self.take(&step.input) == step.effects && is_input
    }
}

/// Messages to a node: the counter of the step that sends each, and its bytes.
pub(super) type Waiting = VecDeque<(u64, Vec<u8>)>;

/// All messages that correct nodes have sent to a liar.
pub(super) fn sent(
    cluster: &Cluster<Transform>,
    state: &State,
    liar: u32,
) -> BTreeMap<u32, Waiting> {
    let mut all = BTreeMap::new();
    for (own, _) in &state.correct {
        let waiting: &mut Waiting = all.entry(*own).or_default();
        for (counter, it) in { 1.. }.zip(cluster.said(state, (*own, 1))) {
            let effects = step(&cluster.messages.bytes(it)).map(|it| it.effects);
            for effect in effects.into_iter().flatten() {
                if let Effect::Send { to, message } = effect
                    && to == liar
                {
                    waiting.push_back((counter, message));
                }
            }
        }
    }
    all
}

impl Transform {
    pub(super) fn lies(&self, cluster: &Cluster<Self>, state: &State, liar: u32) -> Vec<Lie> {
        let run = Run::after(liar, &steps(cluster, state, liar));
        let mut lies = Vec::new();
        for (from, waiting) in sent(cluster, state, liar) {
            let taken = run.taken.get(&from).map_or(0, Vec::len);
            if taken < waiting.len() {
                lies.extend([Lie::Message { from, left_out: 0 }, Lie::WrongAnswer { from }]);
            }
            if taken + 1 < waiting.len() {
                lies.push(Lie::Message { from, left_out: 1 });
            }
            lies.push(Lie::Invent { from });
        }
        if run.machine.view() < self.bounds.views {
            lies.push(Lie::Timeout);
        }
        lies.extend((0..=self.bounds.requests).map(|request| Lie::Request { request }));
        lies.push(Lie::WithoutEffects { request: 0 });
        lies
    }

    /// The request of a number; one that no client has signed beyond them.
    fn request(&self, number: usize) -> Option<Request> {
        let last = self.requests.last()?;
        let nobody = SigningKey::from_bytes(&[77; 32]);
        let operation = 100_u64.to_be_bytes().to_vec();
        let unsigned = || Request::sign(&nobody, last.client, last.number, (last.nonce, operation));
        Some(self.requests.get(number).cloned().unwrap_or_else(unsigned))
    }

    pub(super) fn meant(
        &self,
        cluster: &Cluster<Self>,
        state: &State,
        (key, lie): (Key, &Lie),
    ) -> Option<Step> {
        let mut run = Run::after(key.0, &steps(cluster, state, key.0));
        let message = |from: u32, left_out: usize| {
            let taken = run.taken.get(&from).map_or(0, Vec::len);
            let waiting = sent(cluster, state, key.0).remove(&from)?;
            let (counter, message) = waiting.get(taken + left_out)?.clone();
            Some(Input::Message { from, counter, message })
        };
        let input = match lie {
            Lie::Message { from, left_out } => message(*from, *left_out)?,
            Lie::WrongAnswer { from } => message(*from, 0)?,
            Lie::Invent { from } => {
                let log = vec![(Caller::of(self.requests.first()?), 1, 50)];
                Input::Message { from: *from, counter: 1, message: begin(1, log) }
            }
            Lie::Timeout => Input::Timeout { timer: 0 },
            Lie::Request { request } | Lie::WithoutEffects { request } => {
                Input::Request(self.request(*request)?)
            }
        };
        let mut effects = run.take(&input);
        match lie {
            Lie::WithoutEffects { .. } => effects.clear(),
            Lie::WrongAnswer { .. } => {
                let mut answers = effects.iter_mut().filter_map(|it| match it {
                    Effect::Reply { answer, .. } => Some(answer),
                    _ => None,
                });
                // Only a leader that has executed answers.
                *answers.next()? = 100_u64.to_be_bytes().to_vec();
            }
            _ => {}
        }
        Some(Step { input, effects })
    }
}
