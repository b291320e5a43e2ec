// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of a chain in the simulator of all systems, and the trusted service of configurations.

use std::collections::BTreeSet;
use std::sync::Arc;

use smt_journal::ModelDisk;
use smt_replica::sim::{
    Expected, Happening, Host, Liar as _, Opened, Outcome, Report, System, To, Violation,
    client_key, node_key, to_others,
};
use smt_replica::{Group, KeyValue, Request};

use crate::accusation::{Accusation, Made};
use crate::client::Client;
use crate::configuration::Configuration;
use crate::message::Message;
use crate::node::{Identity, Node, Output};
use crate::sim::attack::Attack;
use crate::sim::group::{group, identity, start};
use crate::sim::liar::Liar;
use crate::sim::scenario::Scenario;

type World = smt_replica::sim::World<Chain>;

/// Events that are counted in runs without logs, beside attacks: a new configuration was made, a
/// log left entries out, a liar was found by all; two nodes were cut off, and a client lied.
const EVENTS: [&str; 5] =
    ["Reconfiguration", "ShortLog", "LiarFound", "Partition", "ByzantineClient"];

/// After so long the service asks a node again that was killed.
const AGAIN: u64 = 100;

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome<Violation> {
    smt_replica::sim::run(Chain::new(scenario), scenario.conditions.clone())
}

/// No run yet, of a search with logs or without.
#[must_use]
pub fn report(has_logs: bool) -> Report<Violation> {
    let events = Expected::each(EVENTS.into_iter().chain(has_logs.then_some("Reissue")));
    Report::new(Expected::attacks(Attack::ALL).chain(events).chain(Expected::kills(has_logs)))
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
        let group = Arc::new(group(scenario.conditions.nodes));
        Self { scenario: scenario.clone(), group, newest: 0, accusers: BTreeSet::new() }
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
    type Liar = Liar;
    type Happening = Configured;

    fn client(&self, number: u32, last: u64) -> Client {
        Client::new(self.group.clone(), number, client_key(number), last)
    }

    fn request(request: Request) -> Vec<u8> {
        Message::Request(request).encode()
    }

    fn messages(output: Output, own: Option<u32>, nodes: u32) -> Vec<(To, Vec<u8>)> {
        match output {
            Output::Node(to, bytes) => vec![(To::Node(to), bytes)],
            Output::Client(to, bytes) => vec![(To::Client(to), bytes)],
            Output::Accuse(number) => vec![(To::Service(number), Vec::new())],
            Output::Nodes(bytes) => to_others(nodes, own, &bytes),
        }
    }

    fn host(world: &mut World, number: u32) -> Host<Self> {
        let scenario = &world.system.scenario;
        let attack = scenario.liars.iter().find(|it| it.0 == number).map(|it| it.1);
        if attack.is_none() && world.conditions.has_logs {
            return world.logged(number, ModelDisk::default());
        }
        let devices = if attack.is_some() && scenario.is_rolled_back { 2 } else { 1 };
        let node =
            || Node::new(world.system.group.clone(), identity(number), KeyValue::default()).ok();
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
        let is_liar = |it: &u32| world.system.scenario.liars.iter().any(|liar| liar.0 == *it);
        for faulty in node.faulty().filter(|it| !is_liar(it)) {
            world.history.violate(Violation::Slandered(faulty));
        }
        while world.seen[number] < node.replied as usize {
            let place = world.seen[number] as u64 + 1;
            if let Some(entry) = node.history.get(&place) {
                world.history.executed(place, [&entry.request]);
                world.history.state(place, crate::log::output(&entry.answer));
            }
            world.seen[number] += 1;
        }
        happened.into_iter().filter(|it| it.0).for_each(|it| world.note(it.1));
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

    /// Liars that have left proof are found by all correct nodes.
    fn finish(world: &mut World) {
        let (mut found, mut missed) = (false, Vec::new());
        for (number, host) in (0..).zip(&world.hosts) {
            let Host::Liar(liar) = host else {
                continue;
            };
            if liar.has_lied().is_none() {
                continue;
            }
            let mut correct = world.hosts.iter().filter_map(Host::correct);
            let is_found = correct.all(|it| it.faulty().any(|it| it == number));
            found |= is_found;
            if !is_found && liar.has_left_proof() {
                missed.push(number);
            }
        }
        found.then(|| world.note("LiarFound"));
        missed.into_iter().for_each(|it| world.history.violate(Violation::NotFound(it)));
    }
}
