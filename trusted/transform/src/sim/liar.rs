// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose host lies. Its device is genuine.

use smt_replica::sim::{LIAR_CLIENT, LyingHost, To, client_key, forged};
use smt_replica::{Reply, Request};

use crate::caller::Caller;
use crate::counter::Counter;
use crate::history::History;
use crate::message::{Input, Message, Step, encode};
use crate::node::Node;
use crate::protocol::Effect;
use crate::sim::attack::Attack;
use crate::sim::system::Transformed;

/// A liar: a node that follows the protocol but for the lie.
pub(super) struct Liar {
    attack: Attack,
    host: LyingHost<Node<Counter>>,
}

impl smt_replica::sim::Liar for Liar {
    fn receive(&mut self, _from: Option<u32>, bytes: &[u8]) {
        // A node that has ended says nothing more.
        let _ = self.node().receive(bytes);
        if self.node().holds_steps {
            self.lie();
        }
    }

    fn tick(&mut self) {
        // Not from the first tick on, so that there is something to lie about.
        let makes_steps = self.attack.makes_steps() && self.host.random.chance(10);
        self.node().holds_steps |= makes_steps;
        let _ = self.node().tick();
        self.lie();
    }

    fn outputs(&mut self) -> Vec<(To, Vec<u8>)> {
        let mut sent = std::mem::take(&mut self.host.held);
        for (to, bytes) in self.host.sent::<Transformed>(0) {
            sent.extend(self.alter(to, bytes));
        }
        if self.attack == Attack::Reorder {
            self.host.reorder(&mut sent);
        }
        sent
    }

    fn has_lied(&self) -> Option<String> {
        (self.host.lies > 0).then(|| format!("{:?}", self.attack))
    }
}

impl Liar {
    pub(super) fn new(attack: Attack, node: Node<Counter>, seed: u64) -> Self {
        let (own, size) = (node.own, node.group.size());
        Self { attack, host: LyingHost::new(vec![node], own, size, seed) }
    }

    /// Whether its stream has a lie, for all to see.
    pub(super) fn has_left_proof(&self) -> bool {
        self.attack.is_found() && self.host.lies > 0
    }

    fn node(&mut self) -> &mut Node<Counter> {
        &mut self.host.cores[0]
    }

    fn own_history(&mut self) -> &mut History<Counter> {
        let own = self.host.own as usize;
        &mut self.node().histories[own]
    }

    /// The fate of a message that the protocol has the node send.
    fn alter(&mut self, to: To, bytes: Vec<u8>) -> Option<(To, Vec<u8>)> {
        match (self.attack, to) {
            (Attack::Silence, _) if self.host.withholds(to) => {
                self.host.lies += 1;
                return None;
            }
            (Attack::Omit, _) if self.host.omits() => return None,
            (Attack::Replay, _) => self.host.keep(to, &bytes),
            (Attack::WrongEndorsement | Attack::ForgedEndorsement, To::Client(client)) => {
                if let Some(Message::Endorsement(it)) = Message::decode(&bytes) {
                    self.endorse_wrong(client, &it);
                }
            }
            _ => {}
        }
        Some((to, bytes))
    }

    fn endorse_wrong(&mut self, client: u32, it: &Reply) {
        self.host.lies += 1;
        let nodes = match self.attack {
            Attack::ForgedEndorsement => (0..self.node().group.size()).collect(),
            _ => vec![self.host.own],
        };
        for node in nodes {
            let result = Ok(999_999_u64.to_be_bytes().to_vec());
            let forged = Reply { replica: node, result, ..it.clone() }.sign(&self.node().key);
            self.host.held.push((To::Client(client), Message::Endorsement(forged).encode()));
        }
    }

    /// Lies of its own accord.
    fn lie(&mut self) {
        match self.attack {
            Attack::Replay => self.host.replay(),
            Attack::Forge => self.forge(),
            Attack::EarlyTimeout if self.host.random.chance(20) => {
                let own = self.own_history();
                if let Some(timer) = own.armed.keys().next().copied() {
                    self.host.lies += 1;
                    self.node().step(Input::Timeout { timer });
                }
            }
            _ if self.host.cores[0].holds_steps => self.lie_in_a_step(),
            _ => {}
        }
    }

    /// Makes steps itself: honest ones, until it lies.
    fn lie_in_a_step(&mut self) {
        let own = self.host.own;
        match self.attack {
            Attack::WrongEffects => {
                while let Some(input) = self.next_input() {
                    let effects = self.run(&input);
                    self.say_wrong(input, effects);
                }
            }
            Attack::Equivocate => {
                while self.node().requests.len() < 2
                    && let Some(input) = self.next_message()
                {
                    let effects = self.run(&input);
                    self.say(&Step { input, effects });
                }
                if self.node().requests.len() > 1 {
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
                let inbox = &mut self.node().histories[own as usize].inbox;
                if let Some(waiting) = inbox.values_mut().find(|it| it.len() > 1) {
                    waiting.pop_front();
                    self.host.lies += 1;
                }
                while self.node().step_once() && !self.host.random.chance(20) {}
            }
            Attack::WrongTimeout => {
                self.host.lies += 1;
                let input = Input::Timeout { timer: 7 };
                let effects = self.run(&input);
                self.say(&Step { input, effects });
                self.node().holds_steps = false;
            }
            Attack::ForgedRequest => {
                self.host.lies += 1;
                let number = 1_000_000 + self.host.random.below(1000);
                let added = 5_000_u64.to_be_bytes().to_vec();
                let key = client_key(LIAR_CLIENT);
                let forged = Request::sign(&key, 1, number, ([0; 16], added));
                self.node().step(Input::Request(forged));
                self.node().holds_steps = false;
            }
            _ => {}
        }
    }

    fn next_message(&mut self) -> Option<Input> {
        let own = self.own_history();
        own.inbox.iter().find_map(|(from, waiting)| {
            let (counter, message) = waiting.front()?.clone();
            Some(Input::Message { from: *from, counter, message })
        })
    }

    fn next_input(&mut self) -> Option<Input> {
        let request =
            |liar: &mut Self| liar.node().requests.pop_first().map(|it| Input::Request(it.1));
        self.next_message().or_else(|| request(self))
    }

    fn run(&mut self, input: &Input) -> Vec<Effect> {
        if let Input::Request(request) = input {
            self.node().calls.begin(request);
        }
        self.own_history().run(input)
    }

    /// The liar's own view of its messages: they wait for their receivers.
    fn deliver(&mut self, counter: u64, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Send { to, message } = effect {
                let own = self.host.own;
                let inbox = &mut self.node().histories[*to as usize].inbox;
                let waiting = inbox.entry(own).or_default();
                waiting.push_back((counter, message.clone()));
            }
        }
    }

    fn say(&mut self, step: &Step) {
        if let Some((counter, said)) = self.node().attest(step) {
            self.node().publish(counter, said);
            self.deliver(counter, &step.effects);
        }
    }

    /// States a wrong answer, if there is one to give.
    fn say_wrong(&mut self, input: Input, mut effects: Vec<Effect>) {
        for effect in &mut effects {
            if let Effect::Reply { answer, .. } = effect {
                *answer = 999_999_u64.to_be_bytes().to_vec();
                self.host.lies += 1;
            }
        }
        let step = Step { input, effects };
        self.endorse_in_step(&step);
        self.say(&step);
    }

    /// Tells one node of one request, and the others of another in its stead.
    fn equivocate(&mut self) {
        let mut requests = std::mem::take(&mut self.node().requests).into_values();
        let (Some(one), Some(two)) = (requests.next(), requests.next()) else {
            return;
        };
        let (one, two) = (Input::Request(one), Input::Request(two));
        let mut fork = self.own_history().machine().clone();
        let other = crate::history::run(&mut fork, &two);
        let effects = self.run(&one);
        let one = self.node().attest(&Step { input: one, effects });
        let two = self.node().attest(&Step { input: two, effects: other });
        let (Some(one), Some(two)) = (one, two) else {
            return;
        };
        self.host.lies += 1;
        for to in (0..self.node().group.size()).filter(|it| *it != self.host.own) {
            let said = if to == self.host.friend { &one.1 } else { &two.1 };
            self.host.held.push((To::Node(to), Message::Step(said.clone()).encode()));
        }
    }

    /// Endorses the wrong answer of its own step.
    fn endorse_in_step(&mut self, step: &Step) {
        for effect in &step.effects {
            if let Effect::Reply { caller, number, answer } = effect
                && let Some(request) = self.node().calls.request(*caller, *number)
            {
                let (client, call) = (caller.client, (*number, request));
                let bytes = self.node().endorsement(client, call, answer.clone());
                self.host.held.push((To::Client(client), bytes));
            }
        }
    }

    /// Takes a message that nobody has sent: a later view begins with a log of its own.
    fn invent(&mut self, own: u32) {
        let size = self.node().group.size();
        let view = self.node().histories[own as usize].machine().view();
        let leads = |it: &u64| *it % u64::from(size) == u64::from(own);
        let later = (view + 1..).find(|it| !leads(it)).unwrap_or(view);
        let from = (later % u64::from(size)) as u32;
        let caller = Caller { client: 1, process: [0; 16], place: 0 };
        let message = crate::counter::begin(later, vec![(caller, 1_000_000, 5000)]);
        let input = Input::Message { from, counter: 1, message };
        self.host.lies += 1;
        let effects = self.run(&input);
        self.say(&Step { input, effects });
    }

    /// Says in another node's name what that node has not said: a wrong answer.
    fn forge(&mut self) {
        let group = self.node().group.clone();
        let victim = (self.host.friend + 1) % group.size();
        let victim = if victim == self.host.own { (victim + 1) % group.size() } else { victim };
        let victim = if victim == self.host.friend { self.host.own } else { victim };
        let counter = self.node().histories[victim as usize].taken + 1;
        let Some(timer) = self.node().histories[victim as usize].armed.keys().next().copied()
        else {
            return;
        };
        if victim == self.host.own {
            return;
        }
        let body = encode(&Step { input: Input::Timeout { timer }, effects: Vec::new() });
        let forged = forged(group.stream, victim, (1, counter), body);
        self.host.lies += 1;
        self.host.held.push((To::Node(self.host.friend), Message::Step(forged).encode()));
    }
}
