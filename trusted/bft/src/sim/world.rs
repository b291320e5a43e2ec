// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run: replicas, clients, and the network between them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use ed25519_dalek::SigningKey;
use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};

use crate::client::Client;
use crate::group::{Group, Options};
use crate::message::Message;
use crate::replica::{Identity, Output, Replica};
use crate::request::Request;
use crate::service::{Counter, KeyValue, KeyValueOperation, Service};
use crate::sim::history::{History, Operation, Violation};
use crate::sim::liar::{Liar, To};
use crate::sim::random::Random;
use crate::sim::report::Event;
use crate::sim::scenario::{Scenario, ServiceKind};

/// The client whose key liars have.
pub(crate) const LIAR_CLIENT: u32 = 9;
/// Clients that are correct.
const CLIENTS: [u32; 3] = [1, 2, 3];
/// When the network becomes honest, and when a run is given up.
const HONEST: u64 = 3000;
const END: u64 = 60_000;
/// How long a run goes on when all have their answers, and how long a tick is.
const SETTLE: u64 = 800;
const TICK: u64 = 20;
/// Operations of a client while the network is bad, and after.
const BAD_OPERATIONS: usize = 9;
const OPERATIONS: usize = 12;

/// Both services.
#[derive(Clone, Debug)]
pub(crate) enum AnyService {
    Counter(Counter),
    KeyValue(KeyValue),
}

impl Default for AnyService {
    fn default() -> Self {
        Self::Counter(Counter::default())
    }
}

impl AnyService {
    fn new(kind: ServiceKind) -> Self {
        match kind {
            ServiceKind::Counter => Self::Counter(Counter::default()),
            ServiceKind::KeyValue => Self::KeyValue(KeyValue::default()),
        }
    }
}

impl Service for AnyService {
    fn execute(&mut self, operation: &[u8]) -> Vec<u8> {
        match self {
            Self::Counter(it) => it.execute(operation),
            Self::KeyValue(it) => it.execute(operation),
        }
    }

    fn snapshot(&self) -> Vec<u8> {
        match self {
            Self::Counter(it) => it.snapshot(),
            Self::KeyValue(it) => it.snapshot(),
        }
    }

    fn restore(&mut self, snapshot: &[u8]) -> bool {
        match self {
            Self::Counter(it) => it.restore(snapshot),
            Self::KeyValue(it) => it.restore(snapshot),
        }
    }
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All that happened at least once.
    pub events: BTreeSet<Event>,
    /// The properties that do not hold.
    pub violations: Vec<Violation>,
}

pub(crate) fn secret() -> GroupSecret {
    GroupSecret::new([3; 32])
}

/// The key of a client in simulations.
pub(crate) fn client_key(client: u32) -> SigningKey {
    SigningKey::from_bytes(&seed_of(1, client))
}

pub(crate) fn reply_key(replica: u32) -> SigningKey {
    SigningKey::from_bytes(&seed_of(2, replica))
}

fn seed_of(kind: u8, number: u32) -> [u8; 32] {
    let mut seed = [kind; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    seed
}

/// The group of simulations: small sizes, so that checkpoints and full windows come soon.
pub(crate) fn group(replicas: u32) -> Group {
    let options =
        Options { batch: 4, operation: 1024, interval: 4, window: 12, retained: 1500, timeout: 12 };
    let of_client = |it: u32| (it, client_key(it).verifying_key().to_bytes());
    Group {
        replicas,
        stream: 7,
        clients: CLIENTS.into_iter().chain([LIAR_CLIENT]).map(of_client).collect(),
        reply_keys: (0..replicas).map(|it| reply_key(it).verifying_key().to_bytes()).collect(),
        options,
    }
}

enum Node {
    Correct(Box<Replica<AnyService>>),
    Liar(Box<Liar>),
    Down,
}

enum Happening {
    Message(To, Option<u32>, Vec<u8>),
    Tick,
    Crash(u32),
    Restart(u32),
}

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome {
    World::new(scenario).run()
}

struct World<'a> {
    scenario: &'a Scenario,
    group: Arc<Group>,
    random: Random,
    now: u64,
    number: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    nodes: Vec<Node>,
    epochs: Vec<u64>,
    clients: BTreeMap<u32, Client>,
    history: History,
    /// Cut connections: two replicas, from when and until when.
    cuts: Vec<(u32, u32, u64, u64)>,
    loss: u64,
    has_liar_client: bool,
    events: BTreeSet<Event>,
    /// How much of each replica's own history was looked at.
    seen: Vec<usize>,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let mut random = Random::new(scenario.seed ^ 0xb3f7);
        let group = Arc::new(group(scenario.replicas));
        let n = scenario.replicas;
        let mut cuts = Vec::new();
        for _ in 0..random.below(4) {
            let (one, shift) = (random.below(u64::from(n)), 1 + random.below(u64::from(n) - 1));
            let other = (one + shift) % u64::from(n);
            let from = 100 + random.below(2000);
            let until = (from + 100 + random.below(1200)).min(HONEST);
            cuts.push((one as u32, other as u32, from, until));
        }
        let mut world = Self {
            scenario,
            group: group.clone(),
            now: 0,
            number: 0,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            nodes: Vec::new(),
            epochs: vec![1; n as usize],
            clients: BTreeMap::new(),
            history: History::default(),
            cuts,
            loss: random.below(20),
            has_liar_client: random.chance(50),
            events: BTreeSet::new(),
            seen: vec![0; n as usize],
            random,
        };
        for device in 0..n {
            let node = world.node(device);
            world.nodes.push(node);
        }
        for client in CLIENTS {
            #[allow(unused_mut, reason = "only control runs change it")]
            let mut it = Client::new(group.clone(), client, client_key(client), 0);
            #[cfg(feature = "broken")]
            {
                it.broken.rule = scenario.lacking;
            }
            world.clients.insert(client, it);
        }
        for &device in &scenario.crashes {
            let at = 200 + world.random.below(1800);
            let until = at + 20 + world.random.below(500);
            world.at(at, Happening::Crash(device));
            world.at(until, Happening::Restart(device));
        }
        world.at(TICK, Happening::Tick);
        world
    }

    fn replica(&mut self, device: u32) -> Option<Replica<AnyService>> {
        let epoch = Epoch(self.epochs[device as usize]);
        let start = Start { device: DeviceId(device), epoch, nonce: self.random.nonce() };
        self.replica_of(start)
    }

    fn replica_of(&self, start: Start) -> Option<Replica<AnyService>> {
        let service = AnyService::new(self.scenario.service);
        let reply_key = reply_key(start.device.0);
        let identity = Identity { secret: secret(), start, reply_key };
        #[allow(unused_mut, reason = "only control runs change it")]
        let mut replica = Replica::new(self.group.clone(), identity, service).ok()?;
        #[cfg(feature = "broken")]
        {
            replica.broken.rule = self.scenario.lacking;
            let lacks = self.scenario.lacking == Some(crate::rule::Rule::ExactlyOnce);
            replica.ledger.forgets_clients = lacks;
        }
        Some(replica)
    }

    fn node(&mut self, device: u32) -> Node {
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
        Node::Liar(Box::new(Liar::new(attack, cores, self.random.next())))
    }

    fn at(&mut self, time: u64, happening: Happening) {
        self.number += 1;
        self.queue.push(Reverse((time, self.number)));
        self.happenings.insert(self.number, happening);
    }

    fn run(mut self) -> Outcome {
        let mut done_at = None;
        while let Some(Reverse((time, number))) = self.queue.pop() {
            self.now = time;
            let Some(happening) = self.happenings.remove(&number) else {
                continue;
            };
            match happening {
                Happening::Tick => self.tick(),
                Happening::Message(to, from, bytes) => self.deliver(&to, from, &bytes),
                Happening::Crash(device) => self.crash(device),
                Happening::Restart(device) => self.restart(device),
            }
            let is_done = done_at.is_some_and(|at| self.now > at + SETTLE);
            if is_done || self.now > END || self.history.is_violated() {
                break;
            }
            if done_at.is_none() && self.is_done() {
                done_at = Some(self.now);
            }
        }
        self.finish()
    }

    fn is_done(&self) -> bool {
        self.now > HONEST
            && self.clients.values().all(|it| !it.is_waiting())
            && self.history.operations.len() == CLIENTS.len() * OPERATIONS
    }

    fn finish(mut self) -> Outcome {
        for device in 0..self.nodes.len() {
            self.look(device);
            match &self.nodes[device] {
                Node::Correct(replica) => {
                    let recovered = replica.metrics().is_active && self.epochs[device] > 1;
                    if recovered {
                        self.events.insert(Event::Recovery);
                    }
                }
                Node::Liar(liar) if liar.lies > 0 => {
                    self.events.insert(Event::Attack(liar.attack));
                }
                _ => {}
            }
        }
        let violations = self.history.judge(self.scenario.service);
        Outcome { events: self.events, violations }
    }

    fn tick(&mut self) {
        for device in 0..self.nodes.len() {
            match &mut self.nodes[device] {
                Node::Correct(replica) => replica.tick(),
                Node::Liar(liar) => liar.tick(),
                Node::Down => {}
            }
            self.flush(device);
        }
        for client in CLIENTS {
            self.client_tick(client);
        }
        if self.has_liar_client && self.now < HONEST && self.random.chance(15) {
            self.lie_as_client();
        }
        self.at(self.now + TICK, Happening::Tick);
    }

    fn client_tick(&mut self, client: u32) {
        let count = self.history.operations.iter().filter(|it| it.client == client).count();
        let may = count < BAD_OPERATIONS || (self.now > HONEST && count < OPERATIONS);
        let operation = self.operation(client, count);
        let begins = may && self.random.chance(25);
        let nonce = self.random.nonce();
        let Some(it) = self.clients.get_mut(&client) else {
            return;
        };
        it.tick();
        if begins && !it.is_waiting() {
            let number = it.submit(nonce, operation.clone());
            let key = client_key(client);
            let digest = Request::sign(&key, client, number, (nonce, operation)).digest();
            let begun = self.now;
            self.history.operations.push(Operation { client, number, digest, begun, ended: None });
        }
        self.flush_client(client);
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
        let number = self.now;
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

    fn deliver(&mut self, to: &To, from: Option<u32>, bytes: &[u8]) {
        match to {
            To::Replica(device) => {
                let device = *device as usize;
                match &mut self.nodes[device] {
                    Node::Correct(replica) => replica.receive(bytes),
                    Node::Liar(liar) => liar.receive(from, bytes),
                    Node::Down => return,
                }
                self.look(device);
                self.flush(device);
            }
            To::Client(client) => {
                let Some(it) = self.clients.get_mut(client) else {
                    return;
                };
                let Some(answer) = it.receive(bytes) else {
                    return;
                };
                let now = self.now;
                let last = self.history.operations.iter_mut().rev().find(|it| it.client == *client);
                if let Some(operation) = last {
                    operation.ended = Some((now, answer));
                }
            }
        }
    }

    /// Looks at what a correct replica has executed.
    fn look(&mut self, device: usize) {
        let Node::Correct(replica) = &self.nodes[device] else {
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
            (metrics.stable > 0, Event::Checkpoint),
        ];
        self.events.extend(happened.into_iter().filter(|it| it.0).map(|it| it.1));
    }

    fn flush(&mut self, device: usize) {
        let own = device as u32;
        match &mut self.nodes[device] {
            Node::Correct(replica) => {
                let outputs = replica.outputs();
                outputs.into_iter().for_each(|it| self.send_output(it, Some(own)));
            }
            Node::Liar(liar) => {
                let sent = liar.outputs();
                sent.into_iter().for_each(|(to, bytes)| self.send(to, Some(own), bytes));
            }
            Node::Down => {}
        }
    }

    fn flush_client(&mut self, client: u32) {
        let outputs = self.clients.get_mut(&client).map(Client::outputs).unwrap_or_default();
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

    /// The network: it loses, repeats, delays and reorders, until it is honest.
    fn send(&mut self, to: To, from: Option<u32>, bytes: Vec<u8>) {
        let is_bad = self.now < HONEST;
        if let (To::Replica(to), Some(from)) = (&to, from) {
            let now = self.now;
            let is_cut = |it: &&(u32, u32, u64, u64)| {
                let pair = (it.0, it.1) == (*to, from) || (it.1, it.0) == (*to, from);
                pair && (it.2..it.3).contains(&now)
            };
            if self.cuts.iter().any(|it| is_cut(&it)) {
                self.events.insert(Event::Partition);
                return;
            }
        }
        if is_bad && self.random.chance(self.loss) {
            return;
        }
        if is_bad && self.random.chance(5) {
            let later = self.now + 1 + self.random.below(300);
            self.at(later, Happening::Message(to.clone(), from, bytes.clone()));
        }
        let most = if is_bad && self.random.chance(10) { 120 } else { 12 };
        let later = self.now + 1 + self.random.below(most);
        self.at(later, Happening::Message(to, from, bytes));
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
