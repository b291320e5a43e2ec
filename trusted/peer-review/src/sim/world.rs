// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run: the nodes of a tree, and the network between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use smt_replica::sim::{Expected, Outcome, Report};
use smt_simulation::{Bounds, Fate, Network, Random, Schedule};

use crate::group::Group;
use crate::node::{Node, Output, Verdict};
use crate::sim::attack::Attack;
use crate::sim::group::{device, group};
use crate::sim::judge::{Record, Violation};
use crate::sim::liar::Liar;
use crate::sim::scenario::{DEGREE, Scenario};
use crate::tree::Tree;

/// When the network becomes honest, when a run ends, and how long a tick is.
const HONEST: u64 = 2000;
const END: u64 = 8000;
const TICK: u64 = 20;
/// After so many more ticks no correct node is suspected any more.
const CALM: u64 = 80;
/// Parts of the stream while the network is bad, and all.
const BAD_PARTS: usize = 6;
const PARTS: usize = 14;

enum Participant {
    Correct(Box<Node<Tree>>),
    Liar(Box<Liar>),
}

enum Happening {
    Tick,
    Message { to: u32, from: u32, bytes: Vec<u8> },
}

/// All that is counted beside attacks.
const EVENTS: [&str; 4] = ["Partition", "SuspicionEnded", "LiarExposed", "LiarSuspected"];

/// No run yet, of a search.
#[must_use]
pub fn report() -> Report<Violation> {
    Report::new(Expected::attacks(&Attack::ALL).chain(Expected::each(EVENTS)))
}

/// Runs a scenario.
#[must_use]
pub fn run(scenario: &Scenario) -> Outcome<Violation> {
    World::new(scenario).run()
}

struct World<'a> {
    scenario: &'a Scenario,
    random: Random,
    schedule: Schedule<Happening>,
    network: Network,
    group: Arc<Group>,
    participants: Vec<Participant>,
    stream: Vec<Vec<u8>>,
    delivered: Vec<Vec<Vec<u8>>>,
    events: BTreeSet<String>,
    violations: Vec<Violation>,
    /// Pairs of witness and suspect: of this tick, and liars that were suspected in honest times.
    suspected: BTreeSet<(u32, u32)>,
    liars_suspected: Vec<(u32, u32)>,
    ticks: u64,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let mut random = Random::new(scenario.seed ^ 0x9ee6);
        let nodes = scenario.nodes;
        let bounds = Bounds { nodes, cuts: 4, cut: 800, honest_from: HONEST };
        let network = Network::draw(&bounds, &mut random);
        let mut world = Self {
            scenario,
            network,
            schedule: Schedule::default(),
            group: group(nodes, scenario.faults),
            participants: Vec::new(),
            stream: Vec::new(),
            delivered: vec![Vec::new(); nodes as usize],
            events: BTreeSet::new(),
            violations: Vec::new(),
            suspected: BTreeSet::new(),
            liars_suspected: Vec::new(),
            ticks: 0,
            random,
        };
        for node in 0..nodes {
            let participant = world.participant(node);
            world.participants.extend(participant);
        }
        world.schedule.at(TICK, Happening::Tick);
        world
    }

    fn participant(&mut self, number: u32) -> Option<Participant> {
        let attack = self.scenario.liars.iter().find(|it| it.0 == number).map(|it| it.1);
        let devices = if attack.is_some() && self.scenario.is_rolled_back { 2 } else { 1 };
        let tree = Tree::new(self.scenario.nodes, DEGREE);
        let mut nodes = Vec::new();
        for _ in 0..devices {
            let device = device(&self.group, number);
            let secret = [number as u8; 32];
            nodes.push(Node::new(self.group.clone(), device, secret, &tree).ok()?);
        }
        match attack {
            Some(attack) => {
                let liar = Liar::new(attack, nodes, self.random.next_u64(), PARTS as u64 + 1);
                Some(Participant::Liar(Box::new(liar)))
            }
            None => nodes.pop().map(|it| Participant::Correct(Box::new(it))),
        }
    }

    fn run(mut self) -> Outcome<Violation> {
        while let Some(happening) = self.schedule.pop() {
            if self.schedule.now() > END {
                break;
            }
            match happening {
                Happening::Tick => self.tick(),
                Happening::Message { to, from, bytes } => {
                    match &mut self.participants[to as usize] {
                        Participant::Correct(node) => node.receive(from, &bytes),
                        Participant::Liar(liar) => liar.receive(from, &bytes),
                    }
                    self.flush(to);
                }
            }
        }
        self.judge();
        Outcome { events: self.events, violations: self.violations }
    }

    fn tick(&mut self) {
        self.ticks += 1;
        let now = self.schedule.now();
        let may = self.stream.len() < if now > HONEST { PARTS } else { BAD_PARTS };
        if may && self.random.chance(10) {
            let part = self.random.next_u64().to_be_bytes().to_vec();
            match &mut self.participants[0] {
                Participant::Correct(node) => {
                    node.local(part.clone());
                }
                Participant::Liar(liar) => liar.local(&part),
            }
            self.stream.push(part);
        }
        for number in 0..self.scenario.nodes {
            match &mut self.participants[number as usize] {
                Participant::Correct(node) => node.tick(),
                Participant::Liar(liar) => liar.tick(),
            }
            self.flush(number);
        }
        self.look_at_suspicions(now);
        self.schedule.at(now + TICK, Happening::Tick);
    }

    fn is_liar(&self, node: u32) -> bool {
        self.scenario.liars.iter().any(|it| it.0 == node)
    }

    /// Suspicion of a correct node ends, and does not come back when the network is honest.
    fn look_at_suspicions(&mut self, now: u64) {
        let mut suspected = BTreeSet::new();
        for (witness, participant) in (0..).zip(&self.participants) {
            let Participant::Correct(node) = participant else {
                continue;
            };
            for other in (0..self.scenario.nodes).filter(|it| node.audited(*it).is_some()) {
                if matches!(node.verdict(other), Verdict::Suspected(_)) {
                    suspected.insert((witness, other));
                }
            }
        }
        for pair in &suspected {
            if self.is_liar(pair.1) {
                if now > HONEST && !self.liars_suspected.contains(pair) {
                    self.liars_suspected.push(*pair);
                }
            } else if now > HONEST + CALM * TICK {
                let violation = Violation::Suspected(pair.1, pair.0);
                if !self.violations.contains(&violation) {
                    self.violations.push(violation);
                }
            }
        }
        let ended = self.suspected.difference(&suspected);
        if { ended }.any(|it| !self.is_liar(it.1)) {
            self.events.insert("SuspicionEnded".to_owned());
        }
        self.suspected = suspected;
    }

    fn judge(&mut self) {
        let mut correct = Vec::new();
        let mut lied = Vec::new();
        for (number, participant) in (0..).zip(&self.participants) {
            match participant {
                Participant::Correct(node) => correct.push((number, &**node)),
                Participant::Liar(liar) if liar.lies() > 0 => {
                    self.events.insert(format!("{:?}", liar.attack));
                    lied.push((number, liar.attack));
                }
                Participant::Liar(_) => {}
            }
        }
        for (_, node) in &correct {
            for (liar, _) in &lied {
                let event = match node.verdict(*liar) {
                    Verdict::Exposed(_) => "LiarExposed",
                    Verdict::Suspected(_) => "LiarSuspected",
                    Verdict::Trusted => continue,
                };
                self.events.insert(event.to_owned());
            }
        }
        let record = Record {
            scenario: self.scenario,
            group: &self.group,
            stream: &self.stream,
            correct,
            delivered: &self.delivered,
            lied,
            suspected: &self.liars_suspected,
            ticks: self.ticks,
        };
        let found = record.judge();
        self.violations.extend(found);
    }

    fn flush(&mut self, number: u32) {
        let sent = match &mut self.participants[number as usize] {
            Participant::Liar(liar) => liar.outputs(),
            Participant::Correct(node) => {
                let mut sent = Vec::new();
                for output in node.outputs() {
                    match output {
                        Output::Node(to, bytes) => sent.push((to, bytes)),
                        Output::Deliver(bytes) => self.delivered[number as usize].push(bytes),
                    }
                }
                sent
            }
        };
        for (to, bytes) in sent.into_iter().filter(|it| it.0 < self.scenario.nodes) {
            self.send(to, number, bytes);
        }
    }

    fn send(&mut self, to: u32, from: u32, bytes: Vec<u8>) {
        match self.network.send(self.schedule.now(), Some((to, from)), &mut self.random) {
            Fate::Cut => {
                self.events.insert("Partition".to_owned());
            }
            Fate::Lost => {}
            Fate::Arrives { at, again } => {
                if let Some(again) = again {
                    let happening = Happening::Message { to, from, bytes: bytes.clone() };
                    self.schedule.at(again, happening);
                }
                self.schedule.at(at, Happening::Message { to, from, bytes });
            }
        }
    }
}
