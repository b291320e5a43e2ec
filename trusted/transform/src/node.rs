// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node: the protocol's own run, and the runs of all others as their steps say.

use std::collections::BTreeMap;
use std::sync::Arc;

use ed25519_dalek::SigningKey;
use smt_attestation::{
    Algorithm, DeviceId, Epoch, GroupSecret, Kernel, Kind, Member, Misuse, Start, StreamId,
};

use crate::group::Group;
use crate::history::{History, Verdict, is_genuine, run};
use crate::message::{
    Attested, Endorsement, Input, Message, Request, Status, Step, decode, encode,
};
use crate::protocol::{Effect, Protocol};
use crate::rule::{Broken, Rule};
use crate::steps::{Asker, Ticks};

/// A device for groups of up to nine nodes.
type Device = Kernel<1, 8, 64>;

/// How many replies to clients are kept, for requests that come again.
const REPLIES: usize = 4;

/// Bytes that a node or a client wants sent. Nothing need arrive: all is asked for again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// To one node.
    Node(u32, Vec<u8>),
    /// To all other nodes.
    Nodes(Vec<u8>),
    /// To a client.
    Client(u32, Vec<u8>),
}

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

/// Why a node stops.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NodeError {
    /// The caller: two runs of the protocol had different effects on the same inputs. The step was
    /// not attested, so that the node has stopped, and not lied.
    NotDeterministic(Input),
    /// The device gives no more attestations.
    Device(Misuse),
}

/// One of 2f + 1 nodes.
pub struct Node<P> {
    pub(crate) group: Arc<Group>,
    pub(crate) own: u32,
    pub(crate) kernel: Device,
    pub(crate) key: SigningKey,
    /// The protocol's own run. The run in `histories` is a second one, of a machine of its own.
    machine: P,
    pub(crate) histories: Vec<History<P>>,
    /// The newest request of each client that is no step yet.
    pub(crate) requests: BTreeMap<u32, Request>,
    /// Ticks since each armed timer was armed.
    pub(crate) waited: BTreeMap<u32, u32>,
    /// The last replies to each client that were found valid.
    replies: BTreeMap<u32, BTreeMap<u64, Vec<u8>>>,
    pub(crate) outputs: Vec<Output>,
    /// Ticks since the start.
    now: Ticks,
    error: Option<NodeError>,
    pub(crate) broken: Broken,
    /// A liar's host makes its steps itself.
    #[cfg(feature = "sim")]
    pub(crate) holds_steps: bool,
}

impl<P: Protocol> Node<P> {
    /// Starts a node. `protocol` makes a new run of the protocol for a node: of each node there is
    /// one here, and of this node there are two.
    ///
    /// # Errors
    /// Those of [`Kernel::open`].
    pub fn new(
        group: Arc<Group>,
        identity: Identity,
        protocol: impl Fn(u32) -> P,
    ) -> Result<Self, Misuse> {
        let Identity { secret, device: own, key } = identity;
        let start = Start { device: DeviceId(own), epoch: Epoch(1), nonce: [0; 16] };
        let mut kernel = Device::start(start);
        let members: Vec<Member> = (0..group.size())
            .map(|device| Member { device: DeviceId(device), epoch: Epoch(1) })
            .collect();
        let of_device = smt_attestation::Group {
            stream: StreamId(group.stream),
            algorithm: Algorithm::HmacSha256,
            quorum: u32::try_from(group.quorum()).unwrap_or(u32::MAX),
            members: &members,
        };
        kernel.open(&secret, &of_device)?;
        let histories =
            (0..group.size()).map(|it| History::new(protocol(it), group.size())).collect();
        Ok(Self {
            own,
            kernel,
            key,
            machine: protocol(own),
            histories,
            requests: BTreeMap::new(),
            waited: BTreeMap::new(),
            replies: BTreeMap::new(),
            outputs: Vec::new(),
            now: 0,
            error: None,
            broken: Broken::default(),
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
        match Message::decode(bytes) {
            Some(Message::Step(step)) => self.take_step(step),
            Some(Message::Status(status)) => self.answer(&status),
            Some(Message::Request(request)) => self.take_request(request),
            Some(Message::Endorsement(_)) | None => {}
        }
        self.advance()
    }

    /// Time passes: a tick should be a fraction of a second.
    ///
    /// # Errors
    /// [`NodeError`]; the node does nothing more.
    pub fn tick(&mut self) -> Result<(), NodeError> {
        self.now += 1;
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
        let held = self.histories.iter().map(History::held).collect();
        let status = Message::Status(Status { from: self.own, held });
        self.outputs.push(Output::Nodes(status.encode()));
        self.advance()
    }

    /// All that is to be sent, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// The protocol's own run.
    pub fn protocol(&self) -> &P {
        &self.machine
    }

    /// The nodes that have made a step which the protocol does not make.
    pub fn faulty(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.histories).filter(|it| it.1.is_faulty).map(|it| it.0)
    }

    /// The last replies to each client that were found valid.
    #[cfg(feature = "broken")]
    pub(crate) fn replies(&self) -> &BTreeMap<u32, BTreeMap<u64, Vec<u8>>> {
        &self.replies
    }

    /// Makes all steps that can be made now.
    fn advance(&mut self) -> Result<(), NodeError> {
        while self.error.is_none() {
            self.take_steps();
            if self.holds() || !self.step_once() {
                break;
            }
        }
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
            self.requests.remove(&request.client);
        }
        self.step(input);
        true
    }

    /// Makes a step: runs the protocol, has the step attested, and sends it to all.
    pub(crate) fn step(&mut self, input: Input) {
        let effects = run(&mut self.machine, &input);
        // The second run began with another machine, so that an order by chance shows.
        let again = self.histories[self.own as usize].run(&input);
        if effects != again {
            self.error = Some(NodeError::NotDeterministic(input));
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
        let stream = self.kernel.stream_mut(StreamId(self.group.stream))?;
        match stream.attest(&body) {
            Ok(attestation) => {
                let counter = attestation.claim()?.counter;
                Some((counter, Attested::new(&attestation, body)))
            }
            Err(misuse) => {
                self.error = Some(NodeError::Device(misuse));
                None
            }
        }
    }

    /// Keeps an own step, and sends it to all.
    pub(crate) fn publish(&mut self, counter: u64, said: Attested) {
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

    /// The device and the counter of an authentic step.
    fn authenticate(&self, it: &Attested) -> Option<(u32, u64)> {
        // `check`, not `accept`: steps come out of order, and `History` keeps their order.
        let stream = self.kernel.stream(StreamId(self.group.stream))?;
        let header = match stream.check(&it.attestation(), &it.body) {
            Ok(header) => header,
            Err(_) if self.broken.lacks(Rule::Mac) => it.attestation().claim()?,
            Err(_) => return None,
        };
        // A device that has restarted has forgotten what it said: it has stopped.
        let is_step = header.kind == Kind::Message && header.epoch == Epoch(1);
        (is_step && header.device.0 < self.group.size())
            .then_some((header.device.0, header.counter))
    }

    fn take_step(&mut self, step: Attested) {
        // One that comes again costs no MAC. A forged one that is taken for it is not kept either.
        let is_known = step.attestation().claim().is_some_and(|it| {
            let history = self.histories.get(it.device.0 as usize);
            history.is_some_and(|history| history.knows(it.counter))
        });
        if !is_known
            && let Some((device, counter)) = self.authenticate(&step)
            && device != self.own
        {
            self.histories[device as usize].put(counter, step, self.now);
        }
    }

    /// Takes what can be taken from all streams.
    fn take_steps(&mut self) {
        loop {
            let mut took = false;
            for device in 0..self.group.size() {
                while device != self.own && self.take_next(device) {
                    took = true;
                }
            }
            if !took {
                return;
            }
        }
    }

    fn take_next(&mut self, device: u32) -> bool {
        let (group, broken) = (self.group.clone(), self.broken);
        let history = &mut self.histories[device as usize];
        let next = history.next(broken).filter(|_| !history.is_faulty);
        let Some((counter, step)) = next.map(|it| (it.0, decode::<Step>(&it.1.body))) else {
            return false;
        };
        let verdict = match step {
            None => Verdict::Faulty,
            Some(step) => history.judge(&step, &group, broken),
        };
        match verdict {
            Verdict::Wait => false,
            Verdict::Faulty => {
                history.end();
                false
            }
            Verdict::Valid(effects) => {
                history.took(counter, group.options.retained);
                self.follow(device, counter, effects);
                true
            }
        }
    }

    /// Delivers the messages of a valid step, and endorses its replies.
    fn follow(&mut self, device: u32, counter: u64, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send { to, message } if to < self.group.size() && to != device => {
                    let receiver = &mut self.histories[to as usize];
                    if !receiver.is_faulty {
                        let waiting = receiver.inbox.entry(device).or_default();
                        waiting.push_back((counter, message));
                    }
                }
                Effect::Reply { client, number, answer } => {
                    let known = self.replies.entry(client).or_default();
                    known.insert(number, answer.clone());
                    while known.len() > REPLIES {
                        known.pop_first();
                    }
                    self.endorse(client, number, answer);
                }
                Effect::Send { .. } | Effect::Arm { .. } | Effect::Disarm { .. } => {}
            }
        }
    }

    fn endorse(&mut self, client: u32, number: u64, answer: Vec<u8>) {
        let it = Endorsement::sign(&self.key, self.own, client, (number, answer));
        self.outputs.push(Output::Client(client, Message::Endorsement(it).encode()));
    }

    fn take_request(&mut self, request: Request) {
        if !is_genuine(&request, &self.group, self.broken) {
            return;
        }
        let client = request.client;
        let known = self.replies.get(&client).and_then(|it| it.get(&request.number)).cloned();
        if let Some(answer) = known {
            self.endorse(client, request.number, answer);
            return;
        }
        // One that was a step already, and has no reply, is a step again: the node that was to
        // reply may have stopped.
        let done = self.histories[self.own as usize].requested.get(&client).copied();
        let waiting = self.requests.get(&client).map(|it| it.number);
        let is_new = done.is_none_or(|it| it <= request.number);
        if is_new && waiting.is_none_or(|it| it < request.number) {
            self.requests.insert(client, request);
        }
    }

    /// Sends to another node what it lacks, of all streams: a liar that speaks to some only is
    /// heard by all. A step that was sent just before is on its way, and is not sent again.
    fn answer(&mut self, status: &Status) {
        let is_peer = status.from < self.group.size() && status.from != self.own;
        if !is_peer || status.held.len() != self.histories.len() {
            return;
        }
        let most = self.group.options.resend;
        for (device, held) in (0..).zip(&status.held).filter(|it| it.0 != status.from) {
            let asker = Asker { node: status.from, held: *held, now: self.now };
            let missing = self.histories[device as usize].missing(asker, most);
            let steps = missing.into_iter().map(|it| Message::Step(it).encode());
            self.outputs.extend(steps.map(|it| Output::Node(status.from, it)));
        }
    }
}
