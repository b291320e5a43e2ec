// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run: replicas, clients, and the network between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smt_attestation::{DeviceId, Epoch, Start};
use smt_attestor::OutlivingDevice;
use smt_journal::ModelDisk;
use smt_replica::sim::{Process, processes};
use smt_replica::{AnyService, Group, KeyValueOperation, Logged, Request, ServiceKind};
use smt_simulation::{Bounds, Fate, Network, Random, Schedule};

use crate::client::Client;
use crate::message::Message;
use crate::replica::{Output, Replica};
use crate::sim::closing::Effects;
use crate::sim::coalition::{Coalition, Lie};
use crate::sim::group::{CLIENTS, LIAR_CLIENT, client_key, group, identity};
use crate::sim::history::{History, Operation, Violation};
use crate::sim::liar::{Liar, To};
use crate::sim::report::Event;
use crate::sim::scenario::Scenario;

/// How long a run goes on when all have their answers, and how long a tick is.
const SETTLE: u64 = 800;
const TICK: u64 = 20;

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that happened at least once.
    pub events: BTreeSet<Event>,
    /// The properties that do not hold.
    pub violations: Vec<Violation>,
}

pub(super) enum Node {
    Correct(Box<Replica<AnyService>>),
    /// A correct replica with a log on a disk.
    Durable(Box<Logged<Replica<AnyService>, ModelDisk>>),
    Liar(Box<Liar>),
    /// A liar of the coalition.
    Together,
    Down,
    /// A replica that was killed, and its disk as the crash has left it.
    Killed(ModelDisk),
}

impl Node {
    /// The correct replica that this node is, if it runs.
    pub(super) fn correct(&self) -> Option<&Replica<AnyService>> {
        match self {
            Self::Correct(replica) => Some(replica),
            Self::Durable(durable) => Some(durable.node()),
            Self::Liar(_) | Self::Together | Self::Down | Self::Killed(_) => None,
        }
    }
}

pub(super) enum Happening {
    Message(To, Option<u32>, Vec<u8>),
    Lie(Lie),
    Tick,
    Crash(u32),
    Restart(u32),
    /// Some replicas with logs are killed at one moment.
    Kill(Vec<u32>),
    Resume(u32),
}

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome {
    World::new(scenario).run()
}

pub(super) struct World<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) group: Arc<Group>,
    pub(super) random: Random,
    pub(super) schedule: Schedule<Happening>,
    network: Network,
    pub(super) nodes: Vec<Node>,
    pub(super) epochs: Vec<u64>,
    pub(super) clients: Vec<Process<Client>>,
    pub(super) history: History,
    has_liar_client: bool,
    pub(super) events: BTreeSet<Event>,
    /// All that is random about logs and kills, so that runs without have the numbers they had.
    pub(super) kills: Random,
    /// Devices that outlive their replicas, by number and epoch.
    pub(super) devices: BTreeMap<(u32, u64), OutlivingDevice>,
    /// How much of each replica's own history was looked at.
    pub(super) seen: Vec<usize>,
    /// Liars that work together.
    pub(super) coalition: Option<Coalition>,
    /// The lies that each replica has heard, and what they have changed there.
    pub(super) effects: Vec<Effects>,
    /// Operations of a client, in all.
    pub(super) operations: usize,
    /// Whether the last part of the run has begun.
    pub(super) is_closing: bool,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let mut random = Random::new(scenario.seed ^ 0xb3f7);
        let mut group = group(scenario.replicas);
        // In two of three runs no batch waits: more of them are under way when something fails.
        if !scenario.seed.is_multiple_of(3) {
            group.options.pipeline = group.options.window;
        }
        // In every second run little is kept, and who was away needs the checkpoints of streams.
        if scenario.seed / 2 % 2 == 1 {
            group.options.retained = 1;
        }
        group.options = scenario.course.options.unwrap_or(group.options);
        let group = Arc::new(group);
        let n = scenario.replicas;
        let bounds = Bounds {
            nodes: n,
            cuts: 4,
            cut: scenario.course.cut,
            honest_from: scenario.course.honest,
        };
        let network = Network::draw(&bounds, &mut random);
        let mut world = Self {
            scenario,
            group: group.clone(),
            schedule: Schedule::default(),
            network,
            nodes: Vec::new(),
            epochs: vec![1; n as usize],
            // In every fourth run clients have two processes, with several requests in progress.
            clients: processes(&CLIENTS, scenario.seed / 4 % 4 == 1, |client, last| {
                Client::new(group.clone(), client, client_key(client), last)
            }),
            history: History::default(),
            has_liar_client: random.chance(50),
            events: BTreeSet::new(),
            kills: Random::new(scenario.seed ^ 0xd15c),
            devices: BTreeMap::new(),
            seen: vec![0; n as usize],
            coalition: scenario.plan.as_ref().map(|it| Coalition::new(it, n, scenario.seed)),
            effects: vec![Effects::default(); n as usize],
            operations: scenario.course.operations,
            is_closing: false,
            random,
        };
        for device in 0..n {
            let node = world.node(device);
            world.nodes.push(node);
        }
        for &device in &scenario.crashes {
            let at = 200 + world.random.below(1800);
            let until = at + 20 + world.random.below(500);
            world.schedule.at(at, Happening::Crash(device));
            world.schedule.at(until, Happening::Restart(device));
        }
        for it in &scenario.course.crashes {
            world.schedule.at(it.at, Happening::Crash(it.device));
            world.schedule.at(it.until, Happening::Restart(it.device));
        }
        if scenario.has_logs {
            world.plan_kills();
        }
        world.schedule.at(TICK, Happening::Tick);
        world
    }

    pub(super) fn replica(&mut self, device: u32) -> Option<Replica<AnyService>> {
        let epoch = Epoch(self.epochs[device as usize]);
        let start = Start { device: DeviceId(device), epoch, nonce: self.random.nonce() };
        self.replica_of(start)
    }

    fn replica_of(&self, start: Start) -> Option<Replica<AnyService>> {
        let service = AnyService::new(self.scenario.service);
        let identity = identity(start);
        Replica::new(self.group.clone(), identity, service).ok()
    }

    fn node(&mut self, device: u32) -> Node {
        if self.scenario.plan.as_ref().is_some_and(|it| it.liars.contains(&device)) {
            return self.liar_of_the_coalition(device);
        }
        let lies = self.scenario.liars.iter().any(|it| it.0 == device);
        if self.scenario.has_logs && !lies {
            return self.durable(device, ModelDisk::default());
        }
        let attack = self.scenario.liars.iter().find(|it| it.0 == device).map(|it| it.1);
        let Some(core) = self.replica(device) else {
            return Node::Down;
        };
        let Some(attack) = attack else {
            return Node::Correct(Box::new(core));
        };
        let start = core.start;
        let mut cores = vec![core];
        if self.scenario.is_rolled_back {
            // The second device is in the same epoch, and begins with the same counter.
            cores.extend(self.replica_of(start));
        }
        Node::Liar(Box::new(Liar::new(attack, cores, self.random.next_u64())))
    }

    fn run(mut self) -> Outcome {
        let mut done_at = None;
        while let Some(happening) = self.schedule.pop() {
            match happening {
                Happening::Tick => self.tick(),
                Happening::Message(to, from, bytes) => self.deliver(&to, from, &bytes),
                Happening::Lie(lie) => self.deliver_lie(&lie),
                Happening::Crash(device) => self.crash(device),
                Happening::Restart(device) => self.restart(device),
                Happening::Kill(devices) => devices.into_iter().for_each(|it| self.kill(it)),
                Happening::Resume(device) => self.resume(device),
            }
            let is_done = done_at.is_some_and(|at| self.schedule.now() > at + SETTLE);
            if is_done
                || self.schedule.now() > self.scenario.course.end
                || self.history.is_violated()
            {
                break;
            }
            if done_at.is_none() && self.is_done() && !self.closes() {
                done_at = Some(self.schedule.now());
            }
        }
        self.finish()
    }

    fn is_done(&self) -> bool {
        self.schedule.now() > self.scenario.course.quiet()
            && self.clients.iter().all(|it| !it.is_waiting() && it.begun == self.operations)
            && self.behind().is_none()
    }

    fn finish(mut self) -> Outcome {
        for device in 0..self.nodes.len() {
            self.look(device);
            let node = &self.nodes[device];
            let is_active = node.correct().is_some_and(|it| it.metrics().is_active);
            if is_active && self.epochs[device] > 1 {
                self.events.insert(Event::Recovery);
            }
            if let Node::Liar(liar) = node
                && liar.lies > 0
            {
                self.events.insert(Event::Attack(liar.attack));
            }
        }
        self.finish_plan();
        let violations = self.history.judge(self.scenario.service);
        Outcome { events: self.events, violations }
    }

    fn tick(&mut self) {
        for device in 0..self.nodes.len() {
            match &mut self.nodes[device] {
                Node::Correct(replica) => replica.tick(),
                Node::Durable(durable) => durable.tick(),
                Node::Liar(liar) => liar.tick(),
                Node::Together | Node::Down | Node::Killed(_) => {}
            }
            self.flush(device);
            self.begin_log_anew(device as u32);
        }
        self.coalition_tick();
        for process in 0..self.clients.len() {
            self.client_tick(process);
        }
        if self.has_liar_client
            && self.schedule.now() < self.scenario.course.honest
            && self.random.chance(15)
        {
            self.lie_as_client();
        }
        self.schedule.at(self.schedule.now() + TICK, Happening::Tick);
    }

    fn client_tick(&mut self, process: usize) {
        let (client, count) = (self.clients[process].number, self.clients[process].begun);
        let is_honest = self.schedule.now() > self.scenario.course.honest;
        let may =
            count < self.scenario.course.bad_operations || (is_honest && count < self.operations);
        let operation = self.operation(client, count);
        let begins = may && self.random.chance(25);
        let nonce = self.random.nonce();
        let it = &mut self.clients[process];
        it.tick();
        let begun = if begins { it.begin(nonce, operation.clone()) } else { None };
        if let Some(number) = begun {
            let key = client_key(client);
            let digest = Request::sign(&key, client, number, (nonce, operation)).digest();
            let begun = self.schedule.now();
            self.history.operations.push(Operation { client, number, digest, begun, ended: None });
        }
        self.flush_client(process);
    }

    fn operation(&mut self, client: u32, count: usize) -> Vec<u8> {
        if self.scenario.service == ServiceKind::Counter {
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
        self.events.insert(Event::ByzantineClient);
        let key = client_key(LIAR_CLIENT);
        let number = self.schedule.now();
        for to in 0..self.scenario.replicas {
            let size = if self.random.chance(10) { 5000 } else { 8 };
            let body = (self.random.nonce(), vec![self.random.below(5) as u8; size]);
            let mut request = Request::sign(&key, LIAR_CLIENT, number, body);
            if self.random.chance(20) {
                request.client = CLIENTS[0];
            }
            self.send(To::Replica(to), None, Message::Request(request).encode());
        }
    }

    pub(super) fn deliver(&mut self, to: &To, from: Option<u32>, bytes: &[u8]) {
        match to {
            To::Replica(device) => {
                let device = *device as usize;
                match &mut self.nodes[device] {
                    Node::Correct(replica) => replica.receive(bytes),
                    Node::Durable(durable) => durable.receive(bytes),
                    Node::Liar(liar) => liar.receive(from, bytes),
                    Node::Together => return self.tell_coalition(device as u32, from, bytes),
                    Node::Down | Node::Killed(_) => return,
                }
                // Inputs of a replica with a log become durable some at a time.
                let waits = matches!(self.nodes[device], Node::Durable(_)) && self.kills.chance(40);
                if !waits {
                    self.look(device);
                    self.flush(device);
                }
            }
            To::Client(client) => {
                let now = self.schedule.now();
                for process in self.clients.iter_mut().filter(|it| it.number == *client) {
                    if let Some(completion) = process.receive(bytes) {
                        self.history.completed(*client, completion, now);
                    }
                }
            }
        }
    }

    /// Looks at what a correct replica has executed.
    pub(super) fn look(&mut self, device: usize) {
        let Some(replica) = self.nodes[device].correct() else {
            return;
        };
        let seen = self.seen[device];
        if replica.history.len() > seen {
            for (place, batch) in &replica.history[seen..] {
                self.history.executed(*place, batch);
            }
            self.seen[device] = replica.history.len();
            self.history.state(replica.ledger.executed, replica.ledger.state());
        }
        let metrics = replica.metrics();
        let happened = [
            (metrics.view > 0, Event::ViewChange),
            (metrics.states > 0, Event::StateTransfer),
            (metrics.stream_jumps > 0, Event::StreamJump),
            (metrics.stable > 0, Event::Checkpoint),
            (metrics.reissued > 0, Event::Reissue),
        ];
        self.events.extend(happened.into_iter().filter(|it| it.0).map(|it| it.1));
        self.look_for_effects(device);
    }

    fn flush(&mut self, device: usize) {
        let own = device as u32;
        match &mut self.nodes[device] {
            Node::Correct(replica) => {
                let outputs = replica.outputs();
                outputs.into_iter().for_each(|it| self.send_output(it, Some(own)));
            }
            Node::Durable(durable) => {
                let outputs = match self.scenario.sends_before_sync {
                    true => durable.outputs_before_commit(),
                    false => durable.commit().unwrap_or_default(),
                };
                outputs.into_iter().for_each(|it| self.send_output(it, Some(own)));
            }
            Node::Liar(liar) => {
                let sent = liar.outputs();
                sent.into_iter().for_each(|(to, bytes)| self.send(to, Some(own), bytes));
            }
            Node::Together | Node::Down | Node::Killed(_) => {}
        }
    }

    fn flush_client(&mut self, process: usize) {
        let outputs = self.clients[process].outputs();
        outputs.into_iter().for_each(|it| self.send_output(it, None));
    }

    fn send_output(&mut self, output: Output, from: Option<u32>) {
        match output {
            Output::Replica(to, bytes) => self.send(To::Replica(to), from, bytes),
            Output::Client(to, bytes) => self.send(To::Client(to), from, bytes),
            Output::Replicas(bytes) => {
                for to in (0..self.scenario.replicas).filter(|to| Some(*to) != from) {
                    self.send(To::Replica(to), from, bytes.clone());
                }
            }
        }
    }

    fn send(&mut self, to: To, from: Option<u32>, bytes: Vec<u8>) {
        let pair = match (&to, from) {
            (To::Replica(to), Some(from)) => Some((*to, from)),
            _ => None,
        };
        if pair
            .is_some_and(|pair| self.coalition.as_mut().is_some_and(|it| it.parts(pair.0, pair.1)))
        {
            return;
        }
        match self.network.send(self.schedule.now(), pair, &mut self.random) {
            Fate::Cut => {
                self.events.insert(Event::Partition);
            }
            Fate::Lost => {}
            Fate::Arrives { at, again } => {
                if let Some(again) = again {
                    let message = Happening::Message(to.clone(), from, bytes.clone());
                    self.schedule.at(again, message);
                }
                self.schedule.at(at, Happening::Message(to, from, bytes));
            }
        }
    }

    fn crash(&mut self, device: u32) {
        self.look(device as usize);
        self.nodes[device as usize] = Node::Down;
        self.seen[device as usize] = 0;
        self.events.insert(Event::Crash);
    }

    fn restart(&mut self, device: u32) {
        self.epochs[device as usize] += 1;
        self.nodes[device as usize] = self.node(device);
        self.flush(device as usize);
    }
}
