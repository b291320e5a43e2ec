// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run: nodes, clients, and the network between them.

mod judge;
mod kill;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smt_replica::sim::{Expected, Outcome, Report};
use smt_simulation::{Bounds, Fate, Network, Random, Schedule};

use crate::client::Client;
use crate::counter::Counter;
use crate::group::Group;
use crate::message::{Message, Request};
use crate::node::{Node, Output};
use crate::sim::correct::{Correct, Logged};
use crate::sim::group::{CLIENTS, LIAR_CLIENT, client_key, group, identity};
use crate::sim::liar::{Attack, Liar, To};
use crate::sim::scenario::Scenario;

/// When the network becomes honest, and when a run is given up.
const HONEST: u64 = 3000;
const END: u64 = 40_000;
/// How long a run goes on when all have their answers, and how long a tick is.
const SETTLE: u64 = 600;
const TICK: u64 = 20;
/// Operations of a client while the network is bad, and after.
const BAD_OPERATIONS: usize = 7;
const OPERATIONS: usize = 10;

/// A property that does not hold.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Violation {
    /// Two correct nodes executed different entries at this place.
    Differ(usize),
    /// A correct client's request was executed that the client never made.
    Invented(u32, u64),
    /// A correct client's request was executed twice.
    Twice(u32, u64),
    /// A correct client took an answer that the log does not give.
    WrongAnswer(u32, u64),
    /// An operation stands after one that began only when it had ended.
    Order(u32, u64),
    /// A correct node was taken for a liar.
    Slandered(u32),
    /// A correct node stopped.
    Stopped(u32),
    /// A correct node that was killed does not start from its log.
    LogRefused(u32),
    /// A liar that left proof in its stream was not found.
    NotFound(u32),
    /// A request had no answer long after the network became honest.
    Stuck(u32, u64),
}

struct Operation {
    client: u32,
    number: u64,
    begun: u64,
    ended: Option<(u64, Vec<u8>)>,
}

/// How much of a node's log was compared.
#[derive(Clone, Copy, Default)]
struct Compared {
    /// The view whose leader's log it was.
    latest: u64,
    length: usize,
}

enum Host {
    Correct(Correct),
    Liar(Box<Liar>),
    Stopped,
}

enum Happening {
    Message(To, Vec<u8>),
    Tick,
    Stop(u32),
    Kill(Vec<u32>),
    Resume(u32),
}

/// All that is counted beside attacks, and in runs with logs.
const EVENTS: [&str; 5] = ["Stop", "ViewChange", "Partition", "ByzantineClient", "LiarFound"];
const KILLS: [&str; 3] = ["Kill", "KillOfAll", "UnsyncedWrite"];

/// No run yet, of a search with logs or without.
pub fn report(has_logs: bool) -> Report<Violation> {
    let kills = KILLS.into_iter().filter(|_| has_logs);
    Report::new(
        Expected::attacks(Attack::ALL).chain(Expected::each(EVENTS.into_iter().chain(kills))),
    )
}

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome<Violation> {
    World::new(scenario).run()
}

struct World<'a> {
    scenario: &'a Scenario,
    random: Random,
    schedule: Schedule<Happening>,
    network: Network,
    hosts: Vec<Host>,
    clients: BTreeMap<u32, Client>,
    operations: Vec<Operation>,
    log: BTreeMap<usize, (u32, u64, u64)>,
    compared: Vec<Compared>,
    has_liar_client: bool,
    /// Draws what happens to nodes with logs alone.
    kills: Random,
    events: BTreeSet<String>,
    violations: Vec<Violation>,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let mut random = Random::new(scenario.seed ^ 0x7a3f);
        let group = Arc::new(group(scenario.nodes));
        let bounds = Bounds { nodes: scenario.nodes, cuts: 3, cut: 1000, honest_from: HONEST };
        let network = Network::draw(&bounds, &mut random);
        let mut world = Self {
            scenario,
            schedule: Schedule::default(),
            network,
            hosts: Vec::new(),
            clients: BTreeMap::new(),
            operations: Vec::new(),
            log: BTreeMap::new(),
            compared: vec![Compared::default(); scenario.nodes as usize],
            has_liar_client: random.chance(50),
            kills: Random::new(scenario.seed ^ 0x10c5),
            events: BTreeSet::new(),
            violations: Vec::new(),
            random,
        };
        for node in 0..scenario.nodes {
            let host = world.host(&group, node);
            world.hosts.push(host);
        }
        for client in CLIENTS {
            let it = Client::new(group.clone(), client, client_key(client), 0);
            world.clients.insert(client, it);
        }
        for node in &scenario.stops {
            let at = 200 + world.random.below(2500);
            world.schedule.at(at, Happening::Stop(*node));
        }
        if scenario.has_logs {
            world.plan_kills();
        }
        world.schedule.at(TICK, Happening::Tick);
        world
    }

    fn host(&mut self, group: &Arc<Group>, device: u32) -> Host {
        let nodes = self.scenario.nodes;
        let lie = self.scenario.liars.iter().find(|it| it.0 == device);
        if self.scenario.has_logs && lie.is_none() {
            let is_eager = self.scenario.sends_before_sync;
            let logged = Logged::new(group, device, self.kills.next_u64(), is_eager);
            return Host::Correct(Correct::Logged(Box::new(logged)));
        }
        let node = Node::new(group.clone(), identity(device), |own| Counter::new(own, nodes));
        let Ok(node) = node else {
            return Host::Stopped;
        };
        match lie {
            Some((_, attack)) => {
                Host::Liar(Box::new(Liar::new(*attack, node, self.random.next_u64())))
            }
            None => Host::Correct(Correct::Plain(Box::new(node))),
        }
    }

    fn run(mut self) -> Outcome<Violation> {
        let mut done_at = None;
        while let Some(happening) = self.schedule.pop() {
            match happening {
                Happening::Tick => self.tick(),
                Happening::Message(to, bytes) => self.deliver(&to, &bytes),
                Happening::Stop(node) => {
                    self.hosts[node as usize] = Host::Stopped;
                    self.events.insert("Stop".to_owned());
                }
                Happening::Kill(nodes) => self.kill(&nodes),
                Happening::Resume(node) => self.resume(node),
            }
            let is_over = done_at.is_some_and(|at| self.schedule.now() > at + SETTLE)
                || self.schedule.now() > END;
            if is_over || !self.violations.is_empty() {
                break;
            }
            let all = CLIENTS.len() * OPERATIONS;
            let is_done =
                self.operations.len() == all && self.operations.iter().all(|it| it.ended.is_some());
            if done_at.is_none() && is_done && self.schedule.now() > HONEST {
                done_at = Some(self.schedule.now());
            }
        }
        self.judge();
        Outcome { events: self.events, violations: self.violations }
    }

    fn tick(&mut self) {
        for at in 0..self.hosts.len() {
            match &mut self.hosts[at] {
                Host::Correct(node) => {
                    if !node.tick() {
                        self.violations.push(Violation::Stopped(at as u32));
                    }
                }
                Host::Liar(liar) => liar.tick(),
                Host::Stopped => {}
            }
            self.flush(at);
        }
        for client in CLIENTS {
            self.client_tick(client);
        }
        if self.has_liar_client && self.schedule.now() < HONEST && self.random.chance(10) {
            self.lie_as_client();
        }
        self.schedule.at(self.schedule.now() + TICK, Happening::Tick);
    }

    fn client_tick(&mut self, client: u32) {
        let count = self.operations.iter().filter(|it| it.client == client).count();
        let may = count < BAD_OPERATIONS || (self.schedule.now() > HONEST && count < OPERATIONS);
        let begins = may && self.random.chance(20);
        let added = 1 + self.random.below(9);
        let Some(it) = self.clients.get_mut(&client) else {
            return;
        };
        it.tick();
        if begins && !it.is_waiting() {
            let number = it.submit(added.to_be_bytes().to_vec());
            self.operations.push(Operation {
                client,
                number,
                begun: self.schedule.now(),
                ended: None,
            });
        }
        let outputs = it.outputs();
        outputs.into_iter().for_each(|it| self.send_output(it, None));
    }

    /// A client that lies: one number for several requests, and signatures that are none.
    fn lie_as_client(&mut self) {
        self.events.insert("ByzantineClient".to_owned());
        let number = self.schedule.now();
        for to in 0..self.scenario.nodes {
            let added = self.random.below(100).to_be_bytes().to_vec();
            let mut request = Request::sign(&client_key(LIAR_CLIENT), LIAR_CLIENT, number, added);
            if self.random.chance(20) {
                request.client = CLIENTS[0];
            }
            self.send(To::Node(to), None, Message::Request(request).encode());
        }
    }

    fn deliver(&mut self, to: &To, bytes: &[u8]) {
        match to {
            To::Node(at) => {
                let at = *at as usize;
                match &mut self.hosts[at] {
                    Host::Correct(node) => {
                        if !node.receive(bytes) {
                            self.violations.push(Violation::Stopped(at as u32));
                        }
                    }
                    Host::Liar(liar) => liar.receive(bytes),
                    Host::Stopped => return,
                }
                self.look(at);
                self.flush(at);
            }
            To::Client(client) => {
                let answer = self.clients.get_mut(client).and_then(|it| it.receive(bytes));
                let now = self.schedule.now();
                let last = self.operations.iter_mut().rev().find(|it| it.client == *client);
                if let (Some(answer), Some(operation)) = (answer, last) {
                    operation.ended = Some((now, answer));
                }
            }
        }
    }

    /// Looks at what a correct node has executed since, and whom it takes for a liar.
    fn look(&mut self, at: usize) {
        let Host::Correct(correct) = &self.hosts[at] else {
            return;
        };
        let Some(node) = correct.node() else {
            return;
        };
        if node.protocol().view() > 0 {
            self.events.insert("ViewChange".to_owned());
        }
        for faulty in node.faulty() {
            match self.scenario.liars.iter().any(|it| it.0 == faulty) {
                true => self.events.insert("LiarFound".to_owned()),
                false => {
                    self.violations.push(Violation::Slandered(faulty));
                    true
                }
            };
        }
        let (latest, executed) = (node.protocol().latest(), node.protocol().executed());
        // A new leader may have replaced the log.
        let is_same = self.compared[at].latest == latest;
        let length = if is_same { self.compared[at].length } else { 0 };
        self.compared[at] = Compared { latest, length: executed.len() };
        for (place, entry) in executed.iter().enumerate().skip(length) {
            if self.log.entry(place).or_insert(*entry) != entry {
                self.violations.push(Violation::Differ(place));
                return;
            }
        }
    }

    fn flush(&mut self, at: usize) {
        let own = Some(at as u32);
        match &mut self.hosts[at] {
            Host::Correct(node) => {
                let outputs = node.outputs();
                outputs.into_iter().for_each(|it| self.send_output(it, own));
            }
            Host::Liar(liar) => {
                let sent = liar.outputs();
                sent.into_iter().for_each(|(to, bytes)| self.send(to, own, bytes));
            }
            Host::Stopped => {}
        }
    }

    fn send_output(&mut self, output: Output, from: Option<u32>) {
        match output {
            Output::Node(to, bytes) => self.send(To::Node(to), from, bytes),
            Output::Client(to, bytes) => self.send(To::Client(to), from, bytes),
            Output::Nodes(bytes) => {
                for to in (0..self.scenario.nodes).filter(|to| Some(*to) != from) {
                    self.send(To::Node(to), from, bytes.clone());
                }
            }
        }
    }

    fn send(&mut self, to: To, from: Option<u32>, bytes: Vec<u8>) {
        let pair = match (&to, from) {
            (To::Node(to), Some(from)) => Some((*to, from)),
            _ => None,
        };
        match self.network.send(self.schedule.now(), pair, &mut self.random) {
            Fate::Cut => {
                self.events.insert("Partition".to_owned());
            }
            Fate::Lost => {}
            Fate::Arrives { at, again } => {
                if let Some(again) = again {
                    self.schedule.at(again, Happening::Message(to.clone(), bytes.clone()));
                }
                self.schedule.at(at, Happening::Message(to, bytes));
            }
        }
    }
}
