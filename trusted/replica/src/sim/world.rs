// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run: nodes, clients, and the network between them.

use std::collections::{BTreeMap, BTreeSet};

use smt_attestor::OutlivingDevice;
use smt_simulation::{Bounds, Fate, Network, Random, Schedule};

use crate::any_service::ServiceKind;
use crate::node::Node;
use crate::output::Output;
use crate::request::Request;
use crate::service::KeyValueOperation;
use crate::sim::client::{Process, processes};
use crate::sim::coalition::{Coalition, Lie};
use crate::sim::conditions::Conditions;
use crate::sim::effects::Effects;
use crate::sim::history::{History, Operation, Violation};
use crate::sim::host::Host;
use crate::sim::keys::{CLIENTS, LIAR_CLIENT, client_key};
use crate::sim::liar::Liar;
use crate::sim::model::Model;
use crate::sim::plan::Plan;
use crate::sim::report::Outcome;
use crate::sim::system::{System, To, messages};

/// How long a run goes on when all have their answers, and how long a tick is.
const SETTLE: u64 = 800;
const TICK: u64 = 20;

/// Something that happens at a time.
pub enum Happening<S: System> {
    /// A message arrives, of this node or of a client.
    Message(To, Option<u32>, Vec<u8>),
    /// Time passes.
    Tick,
    /// A node crashes, and loses all.
    Crash(u32),
    /// A node stops for good.
    Stop(u32),
    /// A node that has crashed restarts.
    Restart(u32),
    /// Some nodes with logs are killed at one moment.
    Kill(Vec<u32>),
    /// A node that was killed goes on.
    Resume(u32),
    /// A message of liars that work together arrives.
    Lie(Lie<S>),
    /// Something of this system alone.
    Of(S::Happening),
}

/// A run of a system.
pub struct World<S: System> {
    /// The part of the run that this system alone has.
    pub system: S,
    /// The conditions of the run.
    pub conditions: Conditions,
    /// All that is random in nodes, clients and the network.
    pub random: Random,
    /// All that is random about logs and kills, so that runs without them stay as they are.
    pub kills: Random,
    /// All that is to happen.
    pub schedule: Schedule<Happening<S>>,
    network: Network,
    /// The nodes.
    pub hosts: Vec<Host<S>>,
    /// The processes of correct clients.
    pub clients: Vec<Process<S::Client>>,
    /// All that clients and correct nodes have seen.
    pub history: History,
    /// How much of each node's own history was looked at.
    pub seen: Vec<usize>,
    /// Liars that work together.
    pub(super) coalition: Option<Coalition<S>>,
    /// The lies that each node has heard, and what they have changed there.
    pub(super) effects: Vec<Effects<S>>,
    pub(super) devices: BTreeMap<(u32, u64), OutlivingDevice>,
    has_liar_client: bool,
    events: BTreeSet<String>,
    /// Operations of a client, in all.
    operations: usize,
    /// Whether the last part of the run has begun.
    is_closing: bool,
}

/// Runs a scenario.
pub fn run<S: System>(
    system: S,
    conditions: Conditions,
    plan: Option<&Plan<S::Step>>,
) -> Outcome<Violation> {
    World::new(system, conditions, plan).run()
}

impl<S: System> World<S> {
    fn new(system: S, conditions: Conditions, plan: Option<&Plan<S::Step>>) -> Self {
        let mut random = Random::new(conditions.seed ^ 0xb3f7);
        let Conditions { seed, nodes, ref course, .. } = conditions;
        let bounds = Bounds { nodes, cuts: 4, cut: course.cut, honest_from: course.honest };
        let network = Network::draw(&bounds, &mut random);
        let mut world = Self {
            // In every fourth run clients have two processes, with several requests in progress.
            clients: processes(&CLIENTS, seed / 4 % 4 == 1, |client, last| {
                system.client(client, last)
            }),
            system,
            schedule: Schedule::default(),
            network,
            hosts: Vec::new(),
            history: History::default(),
            has_liar_client: random.chance(50),
            events: BTreeSet::new(),
            kills: Random::new(seed ^ 0xd15c),
            coalition: plan.map(|it| Coalition::new(it, nodes, seed)),
            effects: (0..nodes).map(|_| Effects::default()).collect(),
            devices: BTreeMap::new(),
            seen: vec![0; nodes as usize],
            operations: course.operations,
            is_closing: false,
            conditions,
            random,
        };
        for node in 0..nodes {
            let host = S::host(&mut world, node);
            world.hosts.push(host);
        }
        S::plan(&mut world);
        for it in world.conditions.course.crashes.clone() {
            world.schedule.at(it.at, Happening::Crash(it.node));
            world.schedule.at(it.until, Happening::Restart(it.node));
        }
        if world.conditions.has_logs {
            world.plan_kills();
        }
        world.schedule.at(TICK, Happening::Tick);
        world
    }

    /// Notes that something has happened in this run.
    pub fn note(&mut self, event: impl Into<String>) {
        self.events.insert(event.into());
    }

    fn run(mut self) -> Outcome<Violation> {
        let mut done_at = None;
        while let Some(happening) = self.schedule.pop() {
            match happening {
                Happening::Tick => self.tick(),
                Happening::Message(to, from, bytes) => self.deliver(to, from, &bytes),
                Happening::Crash(node) => self.crash(node),
                Happening::Stop(node) => self.stop(node),
                Happening::Restart(node) => self.restart(node),
                Happening::Kill(nodes) => nodes.into_iter().for_each(|it| self.kill(it)),
                Happening::Resume(node) => self.resume(node),
                Happening::Lie(lie) => self.deliver_lie(&lie),
                Happening::Of(it) => S::happen(&mut self, it),
            }
            let now = self.schedule.now();
            // Requests of a client that lies may be executed late, and have to come to all.
            let is_settled = done_at.is_some_and(|at| now > at + SETTLE);
            let is_done = is_settled && self.behind().is_none();
            if is_done || now > self.conditions.course.end || self.history.is_violated() {
                break;
            }
            if done_at.is_none() && self.is_done() && !self.closes() {
                done_at = Some(now);
            }
        }
        self.finish()
    }

    fn is_done(&self) -> bool {
        self.schedule.now() > self.conditions.course.quiet()
            && self.clients.iter().all(|it| !it.is_waiting() && it.begun == self.operations)
            && self.behind().is_none()
    }

    /// A correct node that has not come as far as another one, if it must.
    fn behind(&self) -> Option<u32> {
        let course = &self.conditions.course;
        if !course.has_to_catch_up {
            return None;
        }
        let most = self.hosts.iter().filter_map(Host::correct).map(S::executed).max();
        let is_behind = |host: &Host<S>| {
            let is_with_others = |it: &S::Node| Some(S::executed(it)) >= most && S::counts(it);
            !host.is_faulty() && !host.correct().is_some_and(is_with_others)
        };
        let mut behind = (0..).zip(&self.hosts).filter(|it| is_behind(it.1)).map(|it| it.0);
        behind.next()
    }

    /// Begins the last part of the run, once: some nodes stop for good, and liars are silent. All
    /// that remain are needed.
    fn closes(&mut self) -> bool {
        let course = &self.conditions.course;
        let Some(stops) = course.stops.clone().filter(|_| !self.is_closing) else {
            return false;
        };
        self.is_closing = true;
        self.operations += course.last_operations;
        for node in stops {
            self.stop(node);
        }
        self.coalition.iter_mut().for_each(Coalition::fall_silent);
        self.note("Closing");
        true
    }

    fn finish(mut self) -> Outcome<Violation> {
        for node in 0..self.hosts.len() {
            self.look(node);
            if let Host::Liar(liar) = &self.hosts[node]
                && let Some(attack) = liar.has_lied()
            {
                self.note(attack);
            }
        }
        S::finish(&mut self);
        self.finish_plan();
        if let Some(node) = self.behind().filter(|_| !self.history.is_violated()) {
            self.history.violate(Violation::Behind(node));
        }
        let violations = self.history.judge(Model::new(self.conditions.service, S::EXECUTES_ONCE));
        Outcome { events: self.events, violations }
    }

    fn tick(&mut self) {
        for node in 0..self.hosts.len() {
            match &mut self.hosts[node] {
                Host::Correct(node) => node.tick(),
                Host::Logged(logged) => logged.tick(),
                Host::Liar(liar) => liar.tick(),
                Host::Together | Host::Down | Host::Stopped | Host::Killed(_) => {}
            }
            self.flush(node);
            self.begin_log_anew(node as u32);
        }
        self.coalition_tick();
        for process in 0..self.clients.len() {
            self.client_tick(process);
        }
        let is_honest = self.schedule.now() >= self.conditions.course.honest;
        if self.has_liar_client && !is_honest && self.random.chance(15) {
            self.lie_as_client();
        }
        self.schedule.at(self.schedule.now() + TICK, Happening::Tick);
    }

    fn client_tick(&mut self, process: usize) {
        let course = &self.conditions.course;
        let (client, count) = (self.clients[process].number, self.clients[process].begun);
        let is_honest = self.schedule.now() > course.honest;
        let may = count < course.bad_operations || (is_honest && count < self.operations);
        let operation = self.operation(client, count);
        let begins = may && self.random.chance(25);
        let nonce = self.random.nonce();
        let it = &mut self.clients[process];
        it.tick();
        let begun = if begins { it.begin(nonce, operation.clone()) } else { None };
        if let Some(number) = begun {
            let digest = S::digest(client, number, (nonce, operation));
            let begun = self.schedule.now();
            self.history.operations.push(Operation { client, number, digest, begun, ended: None });
        }
        let outputs = self.clients[process].outputs();
        outputs.into_iter().for_each(|it| self.send_output(it, None));
    }

    fn operation(&mut self, client: u32, count: usize) -> Vec<u8> {
        if self.conditions.service == ServiceKind::Counter {
            return self.random.below(10).to_be_bytes().to_vec();
        }
        let key = vec![self.random.below(3) as u8];
        let value = vec![client as u8, count as u8];
        match self.random.below(4) {
            0 => KeyValueOperation::Get(key),
            1 => KeyValueOperation::Delete(key),
            _ => KeyValueOperation::Put(key, value),
        }
        .encode()
    }

    /// A client that lies: one number for two requests, signatures that are none, and anything.
    fn lie_as_client(&mut self) {
        self.note("ByzantineClient");
        let key = client_key(LIAR_CLIENT);
        let number = self.schedule.now();
        for to in 0..self.conditions.nodes {
            let size = if self.random.chance(10) { 5000 } else { 8 };
            let body = (self.random.nonce(), vec![self.random.below(5) as u8; size]);
            let mut request = Request::sign(&key, LIAR_CLIENT, number, body);
            if self.random.chance(20) {
                request.client = CLIENTS[0];
            }
            self.send(To::Node(to), None, S::request(request));
        }
    }

    /// A message arrives.
    pub fn deliver(&mut self, to: To, from: Option<u32>, bytes: &[u8]) {
        match to {
            To::Node(node) => self.deliver_to_node(node, from, bytes),
            To::Client(client) => {
                let now = self.schedule.now();
                for process in self.clients.iter_mut().filter(|it| it.number == client) {
                    if let Some(completion) = process.receive(bytes) {
                        self.history.completed(client, completion, now);
                    }
                }
            }
            To::Service(number) => from.into_iter().for_each(|it| S::ask_service(self, it, number)),
        }
    }

    fn deliver_to_node(&mut self, number: u32, from: Option<u32>, bytes: &[u8]) {
        let node = number as usize;
        match &mut self.hosts[node] {
            Host::Correct(it) => S::receive(it, bytes),
            Host::Logged(logged) => logged.receive(bytes),
            Host::Liar(liar) => liar.receive(from, bytes),
            Host::Together => return self.tell_coalition(number, from, bytes),
            Host::Down | Host::Stopped | Host::Killed(_) => return,
        }
        // Inputs of a node with a log become durable some at a time.
        let waits = matches!(self.hosts[node], Host::Logged(_)) && self.kills.chance(40);
        if !waits {
            self.flush(node);
            self.look(node);
        }
    }

    /// Sends all that a node wants sent.
    pub fn flush(&mut self, node: usize) {
        let own = Some(node as u32);
        let outputs = match &mut self.hosts[node] {
            Host::Correct(it) => {
                if it.failure().is_some() {
                    self.history.violate(Violation::Stopped(node as u32));
                }
                it.outputs()
            }
            Host::Logged(logged) => match self.conditions.sends_before_sync {
                true => logged.outputs_before_commit(),
                false => logged.commit().unwrap_or_else(|_| {
                    self.history.violate(Violation::Stopped(node as u32));
                    Vec::new()
                }),
            },
            Host::Liar(liar) => {
                let sent = liar.outputs();
                return sent.into_iter().for_each(|(to, bytes)| self.send(to, own, bytes));
            }
            Host::Together | Host::Down | Host::Stopped | Host::Killed(_) => return,
        };
        outputs.into_iter().for_each(|it| self.send_output(it, own));
    }

    fn send_output(&mut self, output: Output<S::Asks>, from: Option<u32>) {
        for (to, bytes) in messages::<S>(output, from, self.conditions.nodes) {
            self.send(to, from, bytes);
        }
    }

    fn send(&mut self, to: To, from: Option<u32>, bytes: Vec<u8>) {
        let pair = match (to, from) {
            (To::Node(to), Some(from)) if to != from => Some((to, from)),
            _ => None,
        };
        if pair.is_some_and(|it| self.is_cut(it)) {
            return;
        }
        match self.network.send(self.schedule.now(), pair, &mut self.random) {
            Fate::Cut => self.note("Partition"),
            Fate::Lost => {}
            Fate::Arrives { at, again } => {
                if let Some(again) = again {
                    self.schedule.at(again, Happening::Message(to, from, bytes.clone()));
                }
                self.schedule.at(at, Happening::Message(to, from, bytes));
            }
        }
    }

    /// Whether liars cut two nodes off from each other.
    fn is_cut(&mut self, (one, other): (u32, u32)) -> bool {
        self.coalition.as_mut().is_some_and(|it| it.parts(one, other))
    }

    fn crash(&mut self, node: u32) {
        self.look(node as usize);
        self.hosts[node as usize] = Host::Down;
        self.seen[node as usize] = 0;
        self.note("Crash");
    }

    fn stop(&mut self, node: u32) {
        self.look(node as usize);
        self.hosts[node as usize] = Host::Stopped;
        self.note("Stop");
    }

    fn restart(&mut self, node: u32) {
        self.hosts[node as usize] = S::restart(self, node);
        self.flush(node as usize);
    }
}
