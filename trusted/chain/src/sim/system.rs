// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of a chain in the simulator of all systems, and the trusted service of configurations.

use std::collections::BTreeSet;
use std::sync::Arc;

use smt_journal::ModelDisk;
use smt_replica::sim::{
    Expected, Happening, Host, Opened, Outcome, Report, System, Violation, client_key, node_key,
};
use smt_replica::{
    Attested, Digest, Group, KeyValue, KeyValueOperation, Options, Proof, Reply, Request,
};
use smt_simulation::Random;

use crate::accusation::{Accusation, Made};
use crate::client::Client;
use crate::configuration::Configuration;
use crate::message::Message;
use crate::node::{Accuse, Identity, Node};
use crate::sim::attack::Attack;
use crate::sim::coalition::{self, Coalition, Correct, Memory, Notes};
use crate::sim::group::{group, identity, start};
use crate::sim::liar::Liar;
use crate::sim::plan::{Step, StepName};
use crate::sim::scenario::Scenario;

type World = smt_replica::sim::World<Chain>;

/// Events that are counted in runs without logs, beside attacks: a new configuration was made, a
/// log left entries out, a liar was found by a node; two nodes were cut off, and a client lied.
const EVENTS: [&str; 5] =
    ["Reconfiguration", "ShortLog", "LiarFound", "Partition", "ByzantineClient"];

/// After so long the service asks a node again that was killed.
const AGAIN: u64 = 100;

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome<Violation> {
    smt_replica::sim::run(Chain::new(scenario), scenario.conditions.clone(), scenario.plan.as_ref())
}

/// No run yet, of a search with these.
#[must_use]
pub fn report(has_logs: bool, has_plans: bool) -> Report<Violation> {
    let lies = Expected::lies(&Attack::ALL, &StepName::ALL, has_plans);
    let events = Expected::each(EVENTS.into_iter().chain(has_logs.then_some("Reissue")));
    let closing = Expected::each(has_plans.then_some("Closing"));
    let kills = Expected::kills(has_logs);
    Report::new(lies.into_iter().chain(events).chain(kills).chain(closing))
}

/// A configuration reaches a node.
pub(super) struct Configured {
    node: u32,
    made: Made,
}

/// The nodes of a run, and the service.
pub(super) struct Chain {
    scenario: Scenario,
    group: Arc<Group>,
    /// The newest configuration, and who has accused it.
    newest: u64,
    accusers: BTreeSet<u32>,
}

impl Chain {
    fn new(scenario: &Scenario) -> Self {
        let conditions = &scenario.conditions;
        let mut group = group(conditions.nodes);
        if let Some(options) = conditions.course.options {
            // A node that has missed more than is kept does not come back.
            let retained = group.options.retained;
            group.options = Options { retained, ..options };
        }
        Self {
            scenario: scenario.clone(),
            group: Arc::new(group),
            newest: 0,
            accusers: BTreeSet::new(),
        }
    }

    /// The number and the proof of the configuration after the newest, when f + 1 have accused
    /// that. Liars alone bring none.
    fn accuse(&mut self, from: u32, number: u64) -> Option<Made> {
        if number != self.newest {
            return None;
        }
        self.accusers.insert(from);
        if self.accusers.len() < self.group.quorum() {
            return None;
        }
        let accusers = std::mem::take(&mut self.accusers).into_iter();
        let accusations =
            accusers.map(|it| Accusation::sign(&self.group, it, number, &node_key(it))).collect();
        self.newest += 1;
        Some(Made { number: self.newest, accusations })
    }
}

impl System for Chain {
    type Node = Node<KeyValue>;
    type Client = Client;
    type Asks = Accuse;
    type Liar = Liar;
    type Happening = Configured;

    fn client(&self, number: u32, last: u64) -> Client {
        Client::new(self.group.clone(), number, client_key(number), last)
    }

    fn request(request: Request) -> Vec<u8> {
        Message::Request(request).encode()
    }

    fn asked(Accuse(number): Accuse) -> u64 {
        number
    }

    fn host(world: &mut World, number: u32) -> Host<Self> {
        let scenario = &world.system.scenario;
        let attack = scenario.liars.iter().find(|it| it.0 == number).map(|it| it.1);
        let is_liar = scenario.is_liar(number);
        if !is_liar && world.conditions.has_logs {
            return world.logged(number, ModelDisk::default());
        }
        let devices = if attack.is_some() && scenario.is_rolled_back { 2 } else { 1 };
        let node =
            || Node::new(world.system.group.clone(), identity(number), KeyValue::default()).ok();
        if is_liar && attack.is_none() {
            let core = node();
            return world.join(number, core);
        }
        let mut nodes: Vec<_> = (0..devices).filter_map(|_| node()).collect();
        match attack {
            Some(attack) => Host::Liar(Box::new(Liar::new(attack, nodes, world.random.next_u64()))),
            None => nodes.pop().map_or(Host::Down, |it| Host::Correct(Box::new(it))),
        }
    }

    fn open(world: &mut World, number: u32, disk: ModelDisk) -> Opened<Self::Node> {
        let identity =
            Identity { device: world.device(start(number)), reply_key: node_key(number) };
        Node::open(world.system.group.clone(), identity, KeyValue::default(), disk)
    }

    fn receive(node: &mut Self::Node, bytes: &[u8]) {
        node.receive(bytes);
    }

    fn executed(node: &Self::Node) -> u64 {
        node.replied
    }

    fn happen(world: &mut World, Configured { node: number, made }: Configured) {
        let nodes = world.conditions.nodes;
        let configuration = || Configuration::of_number(made.number, nodes);
        match &mut world.hosts[number as usize] {
            Host::Correct(node) => node.configure(configuration()),
            Host::Logged(logged) => logged.receive(&Message::Made(made).encode()),
            Host::Liar(liar) => liar.configure(&configuration()),
            Host::Together | Host::Down | Host::Stopped => {}
            Host::Killed(_) => {
                let again = Happening::Of(Configured { node: number, made });
                world.schedule.at(world.schedule.now() + AGAIN, again);
            }
        }
        Self::look(world, number as usize);
        world.flush(number as usize);
    }

    /// Looks at what a correct node has committed, and whom it takes for a liar.
    fn look(world: &mut World, number: usize) {
        let Some(node) = world.hosts[number].correct() else {
            return;
        };
        let metrics = node.metrics();
        let happened = [
            (metrics.configuration > 0, "Reconfiguration"),
            (metrics.left_out > 0, "ShortLog"),
            (metrics.reissued > 0, "Reissue"),
        ];
        let is_liar = |it: &u32| world.system.scenario.is_liar(*it);
        let (found, slandered): (Vec<u32>, Vec<u32>) = node.faulty().partition(is_liar);
        slandered.into_iter().for_each(|it| world.history.violate(Violation::Slandered(it)));
        while world.seen[number] < node.replied as usize {
            let place = world.seen[number] as u64 + 1;
            if let Some(entry) = node.history.get(&place) {
                world.history.executed(place, [&entry.request]);
                world.history.state(place, crate::log::output(&entry.answer));
            }
            world.seen[number] += 1;
        }
        happened.into_iter().filter(|it| it.0).for_each(|it| world.note(it.1));
        (!found.is_empty()).then(|| world.note("LiarFound"));
    }

    /// The service is reliable, and slow at times.
    fn ask_service(world: &mut World, from: u32, number: u64) {
        let Some(made) = world.system.accuse(from, number) else {
            return;
        };
        let nodes = world.conditions.nodes;
        let first = world.hosts.iter().position(|it| !it.is_faulty());
        for node in 0..nodes {
            // Nodes with logs have the proof, and tell those that have not heard of it.
            let is_told = !world.conditions.has_logs || first == Some(node as usize);
            if !is_told && world.kills.chance(40) {
                continue;
            }
            let at = world.schedule.now() + 1 + world.random.below(60);
            let configured = Configured { node, made: made.clone() };
            world.schedule.at(at, Happening::Of(configured));
        }
        // Clients ask it now and then, and may be late.
        if world.random.chance(50) {
            let configuration = Configuration::of_number(made.number, nodes);
            world.clients.iter_mut().for_each(|it| it.client.configure(configuration.clone()));
        }
    }

    type Step = Step;
    type Name = StepName;
    type Notes = Notes;
    type Memory = Memory;

    fn said(node: &Self::Node, after: u64) -> Vec<Attested> {
        node.streams[node.own as usize].after(after, usize::MAX).cloned().collect()
    }

    fn statement(said: Attested) -> Vec<u8> {
        Message::Statement(said).encode()
    }

    fn attest(node: &mut Self::Node, body: &[u8]) -> Option<Attested> {
        let attestation = node.device.attest(body)?;
        let said = Attested::new(&attestation, body.to_vec());
        node.publish(said.clone());
        Some(said)
    }

    fn note(notes: &mut Notes, body: &[u8]) {
        notes.note(body);
    }

    fn numbers(node: &Self::Node) -> Vec<u64> {
        let faulty = node.faulty().count() as u64;
        let (configuration, place) = node.committed;
        vec![node.device.counter(), node.replied, configuration, place, faulty]
    }

    fn wanted(node: &Self::Node) -> u64 {
        node.own_track().promised
    }

    fn knows(node: &Self::Node, configuration: u64) -> bool {
        node.logs.contains_key(&configuration)
    }

    fn last_answer(node: &Self::Node, client: u32) -> Option<(u64, Digest, Vec<u8>)> {
        let mut entries = node.history.values().rev();
        let entry = entries.find(|it| it.request.client == client)?;
        Some((entry.request.number, entry.request.digest(), entry.answer.clone()))
    }

    fn waiting(node: &Self::Node, client: u32) -> Option<(u64, Digest)> {
        let mut waiting = node.pending.iter().map(|it| &it.request);
        waiting.find(|it| it.client == client).map(|it| (it.number, it.digest()))
    }

    fn reply(of: &Self::Node, client: u32, answer: &(u64, Digest, Vec<u8>)) -> Vec<u8> {
        let (number, request, result) = answer.clone();
        let (replica, view) = (of.own, of.own_track().at.0);
        let (result, proof) = (Ok(result), Proof::default());
        let reply = Reply { replica, view, client, number, request, result, proof };
        Message::Reply(reply.sign(&of.reply_key)).encode()
    }

    fn operation_of_liar(random: &mut Random) -> Vec<u8> {
        let value = random.below(100).to_be_bytes().to_vec();
        KeyValueOperation::Put(b"liar".to_vec(), value).encode()
    }

    fn take(liars: &mut Coalition, step: Step, correct: &Correct<'_>) {
        coalition::take(liars, &step, correct);
    }

    /// Liars that have left proof are found by all correct nodes.
    fn finish(world: &mut World) {
        let mut missed = Vec::new();
        for (number, host) in (0..).zip(&world.hosts) {
            let mut correct = world.hosts.iter().filter_map(Host::correct);
            if let Host::Liar(liar) = host
                && liar.has_left_proof()
                && !correct.all(|it| it.faulty().any(|it| it == number))
            {
                missed.push(number);
            }
        }
        missed.into_iter().for_each(|it| world.history.violate(Violation::NotFound(it)));
    }
}
