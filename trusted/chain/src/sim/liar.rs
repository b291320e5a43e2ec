// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose host lies. Its device is genuine.

use smt_replica::sim::{LIAR_CLIENT, LyingHost, To, client_key, forged};
use smt_replica::{KeyValue, KeyValueOperation, Request};

use crate::configuration::Configuration;
use crate::message::{Message, Reference, Statement, encode};
use crate::node::Node;
use crate::sim::attack::Attack;
use crate::sim::system::Chain;

/// A liar: nodes that follow the protocol but for the lie.
pub(super) struct Liar {
    attack: Attack,
    host: LyingHost<Node<KeyValue>>,
    has_stopped: bool,
}

impl smt_replica::sim::Liar for Liar {
    fn receive(&mut self, from: Option<u32>, bytes: &[u8]) {
        self.host.hearing(from).for_each(|it| it.receive(bytes));
    }

    fn tick(&mut self) {
        if self.attack == Attack::Stop && (self.has_stopped || self.host.random.chance(4)) {
            self.has_stopped = true;
            self.host.lies += 1;
            return;
        }
        self.host.cores.iter_mut().for_each(Node::tick);
        for side in 0..self.host.cores.len() {
            self.lie(side);
        }
    }

    fn outputs(&mut self) -> Vec<(To, Vec<u8>)> {
        let mut sent = std::mem::take(&mut self.host.held);
        for side in 0..self.host.cores.len() {
            for (to, bytes) in self.host.sent::<Chain>(side) {
                sent.extend(self.alter(side, to, bytes));
            }
        }
        if self.has_stopped {
            sent.clear();
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
    pub(super) fn new(attack: Attack, mut cores: Vec<Node<KeyValue>>, seed: u64) -> Self {
        let (own, nodes) = cores.first().map_or((0, 1), |it| (it.own, it.group.replicas));
        for core in &mut cores {
            core.holds_orders = attack.is_of_head();
            let holds = [Attack::WrongOutput, Attack::WrongLink, Attack::BadQuorum];
            core.holds_proofs = holds.contains(&attack);
        }
        Self { attack, host: LyingHost::new(cores, own, nodes, seed), has_stopped: false }
    }

    /// The trusted service has made a configuration.
    pub(super) fn configure(&mut self, configuration: &Configuration) {
        self.host.cores.iter_mut().for_each(|it| it.configure(configuration.clone()));
    }

    /// Whether its stream has a lie, for all to see.
    pub(super) fn has_left_proof(&self) -> bool {
        let has_lied = self.host.lies > 0;
        let is_faulty = self.host.cores.first().is_some_and(|it| it.own_track().is_faulty);
        has_lied && self.attack.leaves_proof() && is_faulty
    }

    /// The fate of a message that the protocol has the node send.
    fn alter(&mut self, side: usize, to: To, bytes: Vec<u8>) -> Option<(To, Vec<u8>)> {
        match (self.attack, to) {
            (Attack::Silence | Attack::Equivocate, _) if self.host.withholds(to) => {
                self.host.lies += u64::from(self.attack == Attack::Silence);
                return None;
            }
            (Attack::Omit, _) if self.host.omits() => return None,
            (Attack::Replay, _) => self.host.keep(to, &bytes),
            (Attack::WrongReply | Attack::ForgedReply, To::Client(_)) => {
                if let Some(Message::Reply(reply)) = Message::decode(&bytes) {
                    let key = self.host.cores[side].reply_key.clone();
                    let is_forged = self.attack == Attack::ForgedReply;
                    let message = |it| Message::Reply(it).encode();
                    return Some((to, self.host.wrong(reply, &key, is_forged, message)));
                }
            }
            _ => {}
        }
        Some((to, bytes))
    }

    /// Lies of its own accord.
    fn lie(&mut self, side: usize) {
        let core = &self.host.cores[side];
        let track = core.own_track().clone();
        let configuration = track.at.0;
        let head = core.current().and_then(Configuration::head);
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
            Attack::Replay => self.host.replay(),
            Attack::Forge => self.forge(side, head),
            Attack::WrongOutput | Attack::WrongLink if !is_head && may_speak => {
                self.prove_falsely(side);
            }
            Attack::BreakPromise if !is_head && self.host.random.chance(10) => {
                self.break_promise(side, may_speak);
            }
            Attack::NotHead if !is_head && may_speak && self.host.random.chance(20) => {
                let place =
                    self.host.cores[side].logs.get(&configuration).map_or(0, |it| it.length());
                let request = self.own_request();
                let output = crate::log::output(&encode(&None::<Vec<u8>>));
                let place = place + 1;
                self.say(side, &Statement::Order { configuration, place, request, output });
            }
            Attack::BadQuorum => {
                self.open_alone(side);
                self.host.held.push((To::Service(track.promised), Vec::new()));
            }
            Attack::FalseAccuser => {
                self.host.lies += 1;
                self.host.held.push((To::Service(track.promised), Vec::new()));
            }
            _ => {}
        }
    }

    /// Has a statement attested, and sends it to all.
    fn say(&mut self, side: usize, statement: &Statement) {
        self.host.lies += 1;
        let core = &mut self.host.cores[side];
        if let Some(said) = core.attest(statement) {
            let bytes = Message::Statement(said.clone()).encode();
            self.host.held.extend((0..self.host.nodes).map(|to| (To::Node(to), bytes.clone())));
            core.publish(said);
        }
    }

    /// A request of a client that lies as well.
    fn own_request(&mut self) -> Request {
        self.host.own_request(|it| {
            let value = it.below(100).to_be_bytes().to_vec();
            KeyValueOperation::Put(b"liar".to_vec(), value).encode()
        })
    }

    fn lie_as_head(&mut self, side: usize) {
        let core = &mut self.host.cores[side];
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
        let old = log.entry(1 + self.host.random.below(log.length()));
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
                self.host.lies += 1;
                let core = &mut self.host.cores[side];
                let stories = [request, other].map(|it| order(core, &it));
                let said = stories.map(|it| core.attest(&it?));
                for to in (0..self.host.nodes).filter(|it| *it != core.own) {
                    let said = if to == self.host.friend { &said[0] } else { &said[1] };
                    let bytes = said.as_ref().map(|it| Message::Statement(it.clone()).encode());
                    self.host.held.extend(bytes.map(|it| (To::Node(to), it)));
                }
            }
            Attack::ForgedRequest => {
                let (number, nonce) = (request.number + 1, self.host.random.nonce());
                let operation = KeyValueOperation::Delete(b"a".to_vec()).encode();
                let key = client_key(LIAR_CLIENT);
                let forged = Request::sign(&key, request.client, number, (nonce, operation));
                let statement = order(&mut self.host.cores[side], &forged);
                statement.iter().for_each(|it| self.say(side, it));
            }
            _ => {
                let twice = old.unwrap_or_else(|| request.clone());
                let again = twice != request;
                let statement = order(&mut self.host.cores[side], &twice);
                statement.iter().for_each(|it| {
                    self.say(side, it);
                    self.host.lies -= u64::from(!again);
                });
            }
        }
    }

    /// Says in the head's name what the head has not said.
    fn forge(&mut self, side: usize, head: Option<u32>) {
        let core = &self.host.cores[side];
        let Some(head) = head.filter(|head| *head != core.own) else {
            return;
        };
        let configuration = core.own_track().at.0;
        let counter = core.streams[head as usize].track.counter + 1;
        let place = core.logs.get(&configuration).map_or(0, |it| it.length()) + 1;
        let stream = core.group.stream;
        let request = self.own_request();
        let output = crate::log::output(&encode(&None::<Vec<u8>>));
        let body = encode(&Statement::Order { configuration, place, request, output });
        let forged = forged(stream, head, (1, counter), body);
        self.host.lies += 1;
        let to = To::Node(self.host.friend);
        self.host.held.push((to, Message::Statement(forged).encode()));
    }

    /// Proves with something wrong.
    fn prove_falsely(&mut self, side: usize) {
        let core = &self.host.cores[side];
        let (configuration, last) = core.own_track().at;
        let place = last + 1;
        let Some(log) = core.logs.get(&configuration) else {
            return;
        };
        let Some(entry) = log.entry(place).filter(|_| self.host.random.chance(50)) else {
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
        let (configuration, last) = self.host.cores[side].own_track().at;
        let place = last + 1;
        if may_speak {
            let configuration = configuration + 1;
            self.say(side, &Statement::Freeze { configuration });
            self.host.lies -= 1;
            return;
        }
        let core = &self.host.cores[side];
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
        let core = &mut self.host.cores[side];
        let own = core.own;
        let promised = core.own_track().promised;
        let heads = core.configurations.range(promised.max(1)..);
        let made = { heads }.find(|it| it.1.head() == Some(own)).map(|it| *it.0);
        let not_made = self.host.random.chance(1).then_some(promised + 1);
        let Some(configuration) = made.or(not_made) else {
            return;
        };
        if core.logs.contains_key(&configuration) {
            return;
        }
        if configuration > promised {
            self.say(side, &Statement::Freeze { configuration });
        }
        let core = &self.host.cores[side];
        let Some(it) = core.own_track().freezes.get(&configuration) else {
            return;
        };
        let one = Reference { node: own, counter: it.counter, mac: it.mac };
        let size = if self.host.random.chance(50) { 1 } else { core.group.quorum() };
        let freezes = vec![one; size];
        self.say(side, &Statement::Open { configuration, freezes });
    }
}
