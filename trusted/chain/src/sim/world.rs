// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run: nodes, clients, the trusted service of configurations, and the network between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use smt_replica::sim::{Process, processes};
use smt_replica::{Group, KeyValue, KeyValueOperation, Request};
use smt_simulation::{Bounds, Fate, Network, Random, Schedule};

use crate::accusation::{Accusation, Made};
use crate::client::Client;
use crate::configuration::Configuration;
use crate::message::Message;
use crate::node::{Node, Output};
use crate::sim::correct::{Correct, Habits, WithLog};
use crate::sim::group::{CLIENTS, LIAR_CLIENT, client_key, group, identity, reply_key};
use crate::sim::history::{History, Operation, Violation};
use crate::sim::liar::{Liar, To};
use crate::sim::scenario::Scenario;

/// When the network becomes honest, and when a run is given up.
const HONEST: u64 = 3000;
const END: u64 = 60_000;
/// How long a run goes on when all have their answers, and how long a tick is.
const SETTLE: u64 = 800;
const TICK: u64 = 20;
/// Operations of a client while the network is bad, and after.
const BAD_OPERATIONS: usize = 9;
const OPERATIONS: usize = 12;

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that happened at least once.
    pub events: BTreeSet<String>,
    /// The properties that do not hold.
    pub violations: Vec<Violation>,
}

enum Host {
    Correct(Correct),
    Liar(Box<Liar>),
}

enum Happening {
    Tick,
    Message(To, Option<u32>, Vec<u8>),
    /// A configuration reaches a node.
    Made(u32, Made),
}

/// Runs a scenario.
#[must_use]
pub fn run(scenario: &Scenario) -> Outcome {
    World::new(scenario).run()
}

struct World<'a> {
    scenario: &'a Scenario,
    random: Random,
    /// All that is random about kills, so that runs without have the numbers they had.
    kills: Random,
    group: Arc<Group>,
    schedule: Schedule<Happening>,
    network: Network,
    hosts: Vec<Host>,
    clients: Vec<Process<Client>>,
    history: History,
    has_liar_client: bool,
    events: BTreeSet<String>,
    /// The service: the newest configuration, and who has accused it.
    newest: u64,
    accusers: BTreeSet<u32>,
    /// The place up to which each node's log was looked at.
    seen: Vec<u64>,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let mut random = Random::new(scenario.seed ^ 0xc4a1);
        let group = Arc::new(group(scenario.nodes));
        let n = scenario.nodes;
        let bounds = Bounds { nodes: n, cuts: 4, cut: 1200, honest_from: HONEST };
        let network = Network::draw(&bounds, &mut random);
        let mut world = Self {
            scenario,
            schedule: Schedule::default(),
            network,
            hosts: Vec::new(),
            // In every fourth run clients have two processes, with several requests in progress.
            clients: processes(&CLIENTS, scenario.seed / 4 % 4 == 1, |client, last| {
                Client::new(group.clone(), client, client_key(client), last)
            }),
            history: History::default(),
            has_liar_client: random.chance(50),
            events: BTreeSet::new(),
            newest: 0,
            accusers: BTreeSet::new(),
            seen: vec![0; n as usize],
            kills: Random::new(scenario.seed ^ 0x1095),
            group: group.clone(),
            random,
        };
        for node in 0..n {
            let host = world.host(&group, node);
            world.hosts.extend(host);
        }
        world.schedule.at(TICK, Happening::Tick);
        world
    }

    fn host(&mut self, group: &Arc<Group>, number: u32) -> Option<Host> {
        let attack = self.scenario.liars.iter().find(|it| it.0 == number).map(|it| it.1);
        if attack.is_none() && self.scenario.has_logs {
            let seed = self.kills.next_u64();
            // In each second run devices are processes of their own, and are not killed.
            let has_process = !self.scenario.seed.is_multiple_of(2);
            let (is_eager, replaces_early) =
                (self.scenario.sends_early, self.scenario.replaces_early);
            let habits = Habits { is_eager, replaces_early, has_process };
            let logged = WithLog::new(group, number, seed, habits);
            return Some(Host::Correct(Correct::Logged(Box::new(logged))));
        }
        let devices = if attack.is_some() && self.scenario.is_rolled_back { 2 } else { 1 };
        let mut nodes = Vec::new();
        for _ in 0..devices {
            nodes.push(Node::new(group.clone(), identity(number), KeyValue::default()).ok()?);
        }
        match attack {
            Some(attack) => {
                let liar = Liar::new(attack, nodes, self.random.next_u64());
                Some(Host::Liar(Box::new(liar)))
            }
            None => nodes.pop().map(|it| Host::Correct(Correct::Plain(Box::new(it)))),
        }
    }

    fn run(mut self) -> Outcome {
        let mut done_at = None;
        while let Some(happening) = self.schedule.pop() {
            let now = self.schedule.now();
            match happening {
                Happening::Tick => self.tick(),
                Happening::Message(to, from, bytes) => self.deliver(&to, from, &bytes),
                Happening::Made(node, made) => self.configure(node, &made),
            }
            let is_over = done_at.is_some_and(|at| now > at + SETTLE) || now > END;
            if is_over || self.history.is_violated() {
                break;
            }
            let operations = &self.history.operations;
            let is_done = operations.len() == self.clients.len() * OPERATIONS
                && operations.iter().all(|it| it.ended.is_some());
            if done_at.is_none() && is_done && now > HONEST {
                done_at = Some(now);
            }
        }
        self.judge_liars();
        let violations = self.history.judge();
        Outcome { events: self.events, violations }
    }

    /// Liars that have left proof are found by all correct nodes.
    fn judge_liars(&mut self) {
        for (number, host) in (0..).zip(&self.hosts) {
            let Host::Liar(liar) = host else {
                continue;
            };
            if liar.lies == 0 {
                continue;
            }
            self.events.insert(format!("{:?}", liar.attack));
            let correct = self.hosts.iter().filter_map(|it| match it {
                Host::Correct(correct) => correct.node(),
                Host::Liar(_) => None,
            });
            let is_found = { correct }.all(|it| it.faulty().any(|it| it == number));
            if is_found {
                self.events.insert("LiarFound".to_owned());
            } else if liar.attack.leaves_proof() && liar.cores[0].own_track().is_faulty {
                self.history.violate(Violation::NotFound(number));
            }
        }
    }

    fn tick(&mut self) {
        for number in 0..self.hosts.len() {
            match &mut self.hosts[number] {
                Host::Correct(node) => node.tick(),
                Host::Liar(liar) => liar.tick(),
            }
            self.look(number);
            if let Host::Correct(node) = &mut self.hosts[number] {
                let happened = node.begin_log_anew(self.schedule.now() <= HONEST);
                self.events.extend(happened.into_iter().map(str::to_owned));
            }
            self.flush(number);
        }
        self.kill();
        for process in 0..self.clients.len() {
            self.client_tick(process);
        }
        if self.has_liar_client && self.schedule.now() < HONEST && self.random.chance(10) {
            self.lie_as_client();
        }
        self.schedule.at(self.schedule.now() + TICK, Happening::Tick);
    }

    /// Kills a node, or all of them, while the network is bad.
    fn kill(&mut self) {
        if !self.scenario.has_logs || self.schedule.now() > HONEST || !self.kills.chance(6) {
            return;
        }
        let all = self.kills.chance(30);
        let victim = self.kills.below(self.hosts.len() as u64) as usize;
        for (number, host) in self.hosts.iter_mut().enumerate() {
            if let Host::Correct(correct) = host
                && (all || number == victim)
            {
                correct.kill();
                self.events.insert(if all { "KillOfAll" } else { "Kill" }.to_owned());
            }
        }
    }

    fn client_tick(&mut self, process: usize) {
        let now = self.schedule.now();
        let (client, count) = (self.clients[process].number, self.clients[process].begun);
        let may = count < BAD_OPERATIONS || (now > HONEST && count < OPERATIONS);
        let begins = may && self.random.chance(20);
        let (operation, nonce) = (self.operation(), self.random.nonce());
        let it = &mut self.clients[process];
        it.tick();
        let begun = if begins { it.begin(nonce, operation.clone()) } else { None };
        if let Some(number) = begun {
            let request = Request::sign(&client_key(client), client, number, (nonce, operation));
            let digest = request.digest();
            let operation = Operation { client, number, digest, begun: now, ended: None };
            self.history.operations.push(operation);
        }
        let outputs = it.outputs();
        outputs.into_iter().for_each(|it| self.send_output(it, None));
    }

    fn operation(&mut self) -> Vec<u8> {
        let key = vec![b'a' + self.random.below(3) as u8];
        let value = self.random.below(1000).to_be_bytes().to_vec();
        match self.random.below(5) {
            0 | 1 => KeyValueOperation::Get(key).encode(),
            2 | 3 => KeyValueOperation::Put(key, value).encode(),
            _ => KeyValueOperation::Delete(key).encode(),
        }
    }

    /// A client that lies: one number for several requests, signatures that are none, operations
    /// that are none or too long.
    fn lie_as_client(&mut self) {
        self.events.insert("ByzantineClient".to_owned());
        let number = self.schedule.now();
        for to in 0..self.scenario.nodes {
            let operation = match self.random.below(4) {
                0 => vec![7; 65],
                1 => vec![255; 3],
                _ => self.operation(),
            };
            let body = (self.random.nonce(), operation);
            let mut request = Request::sign(&client_key(LIAR_CLIENT), LIAR_CLIENT, number, body);
            if self.random.chance(20) {
                request.client = CLIENTS[0];
            }
            self.send(To::Node(to), None, Message::Request(request).encode());
        }
    }

    fn deliver(&mut self, to: &To, from: Option<u32>, bytes: &[u8]) {
        match to {
            To::Node(number) => {
                let number = *number as usize;
                match &mut self.hosts[number] {
                    Host::Correct(node) => node.receive(bytes),
                    Host::Liar(liar) => liar.receive(from, bytes),
                }
                self.look(number);
                self.flush(number);
            }
            To::Client(client) => {
                let now = self.schedule.now();
                for process in self.clients.iter_mut().filter(|it| it.number == *client) {
                    if let Some(completion) = process.receive(bytes) {
                        self.history.completed(*client, completion, now);
                    }
                }
            }
            To::Service(number) => {
                if let Some(from) = from {
                    self.accuse(from, *number);
                }
            }
        }
    }

    /// The service: f + 1 accusations of the newest configuration bring the next one. Liars alone
    /// bring none.
    fn accuse(&mut self, from: u32, number: u64) {
        if number != self.newest {
            return;
        }
        self.accusers.insert(from);
        let group = &self.group;
        if self.accusers.len() < group.quorum() {
            return;
        }
        let accusers = std::mem::take(&mut self.accusers).into_iter();
        let accusations =
            accusers.map(|it| Accusation::sign(group, it, number, &reply_key(it))).collect();
        self.newest += 1;
        let made = Made { number: self.newest, accusations };
        let configuration = Configuration::of_number(self.newest, self.scenario.nodes);
        // The service itself is reliable, and slow at times.
        let is_correct = |it: &Host| matches!(it, Host::Correct(_));
        let first = self.hosts.iter().position(is_correct);
        for node in 0..self.scenario.nodes {
            // Nodes with logs have the proof, and tell those that have not heard of it.
            let is_told = !self.scenario.has_logs || first == Some(node as usize);
            if !is_told && self.kills.chance(40) {
                continue;
            }
            let at = self.schedule.now() + 1 + self.random.below(60);
            self.schedule.at(at, Happening::Made(node, made.clone()));
        }
        // Clients ask it now and then, and may be behind.
        if self.random.chance(50) {
            self.clients.iter_mut().for_each(|it| it.client.configure(configuration.clone()));
        }
    }

    fn configure(&mut self, number: u32, made: &Made) {
        match &mut self.hosts[number as usize] {
            Host::Correct(node) => node.configure(made, self.scenario.nodes),
            Host::Liar(liar) => {
                let configuration = Configuration::of_number(made.number, self.scenario.nodes);
                liar.cores.iter_mut().for_each(|it| it.configure(configuration.clone()));
            }
        }
        self.look(number as usize);
        self.flush(number as usize);
    }

    /// Looks at what a correct node has committed, and whom it takes for a liar.
    fn look(&mut self, number: usize) {
        let Host::Correct(correct) = &self.hosts[number] else {
            return;
        };
        let Some(node) = correct.node() else {
            return;
        };
        let happened = [
            (node.metrics().configuration > 0, "Reconfiguration"),
            (node.metrics().left_out > 0, "ShortLog"),
            (node.metrics().reissued > 0, "Reissue"),
        ];
        self.events.extend(happened.into_iter().filter(|it| it.0).map(|it| it.1.to_owned()));
        for faulty in node.faulty() {
            if !self.scenario.liars.iter().any(|it| it.0 == faulty) {
                self.history.violate(Violation::Slandered(faulty));
            }
        }
        while self.seen[number] < node.replied {
            let place = self.seen[number] + 1;
            if let Some(entry) = node.history.get(&place) {
                self.history.committed(place, &entry.request, &entry.answer);
            }
            self.seen[number] = place;
        }
    }

    fn flush(&mut self, number: usize) {
        let own = Some(number as u32);
        match &mut self.hosts[number] {
            Host::Correct(node) => {
                let outputs = node.outputs();
                outputs.into_iter().for_each(|it| self.send_output(it, own));
            }
            Host::Liar(liar) => {
                let sent = liar.outputs();
                sent.into_iter().for_each(|(to, bytes)| self.send(to, own, bytes));
            }
        }
    }

    fn send_output(&mut self, output: Output, from: Option<u32>) {
        match output {
            Output::Node(to, bytes) => self.send(To::Node(to), from, bytes),
            Output::Client(to, bytes) => self.send(To::Client(to), from, bytes),
            Output::Accuse(number) => self.send(To::Service(number), from, Vec::new()),
            Output::Nodes(bytes) => {
                for to in (0..self.scenario.nodes).filter(|to| Some(*to) != from) {
                    self.send(To::Node(to), from, bytes.clone());
                }
            }
        }
    }

    fn send(&mut self, to: To, from: Option<u32>, bytes: Vec<u8>) {
        let pair = match (&to, from) {
            (To::Node(to), Some(from)) if *to != from => Some((*to, from)),
            _ => None,
        };
        match self.network.send(self.schedule.now(), pair, &mut self.random) {
            Fate::Cut => {
                self.events.insert("Partition".to_owned());
            }
            Fate::Lost => {}
            Fate::Arrives { at, again } => {
                if let Some(again) = again {
                    let happening = Happening::Message(to.clone(), from, bytes.clone());
                    self.schedule.at(again, happening);
                }
                self.schedule.at(at, Happening::Message(to, from, bytes));
            }
        }
    }
}
