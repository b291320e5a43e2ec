// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose host lies. Its device is genuine.

use std::collections::VecDeque;

use smt_attestation::{Algorithm, DeviceId, Epoch, Header, Kind, StreamId};
use smt_simulation::Random;

use crate::counter::Counter;
use crate::message::{Attested, Endorsement, Input, Message, Request, Step, encode};
use crate::node::{Node, Output};
use crate::protocol::Effect;
use crate::sim::group::{LIAR_CLIENT, client_key};

/// A way to lie.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Attack {
    /// Says nothing to some nodes.
    Silence,
    /// Sends half of what it should.
    Omit,
    /// Sends old messages again.
    Replay,
    /// Sends messages in another order.
    Reorder,
    /// Says what another node has not said.
    Forge,
    /// Tells two nodes two stories.
    Equivocate,
    /// States effects that the protocol does not have: a wrong answer.
    WrongEffects,
    /// Takes a message that nobody has sent: that another node has the whole log.
    InventMessage,
    /// Leaves a message out, and takes the next.
    SkipMessage,
    /// Runs out a timer that is armed, long before its time.
    EarlyTimeout,
    /// Runs out a timer that is not armed.
    WrongTimeout,
    /// Takes a request that no client has made.
    ForgedRequest,
    /// Endorses wrong answers.
    WrongEndorsement,
    /// Endorses in the names of others.
    ForgedEndorsement,
}

impl Attack {
    /// All ways.
    pub const ALL: [Self; 14] = [
        Self::Silence,
        Self::Omit,
        Self::Replay,
        Self::Reorder,
        Self::Forge,
        Self::Equivocate,
        Self::WrongEffects,
        Self::InventMessage,
        Self::SkipMessage,
        Self::EarlyTimeout,
        Self::WrongTimeout,
        Self::ForgedRequest,
        Self::WrongEndorsement,
        Self::ForgedEndorsement,
    ];

    /// Whether a node that lies like this leaves proof in its stream, at its first lie.
    pub(crate) fn is_found(self) -> bool {
        matches!(self, Self::WrongEffects | Self::WrongTimeout | Self::ForgedRequest)
    }
}

/// A message on its way to a node or a client.
#[derive(Clone, Debug)]
pub(crate) enum To {
    Node(u32),
    Client(u32),
}

/// A liar.
pub(crate) struct Liar {
    pub(crate) attack: Attack,
    pub(crate) node: Node<Counter>,
    /// How often it lied.
    pub(crate) lies: u64,
    random: Random,
    kept: VecDeque<(To, Vec<u8>)>,
    held: Vec<(To, Vec<u8>)>,
    /// The node that a silent liar still speaks with.
    friend: u32,
    has_ended: bool,
}

impl Liar {
    pub(crate) fn new(attack: Attack, node: Node<Counter>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let others = u64::from(node.group.size()) - 1;
        let friend = (node.own + 1 + random.below(others) as u32) % node.group.size();
        let (kept, held) = (VecDeque::new(), Vec::new());
        Self { attack, node, lies: 0, random, kept, held, friend, has_ended: false }
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        let ended = self.node.receive(bytes);
        self.has_ended |= ended.is_err();
        if self.node.holds_steps {
            self.lie();
        }
    }

    pub(crate) fn tick(&mut self) {
        // From the second second on, so that there is something to lie about.
        self.node.holds_steps |= self.attack.makes_steps() && self.random.chance(10);
        let ended = self.node.tick();
        self.has_ended |= ended.is_err();
        self.lie();
    }

    /// All that leaves the host.
    pub(crate) fn outputs(&mut self) -> Vec<(To, Vec<u8>)> {
        let mut sent = std::mem::take(&mut self.held);
        let others: Vec<u32> =
            (0..self.node.group.size()).filter(|it| *it != self.node.own).collect();
        for output in self.node.outputs() {
            let all = match output {
                Output::Node(to, bytes) => vec![(To::Node(to), bytes)],
                Output::Client(to, bytes) => vec![(To::Client(to), bytes)],
                Output::Nodes(bytes) => {
                    others.iter().map(|it| (To::Node(*it), bytes.clone())).collect()
                }
            };
            for (to, bytes) in all {
                sent.extend(self.alter(to, bytes));
            }
        }
        if self.attack == Attack::Reorder && sent.len() > 1 {
            self.lies += 1;
            sent.reverse();
        }
        sent
    }

    /// The fate of a message that the protocol has the node send.
    fn alter(&mut self, to: To, bytes: Vec<u8>) -> Option<(To, Vec<u8>)> {
        let is_friend = matches!(to, To::Node(it) if it == self.friend);
        match (self.attack, &to) {
            (Attack::Silence, To::Node(_)) if !is_friend => {
                self.lies += 1;
                return None;
            }
            (Attack::Omit, _) if self.random.chance(50) => {
                self.lies += 1;
                return None;
            }
            (Attack::Replay, _) => {
                self.kept.push_back((to.clone(), bytes.clone()));
                self.kept.truncate(200);
            }
            (Attack::WrongEndorsement | Attack::ForgedEndorsement, To::Client(client)) => {
                if let Some(Message::Endorsement(it)) = Message::decode(&bytes) {
                    self.endorse_wrong(*client, &it);
                }
            }
            _ => {}
        }
        Some((to, bytes))
    }

    fn endorse_wrong(&mut self, client: u32, it: &Endorsement) {
        self.lies += 1;
        let nodes = match self.attack {
            Attack::ForgedEndorsement => (0..self.node.group.size()).collect(),
            _ => vec![self.node.own],
        };
        for node in nodes {
            let wrong = (it.number, 999_999_u64.to_be_bytes().to_vec());
            let forged = Endorsement::sign(&self.node.key, node, client, wrong);
            self.held.push((To::Client(client), Message::Endorsement(forged).encode()));
        }
    }

    /// Lies of its own accord.
    fn lie(&mut self) {
        match self.attack {
            Attack::Replay if !self.kept.is_empty() => {
                for _ in 0..4 {
                    let at = self.random.below(self.kept.len() as u64) as usize;
                    self.held.extend(self.kept.get(at).cloned());
                }
                self.lies += 1;
            }
            Attack::Forge => self.forge(),
            Attack::EarlyTimeout if self.random.chance(20) => {
                let own = &self.node.histories[self.node.own as usize];
                if let Some(timer) = own.armed.keys().next().copied() {
                    self.lies += 1;
                    self.node.step(Input::Timeout { timer });
                }
            }
            _ if self.node.holds_steps => self.lie_in_a_step(),
            _ => {}
        }
    }

    /// Makes steps itself: honest ones, until it lies.
    fn lie_in_a_step(&mut self) {
        let own = self.node.own;
        match self.attack {
            Attack::WrongEffects => {
                while let Some(input) = self.next_input() {
                    let effects = self.run(&input);
                    self.say_wrong(input, effects);
                }
            }
            Attack::Equivocate => {
                while self.node.requests.len() < 2
                    && let Some(input) = self.next_message()
                {
                    let effects = self.run(&input);
                    self.say(&Step { input, effects });
                }
                if self.node.requests.len() > 1 {
                    self.equivocate();
                }
            }
            Attack::InventMessage => {
                while let Some(input) = self.next_input() {
                    let effects = self.run(&input);
                    self.say(&Step { input, effects });
                    self.invent(own);
                }
            }
            Attack::SkipMessage => {
                let inbox = &mut self.node.histories[own as usize].inbox;
                if let Some(waiting) = inbox.values_mut().find(|it| it.len() > 1) {
                    waiting.pop_front();
                    self.lies += 1;
                }
                while self.node.step_once() && !self.random.chance(20) {}
            }
            Attack::WrongTimeout => {
                self.lies += 1;
                let input = Input::Timeout { timer: 7 };
                let effects = self.run(&input);
                self.say(&Step { input, effects });
                self.node.holds_steps = false;
            }
            Attack::ForgedRequest => {
                self.lies += 1;
                let number = 1_000_000 + self.random.below(1000);
                let added = 5_000_u64.to_be_bytes().to_vec();
                let key = client_key(LIAR_CLIENT);
                let forged = Request::sign(&key, 1, number, added);
                self.node.step(Input::Request(forged));
                self.node.holds_steps = false;
            }
            _ => {}
        }
    }

    fn next_message(&mut self) -> Option<Input> {
        let own = &self.node.histories[self.node.own as usize];
        own.inbox.iter().find_map(|(from, waiting)| {
            let (counter, message) = waiting.front()?.clone();
            Some(Input::Message { from: *from, counter, message })
        })
    }

    fn next_input(&mut self) -> Option<Input> {
        let request =
            |liar: &mut Self| liar.node.requests.pop_first().map(|it| Input::Request(it.1));
        self.next_message().or_else(|| request(self))
    }

    fn run(&mut self, input: &Input) -> Vec<Effect> {
        self.node.histories[self.node.own as usize].run(input)
    }

    /// The liar's own view of its messages: they wait for their receivers.
    fn deliver(&mut self, counter: u64, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Send { to, message } = effect {
                let inbox = &mut self.node.histories[*to as usize].inbox;
                let waiting = inbox.entry(self.node.own).or_default();
                waiting.push_back((counter, message.clone()));
            }
        }
    }

    fn say(&mut self, step: &Step) {
        if let Some((counter, said)) = self.node.attest(step) {
            self.node.publish(counter, said);
            self.deliver(counter, &step.effects);
        }
    }

    /// States a wrong answer, if there is one to give.
    fn say_wrong(&mut self, input: Input, mut effects: Vec<Effect>) {
        for effect in &mut effects {
            if let Effect::Reply { answer, .. } = effect {
                *answer = 999_999_u64.to_be_bytes().to_vec();
                self.lies += 1;
            }
        }
        let step = Step { input, effects };
        self.endorse_in_step(&step);
        self.say(&step);
    }

    /// Tells one node of one request, and the others of another in its stead.
    fn equivocate(&mut self) {
        let mut requests = std::mem::take(&mut self.node.requests).into_values();
        let (Some(one), Some(two)) = (requests.next(), requests.next()) else {
            return;
        };
        let (one, two) = (Input::Request(one), Input::Request(two));
        let mut fork = self.node.histories[self.node.own as usize].machine().clone();
        let other = crate::history::run(&mut fork, &two);
        let effects = self.run(&one);
        let one = self.node.attest(&Step { input: one, effects });
        let two = self.node.attest(&Step { input: two, effects: other });
        let (Some(one), Some(two)) = (one, two) else {
            return;
        };
        self.lies += 1;
        for to in (0..self.node.group.size()).filter(|it| *it != self.node.own) {
            let said = if to == self.friend { &one.1 } else { &two.1 };
            self.held.push((To::Node(to), Message::Step(said.clone()).encode()));
        }
    }

    /// Endorses the wrong answer of its own step.
    fn endorse_in_step(&mut self, step: &Step) {
        for effect in &step.effects {
            if let Effect::Reply { client, number, answer } = effect {
                let reply = (*number, answer.clone());
                let it = Endorsement::sign(&self.node.key, self.node.own, *client, reply);
                self.held.push((To::Client(*client), Message::Endorsement(it).encode()));
            }
        }
    }

    /// Takes a message that nobody has sent: a later view begins with a log of its own.
    fn invent(&mut self, own: u32) {
        let size = self.node.group.size();
        let view = self.node.histories[own as usize].machine().view();
        let leads = |it: &u64| *it % u64::from(size) == u64::from(own);
        let later = (view + 1..).find(|it| !leads(it)).unwrap_or(view);
        let from = (later % u64::from(size)) as u32;
        let message = crate::counter::begin(later, vec![(1, 1_000_000, 5000)]);
        let input = Input::Message { from, counter: 1, message };
        self.lies += 1;
        let effects = self.run(&input);
        self.say(&Step { input, effects });
    }

    /// Says in another node's name what that node has not said: a wrong answer.
    fn forge(&mut self) {
        let group = self.node.group.clone();
        let victim = (self.friend + 1) % group.size();
        let victim = if victim == self.node.own { (victim + 1) % group.size() } else { victim };
        let victim = if victim == self.friend { self.node.own } else { victim };
        let counter = self.node.histories[victim as usize].taken + 1;
        let Some(timer) = self.node.histories[victim as usize].armed.keys().next().copied() else {
            return;
        };
        if victim == self.node.own {
            return;
        }
        let body = encode(&Step { input: Input::Timeout { timer }, effects: Vec::new() });
        let header = Header {
            algorithm: Algorithm::HmacSha256,
            kind: Kind::Message,
            stream: StreamId(group.stream),
            device: DeviceId(victim),
            length: body.len() as u32,
            epoch: Epoch(1),
            counter,
        };
        self.lies += 1;
        let forged = Attested { attestation: [header.encode(), [0; 32]], body };
        self.held.push((To::Node(self.friend), Message::Step(forged).encode()));
    }
}

impl Attack {
    /// Whether the host makes the steps itself.
    fn makes_steps(self) -> bool {
        matches!(
            self,
            Self::Equivocate
                | Self::WrongEffects
                | Self::InventMessage
                | Self::SkipMessage
                | Self::WrongTimeout
                | Self::ForgedRequest
        )
    }
}
