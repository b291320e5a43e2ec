// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node: the protocol's own run, and the runs of all others as their steps say.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_attestation::GroupSecret;
use smt_attestor::Attestor;
use smt_device_client::DeviceError;
use smt_replica::{AttestorError, KnownRoots, Request, SigningKey, Statements};

use crate::caller::Caller;
use crate::calls::Calls;
use crate::error::NodeError;
use crate::group::Group;
use crate::history::{History, run};
use crate::message::{Attested, Input, Message, Step, digest, encode};
use crate::protocol::{Effect, Protocol};
use crate::steps::Ticks;

pub use smt_replica::Output;

/// The secrets and the start of a node. The transformation is for nodes that do not come back: a
/// device must be in its first epoch.
pub struct Identity {
    /// The group's secret, for the device.
    pub secret: GroupSecret,
    /// The device's number.
    pub device: u32,
    /// The key with which the host signs endorsements.
    pub key: SigningKey,
}

/// One of 2f + 1 nodes.
pub struct Node<P> {
    pub(crate) group: Arc<Group>,
    pub(crate) own: u32,
    pub(crate) device: Attestor,
    pub(crate) key: SigningKey,
    /// The protocol's own run. The run in `histories` is a second one, of a machine of its own.
    machine: P,
    pub(crate) histories: Vec<History<P>>,
    /// The newest request of each caller that is no step yet.
    pub(crate) requests: BTreeMap<Caller, Request>,
    /// How many requests of each client were let in since the last tick, or the last reply to it.
    /// No other node can tell, and no step depends on it: a log has those alone that were let in.
    pub(crate) unanswered: BTreeMap<u32, u32>,
    /// How many requests of each client were let in since the last tick that had an answer, which
    /// is no longer kept.
    pub(crate) repeated: BTreeMap<u32, u32>,
    /// Signatures of clients that were verified.
    pub(crate) roots: KnownRoots,
    /// Ticks since each armed timer was armed.
    pub(crate) waited: BTreeMap<u32, u32>,
    /// The last request of each caller that was a valid step, and its answer.
    pub(crate) calls: Calls,
    /// The own steps that were attested, for a log.
    pub(crate) made: Statements,
    pub(crate) outputs: Vec<Output>,
    /// Whether it endorses nothing: it takes its log again, and clients ask again.
    pub(crate) is_silent: bool,
    /// Ticks since the start.
    pub(crate) now: Ticks,
    pub(crate) error: Option<NodeError>,
    /// A liar's host makes its steps itself.
    #[cfg(feature = "sim")]
    pub(crate) holds_steps: bool,
}

impl<P: Protocol> Node<P> {
    /// Starts a node. `protocol` makes a new run of the protocol for a node: of each node there is
    /// one here, and of this node there are two.
    ///
    /// # Errors
    /// Those of [`smt_device_client::Device::open`].
    pub fn new(
        group: Arc<Group>,
        identity: Identity,
        protocol: impl Fn(u32) -> P,
    ) -> Result<Self, DeviceError> {
        let Identity { secret, device: own, key } = identity;
        let device = group.open(secret, own)?;
        let histories =
            (0..group.size()).map(|it| History::new(protocol(it), group.size())).collect();
        Ok(Self {
            own,
            device,
            key,
            machine: protocol(own),
            histories,
            requests: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            repeated: BTreeMap::new(),
            roots: KnownRoots::default(),
            waited: BTreeMap::new(),
            calls: Calls::default(),
            made: Statements::default(),
            outputs: Vec::new(),
            is_silent: false,
            now: 0,
            error: None,
            #[cfg(feature = "sim")]
            holds_steps: false,
            group,
        })
    }

    /// Takes a message of a node or a client.
    ///
    /// # Errors
    /// [`NodeError`]; the node does nothing more.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), NodeError> {
        if let Some(message) = Message::decode(bytes) {
            match self.effect_of(&message) {
                smt_replica::Effect::Nothing => {}
                smt_replica::Effect::Answer(_) => {
                    let answer = self.answer(&message);
                    self.outputs.extend(answer);
                }
                smt_replica::Effect::Change => self.take(message),
            }
        }
        self.advance();
        self.result()
    }

    /// Takes a message whose effect is, or was, a change: it is authentic.
    pub(crate) fn take(&mut self, message: Message) {
        match message {
            Message::Step(step) => self.take_step(step),
            Message::Request(request) => self.take_request(request),
            Message::Status(_) | Message::Endorsement(_) => {}
        }
        self.advance();
    }

    /// Time passes: a tick should be a fraction of a second.
    ///
    /// # Errors
    /// [`NodeError`]; the node does nothing more.
    pub fn tick(&mut self) -> Result<(), NodeError> {
        self.run_out();
        let question = self.question();
        self.outputs.push(question);
        self.advance();
        self.result()
    }

    /// A tick has passed: timers run out.
    fn run_out(&mut self) {
        self.count_tick();
        let armed = self.histories[self.own as usize].armed.clone();
        self.waited.retain(|timer, _| armed.contains_key(timer));
        let mut due = Vec::new();
        for (timer, ticks) in armed {
            let waited = self.waited.entry(timer).or_default();
            *waited += 1;
            if *waited > ticks {
                due.push(timer);
            }
        }
        for timer in due {
            // The timer before may have disarmed this one.
            let is_armed = self.histories[self.own as usize].armed.contains_key(&timer);
            if is_armed && !self.holds() {
                self.step(Input::Timeout { timer });
            }
        }
    }

    /// A tick has passed, on which no step depends.
    pub(crate) fn count_tick(&mut self) {
        self.now += 1;
        self.unanswered.clear();
        self.repeated.clear();
    }

    /// All that is to be sent, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// The protocol's own run.
    pub fn protocol(&self) -> &P {
        &self.machine
    }

    /// The counter up to which the steps of a node were taken.
    pub fn taken(&self, node: u32) -> Option<u64> {
        self.histories.get(node as usize).map(|it| it.taken)
    }

    /// The nodes that have made a step which the protocol does not make.
    pub fn faulty(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.histories).filter(|it| it.1.is_faulty).map(|it| it.0)
    }

    /// Makes all steps that can be made now.
    fn advance(&mut self) {
        while self.error.is_none() {
            self.take_steps();
            if self.holds() || !self.step_once() {
                break;
            }
        }
    }

    fn result(&self) -> Result<(), NodeError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    fn holds(&self) -> bool {
        #[cfg(feature = "sim")]
        return self.holds_steps;
        #[cfg(not(feature = "sim"))]
        false
    }

    /// Makes a step of the first message that waits, or of a request.
    pub(crate) fn step_once(&mut self) -> bool {
        let own = &self.histories[self.own as usize];
        let message = own.inbox.iter().find_map(|(from, waiting)| {
            let (counter, message) = waiting.front()?.clone();
            Some(Input::Message { from: *from, counter, message })
        });
        let request = || self.requests.first_key_value().map(|it| Input::Request(it.1.clone()));
        let Some(input) = message.or_else(request) else {
            return false;
        };
        if let Input::Request(request) = &input {
            self.requests.remove(&Caller::of(request));
        }
        self.step(input);
        true
    }

    /// Makes a step: runs the protocol, has the step attested, and sends it to all.
    pub(crate) fn step(&mut self, input: Input) {
        if let Input::Request(request) = &input {
            self.calls.begin(request);
        }
        let effects = run(&mut self.machine, &input);
        // The second run began with another machine, so that an order by chance shows.
        let again = self.histories[self.own as usize].run(&input);
        if effects != again {
            self.error = Some(NodeError::NotDeterministic(Box::new(input)));
            return;
        }
        for effect in &effects {
            if let Effect::Arm { timer, .. } = effect {
                self.waited.insert(*timer, 0);
            }
        }
        if let Some((counter, said)) = self.attest(&Step { input, effects: effects.clone() }) {
            self.publish(counter, said);
            self.follow(self.own, counter, effects);
        }
    }

    /// Has a step attested.
    pub(crate) fn attest(&mut self, step: &Step) -> Option<(u64, Attested)> {
        let body = encode(step);
        let (bytes, max) = (body.len(), self.group.options.step);
        if bytes > max {
            let input = Box::new(step.input.clone());
            self.error = Some(NodeError::StepTooLong { input, bytes, max });
            return None;
        }
        let Some(attestation) = self.device.attest(&body) else {
            let failure = self.device.failure().unwrap_or(AttestorError::Foreign);
            self.error = Some(NodeError::Device(Arc::new(failure)));
            return None;
        };
        let counter = attestation.claim()?.counter;
        Some((counter, Attested::new(&attestation, body)))
    }

    /// Keeps an own step, and sends it to all.
    pub(crate) fn publish(&mut self, counter: u64, said: Attested) {
        let [header, mac] = &said.attestation;
        let digest = digest("made", &[&self.made.digest, header, mac]);
        self.made = Statements { count: counter, digest };
        self.outputs.push(Output::Nodes(Message::Step(said.clone()).encode()));
        self.keep(counter, said);
    }

    /// Keeps an own step for those who ask.
    pub(crate) fn keep(&mut self, counter: u64, said: Attested) {
        let retained = self.group.options.retained;
        let own = &mut self.histories[self.own as usize];
        own.put(counter, said, self.now);
        own.took(counter, retained);
    }

    fn take_request(&mut self, request: Request) {
        if self.is_new(&request) {
            self.requests.insert(Caller::of(&request), request);
        }
    }
}
