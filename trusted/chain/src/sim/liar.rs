// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose host lies. Its device is genuine.

use std::collections::VecDeque;

use smt_attestation::{Algorithm, DeviceId, Epoch, Header, Kind, StreamId};
use smt_attestor::Attested;
use smt_replica::{KeyValue, KeyValueOperation, Reply, Request};
use smt_simulation::Random;

use crate::message::{Message, Reference, Statement, encode};
use crate::node::{Node, Output};
use crate::sim::attack::Attack;
use crate::sim::group::{LIAR_CLIENT, client_key};

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) enum To {
    Node(u32),
    Client(u32),
    /// The trusted service: an accusation of this configuration.
    Service(u64),
}

/// A liar: nodes that follow the protocol but for the lie. With a device that was rolled back there
/// are two, which speak with one half of the others each.
pub(super) struct Liar {
    pub(super) attack: Attack,
    pub(super) cores: Vec<Node<KeyValue>>,
    random: Random,
    /// How often it lied.
    pub(super) lies: u64,
    nodes: u32,
    kept: VecDeque<(To, Vec<u8>)>,
    held: Vec<(To, Vec<u8>)>,
    number: u64,
    /// The peer that a silent liar still speaks with.
    friend: u32,
    has_stopped: bool,
}

impl Liar {
    pub(super) fn new(attack: Attack, mut cores: Vec<Node<KeyValue>>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (own, nodes) = cores.first().map_or((0, 1), |it| (it.own, it.group.replicas));
        for core in &mut cores {
            core.holds_orders = attack.is_of_head();
            let holds = [Attack::WrongOutput, Attack::WrongLink, Attack::BadQuorum];
            core.holds_proofs = holds.contains(&attack);
        }
        let shift = 1 + random.below(u64::from(nodes).max(2) - 1) as u32;
        let friend = (own + shift) % nodes;
        let (kept, held) = (VecDeque::new(), Vec::new());
        let (lies, number, has_stopped) = (0, 0, false);
        Self { attack, cores, random, lies, nodes, kept, held, number, friend, has_stopped }
    }

    /// Takes a message from a node, or from a client.
    pub(super) fn receive(&mut self, from: Option<u32>, bytes: &[u8]) {
        let several = self.cores.len() > 1;
        for (side, core) in self.cores.iter_mut().enumerate() {
            if !several || from.is_none_or(|from| from as usize % 2 == side) {
                core.receive(bytes);
            }
        }
    }

    pub(super) fn tick(&mut self) {
        if self.attack == Attack::Stop && (self.has_stopped || self.random.chance(4)) {
            self.has_stopped = true;
            self.lies += 1;
            return;
        }
        self.cores.iter_mut().for_each(Node::tick);
        for side in 0..self.cores.len() {
            self.lie(side);
        }
    }

    /// All that leaves the host.
    pub(super) fn outputs(&mut self) -> Vec<(To, Vec<u8>)> {
        let mut sent = std::mem::take(&mut self.held);
        let several = self.cores.len() > 1;
        for side in 0..self.cores.len() {
            let own = self.cores[side].own;
            for output in self.cores[side].outputs() {
                let all = match output {
                    Output::Node(to, bytes) => vec![(To::Node(to), bytes)],
                    Output::Client(to, bytes) => vec![(To::Client(to), bytes)],
                    Output::Accuse(number) => vec![(To::Service(number), Vec::new())],
                    Output::Nodes(bytes) => {
                        let others = (0..self.nodes).filter(|it| *it != own);
                        others.map(|it| (To::Node(it), bytes.clone())).collect()
                    }
                };
                for (to, bytes) in all {
                    let is_other = matches!(to, To::Node(it) if it as usize % 2 != side);
                    if !(several && is_other) {
                        sent.extend(self.alter(side, to, bytes));
                    }
                }
            }
        }
        if self.has_stopped {
            sent.clear();
        }
        if self.attack == Attack::Reorder && sent.len() > 1 {
            self.lies += 1;
            sent.reverse();
        }
        sent
    }

    /// The fate of a message that the protocol has the node send.
    fn alter(&mut self, side: usize, to: To, bytes: Vec<u8>) -> Option<(To, Vec<u8>)> {
        let is_friend = matches!(to, To::Node(it) if it == self.friend);
        match (self.attack, &to) {
            (Attack::Silence | Attack::Equivocate, To::Node(_)) if !is_friend => {
                self.lies += u64::from(self.attack == Attack::Silence);
                return None;
            }
            (Attack::Omit, _) if self.random.chance(50) => {
                self.lies += 1;
                return None;
            }
            (Attack::Replay, _) => {
                self.kept.push_back((to.clone(), bytes.clone()));
                if self.kept.len() > 200 {
                    self.kept.pop_front();
                }
            }
            (Attack::WrongReply | Attack::ForgedReply, To::Client(_)) => {
                if let Some(Message::Reply(reply)) = Message::decode(&bytes) {
                    self.lies += 1;
                    return Some((to, self.wrong(side, reply)));
                }
            }
            _ => {}
        }
        Some((to, bytes))
    }

    /// A wrong answer, the same from all liars.
    fn wrong(&mut self, side: usize, mut reply: Reply) -> Vec<u8> {
        reply.result = Ok(b"wrong".to_vec());
        if self.attack == Attack::ForgedReply {
            for replica in 0..self.nodes {
                let forged = Reply { replica, ..reply.clone() }.sign(&self.cores[side].reply_key);
                let bytes = Message::Reply(forged).encode();
                self.held.push((To::Client(reply.client), bytes));
            }
        }
        Message::Reply(reply.sign(&self.cores[side].reply_key)).encode()
    }

    /// Lies of its own accord.
    fn lie(&mut self, side: usize) {
        let core = &self.cores[side];
        let track = core.own_track().clone();
        let configuration = track.at.0;
        let head = core.current().and_then(crate::Configuration::head);
        let (is_head, may_speak) = (head == Some(core.own), track.promised <= configuration);
        if track.is_faulty && self.attack.leaves_proof() {
            return;
        }
        if self.attack.is_of_head() {
            if is_head && may_speak {
                self.lie_as_head(side);
            }
            return;
        }
        match self.attack {
            Attack::Replay if !self.kept.is_empty() => {
                for _ in 0..8 {
                    let at = self.random.below(self.kept.len() as u64) as usize;
                    self.held.extend(self.kept.get(at).cloned());
                }
                self.lies += 1;
            }
            Attack::Forge => self.forge(side, head),
            Attack::WrongOutput | Attack::WrongLink if !is_head && may_speak => {
                self.prove_falsely(side);
            }
            Attack::BreakPromise if !is_head && self.random.chance(10) => {
                self.break_promise(side, may_speak);
            }
            Attack::NotHead if !is_head && may_speak && self.random.chance(20) => {
                let place = self.cores[side].logs.get(&configuration).map_or(0, |it| it.length());
                let request = self.own_request();
                let output = crate::log::output(&encode(&None::<Vec<u8>>));
                let place = place + 1;
                self.say(side, &Statement::Order { configuration, place, request, output });
            }
            Attack::BadQuorum => {
                self.open_alone(side);
                self.held.push((To::Service(track.promised), Vec::new()));
            }
            Attack::FalseAccuser => {
                self.lies += 1;
                self.held.push((To::Service(track.promised), Vec::new()));
            }
            _ => {}
        }
    }

    /// Has a statement attested, and sends it to all.
    fn say(&mut self, side: usize, statement: &Statement) {
        self.lies += 1;
        let core = &mut self.cores[side];
        if let Some(said) = core.attest(statement) {
            let bytes = Message::Statement(said.clone()).encode();
            self.held.extend((0..self.nodes).map(|to| (To::Node(to), bytes.clone())));
            core.publish(said);
        }
    }

    /// A request of a client that lies as well.
    fn own_request(&mut self) -> Request {
        self.number += 1;
        let value = self.random.below(100).to_be_bytes().to_vec();
        let operation = KeyValueOperation::Put(b"liar".to_vec(), value).encode();
        let number = self.number * 1000 + self.random.below(1000);
        let body = (self.random.nonce(), operation);
        Request::sign(&client_key(LIAR_CLIENT), LIAR_CLIENT, number, body)
    }

    fn lie_as_head(&mut self, side: usize) {
        let core = &mut self.cores[side];
        let (configuration, _) = core.own_track().at;
        let Some(log) = core.logs.get(&configuration) else {
            return;
        };
        let next = core.pending.iter().find(|it| log.is_new(&it.request));
        let (next, place) = (next.map(|it| it.request.clone()), log.length() + 1);
        let Some(request) = next else {
            return;
        };
        // An old one: the last one twice changes nothing.
        let old = log.entry(1 + self.random.below(log.length()));
        let old = old.map(|it| it.request.clone());
        // The output that follows from the log, for the lie to be about the request alone.
        let order = |core: &mut Node<KeyValue>, request: &Request| {
            let log = core.logs.get(&configuration)?;
            let mut copy = log.begin(log.configuration.clone(), log.length())?;
            let output = copy.append(request.clone()).output;
            Some(Statement::Order { configuration, place, request: request.clone(), output })
        };
        match self.attack {
            Attack::Equivocate => {
                let other = self.own_request();
                self.lies += 1;
                let core = &mut self.cores[side];
                let stories = [request, other].map(|it| order(core, &it));
                let said = stories.map(|it| core.attest(&it?));
                for to in (0..self.nodes).filter(|it| *it != core.own) {
                    let said = if to == self.friend { &said[0] } else { &said[1] };
                    let bytes = said.as_ref().map(|it| Message::Statement(it.clone()).encode());
                    self.held.extend(bytes.map(|it| (To::Node(to), it)));
                }
            }
            Attack::ForgedRequest => {
                let (number, nonce) = (request.number + 1, self.random.nonce());
                let operation = KeyValueOperation::Delete(b"a".to_vec()).encode();
                let key = client_key(LIAR_CLIENT);
                let forged = Request::sign(&key, request.client, number, (nonce, operation));
                let statement = order(&mut self.cores[side], &forged);
                statement.iter().for_each(|it| self.say(side, it));
            }
            _ => {
                let twice = old.unwrap_or_else(|| request.clone());
                let again = twice != request;
                let statement = order(&mut self.cores[side], &twice);
                statement.iter().for_each(|it| {
                    self.say(side, it);
                    self.lies -= u64::from(!again);
                });
            }
        }
    }

    /// Says in the head's name what the head has not said.
    fn forge(&mut self, side: usize, head: Option<u32>) {
        let core = &self.cores[side];
        let Some(head) = head.filter(|head| *head != core.own) else {
            return;
        };
        let configuration = core.own_track().at.0;
        let counter = core.streams[head as usize].track.counter + 1;
        let place = core.logs.get(&configuration).map_or(0, |it| it.length()) + 1;
        let stream = StreamId(core.group.stream);
        let request = self.own_request();
        let output = crate::log::output(&encode(&None::<Vec<u8>>));
        let body = encode(&Statement::Order { configuration, place, request, output });
        let header = Header {
            algorithm: Algorithm::HmacSha256,
            kind: Kind::Message,
            stream,
            device: DeviceId(head),
            length: body.len() as u32,
            epoch: Epoch(1),
            counter,
        };
        let forged = Attested { attestation: [header.encode(), [0; 32]], body };
        self.lies += 1;
        self.held.push((To::Node(self.friend), Message::Statement(forged).encode()));
    }

    /// Proves with something wrong.
    fn prove_falsely(&mut self, side: usize) {
        let core = &self.cores[side];
        let (configuration, last) = core.own_track().at;
        let place = last + 1;
        let Some(log) = core.logs.get(&configuration) else {
            return;
        };
        let Some(entry) = log.entry(place).filter(|_| self.random.chance(50)) else {
            return;
        };
        let before = log.configuration.before(core.own).and_then(|it| log.proof(place, it));
        let output = if self.attack == Attack::WrongOutput { [9; 32] } else { entry.output };
        let before = match self.attack {
            Attack::WrongLink => [9; 32],
            _ => before.unwrap_or_default(),
        };
        self.say(side, &Statement::Proof { configuration, place, output, before });
    }

    /// Freezes, and goes on to prove.
    fn break_promise(&mut self, side: usize, may_speak: bool) {
        let (configuration, last) = self.cores[side].own_track().at;
        let place = last + 1;
        if may_speak {
            let configuration = configuration + 1;
            self.say(side, &Statement::Freeze { configuration });
            self.lies -= 1;
            return;
        }
        let core = &self.cores[side];
        let Some(log) = core.logs.get(&configuration) else {
            return;
        };
        let before = log.configuration.before(core.own).and_then(|it| log.proof(place, it));
        if let (Some(entry), Some(before)) = (log.entry(place), before) {
            let output = entry.output;
            self.say(side, &Statement::Proof { configuration, place, output, before });
        }
    }

    /// Opens a configuration that it heads, on its own FREEZE.
    fn open_alone(&mut self, side: usize) {
        let core = &mut self.cores[side];
        let own = core.own;
        let promised = core.own_track().promised;
        let heads = core.configurations.range(promised.max(1)..);
        let made = { heads }.find(|it| it.1.head() == Some(own)).map(|it| *it.0);
        let not_made = self.random.chance(1).then_some(promised + 1);
        let Some(configuration) = made.or(not_made) else {
            return;
        };
        if core.logs.contains_key(&configuration) {
            return;
        }
        if configuration > promised {
            self.say(side, &Statement::Freeze { configuration });
        }
        let core = &self.cores[side];
        let Some(it) = core.own_track().freezes.get(&configuration) else {
            return;
        };
        let one = Reference { node: own, counter: it.counter, mac: it.mac };
        let size = if self.random.chance(50) { 1 } else { core.group.quorum() };
        let freezes = vec![one; size];
        self.say(side, &Statement::Open { configuration, freezes });
    }
}
