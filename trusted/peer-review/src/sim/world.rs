// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run: the nodes of a tree, and the network between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smt_attestor::OutlivingDevice;
use smt_journal::ModelDisk;
use smt_replica::sim::Outcome;
use smt_simulation::{Bounds, Fate, Network, Random, Schedule};

use crate::group::Group;
use crate::node::{Node, Output};
use crate::sim::coalition::Coalition;
use crate::sim::group::{device, group};
use crate::sim::host::Host;
use crate::sim::judge::Violation;
use crate::sim::liar::Liar;
use crate::sim::scenario::{DEGREE, Scenario};
use crate::sim::together::Sent;
use crate::sim::watch::Watch;
use crate::tree::{Delivery, Tree};

/// How long a tick is.
pub(super) const TICK: u64 = 20;
/// How long a run with a plan goes on at least when liars have done all that they plan and the
/// network is honest, and how often it is looked at then.
const SETTLE: u64 = 100 * TICK;
const LOOK: u64 = 25;

pub(super) enum Happening {
    Tick,
    Message { to: u32, from: u32, bytes: Vec<u8>, is_lie: bool },
    Kill(Vec<u32>),
    Resume(u32),
}

/// Runs a scenario.
#[must_use]
pub fn run(scenario: &Scenario) -> Outcome<Violation> {
    World::new(scenario).run()
}

/// The state of a run.
pub(super) struct World<'a> {
    pub(super) scenario: &'a Scenario,
    random: Random,
    /// All that is random about journals and kills.
    pub(super) kills: Random,
    pub(super) schedule: Schedule<Happening>,
    network: Network,
    pub(super) group: Arc<Group>,
    pub(super) hosts: Vec<Host>,
    /// Devices that outlive their nodes.
    pub(super) devices: BTreeMap<u32, OutlivingDevice>,
    /// Liars that follow a plan.
    pub(super) coalition: Option<Coalition>,
    pub(super) stream: Vec<Vec<u8>>,
    /// The parts of the stream that each node has delivered, by number.
    pub(super) delivered: Vec<BTreeMap<u64, Vec<u8>>>,
    events: BTreeSet<String>,
    pub(super) violations: Vec<Violation>,
    pub(super) watch: Watch,
    pub(super) ticks: u64,
    /// When all was done of which the end depends.
    done_at: Option<u64>,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let mut random = Random::new(scenario.seed ^ 0x9ee6);
        let (nodes, course) = (scenario.nodes, &scenario.course);
        let bounds = Bounds { nodes, cuts: 4, cut: course.cut, honest_from: course.honest };
        let network = Network::draw(&bounds, &mut random);
        // Nodes come to few entries meanwhile, beside all that is kept.
        let part_max = course.options.retained as u64 / 2;
        let mut world = Self {
            scenario,
            network,
            kills: Random::new(scenario.seed ^ 0xd15c),
            schedule: Schedule::default(),
            group: group(nodes, scenario.faults, course.options),
            hosts: Vec::new(),
            devices: BTreeMap::new(),
            coalition: scenario.plan.as_ref().map(|it| Coalition::new(it, part_max)),
            stream: Vec::new(),
            delivered: vec![BTreeMap::new(); nodes as usize],
            events: BTreeSet::new(),
            violations: Vec::new(),
            watch: Watch::default(),
            ticks: 0,
            done_at: None,
            random,
        };
        for node in 0..nodes {
            let host = world.host(node);
            world.hosts.extend(host);
        }
        if scenario.has_logs {
            world.plan_kills();
        }
        world.schedule.at(TICK, Happening::Tick);
        world
    }

    fn host(&mut self, number: u32) -> Option<Host> {
        let is_liar = self.scenario.is_liar(number);
        if self.scenario.has_logs && !is_liar {
            return self.logged(number, ModelDisk::default());
        }
        let devices = if is_liar && self.scenario.is_rolled_back { 2 } else { 1 };
        let tree = Tree::new(self.scenario.nodes, DEGREE);
        let mut nodes = Vec::new();
        for _ in 0..devices {
            let device = device(&self.group, number);
            let secret = [number as u8; 32];
            nodes.push(Node::new(self.group.clone(), device, secret, &tree).ok()?);
        }
        if !is_liar {
            return nodes.pop().map(|it| Host::Correct(Box::new(it)));
        }
        let (attack, beyond) =
            (self.scenario.attack(number), self.scenario.course.parts as u64 + 1);
        let liar = Liar::new(attack, nodes, self.random.next_u64(), beyond);
        Some(Host::Liar(Box::new(liar)))
    }

    /// Notes that something has happened in this run.
    pub(super) fn note(&mut self, event: impl Into<String>) {
        self.events.insert(event.into());
    }

    pub(super) fn violate(&mut self, violation: Violation) {
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }

    fn run(mut self) -> Outcome<Violation> {
        while let Some(happening) = self.schedule.pop() {
            if self.schedule.now() > self.scenario.course.end || self.is_over() {
                break;
            }
            match happening {
                Happening::Tick => self.tick(),
                Happening::Message { to, from, bytes, is_lie: true }
                    if self.coalition.is_some() =>
                {
                    self.receive_lie(to, from, &bytes);
                }
                Happening::Message { to, from, bytes, .. } => {
                    self.hosts[to as usize].receive(from, &bytes);
                    // Inputs of a node with a journal become durable some at a time.
                    let is_logged = matches!(self.hosts[to as usize], Host::Logged(_));
                    let waits = is_logged && self.kills.chance(40);
                    if !waits {
                        self.flush(to);
                    }
                }
                Happening::Kill(nodes) => nodes.into_iter().for_each(|it| self.kill(it)),
                Happening::Resume(node) => self.resume(node),
            }
        }
        self.finish()
    }

    /// Whether a run with a plan is over: all was done, and each liar is found.
    fn is_over(&mut self) -> bool {
        let Some(coalition) = &self.coalition else {
            return false;
        };
        if self.violations.is_empty() {
            let (now, course) = (self.schedule.now(), &self.scenario.course);
            let is_done = coalition.is_done()
                && now > course.honest
                && self.stream.len() >= course.parts
                && !self.hosts.iter().any(|it| matches!(it, Host::Killed(_)));
            if is_done && self.done_at.is_none() {
                self.done_at = Some(now);
            }
            let is_settled = self.done_at.is_some_and(|it| now > it + SETTLE);
            return is_settled && self.ticks.is_multiple_of(LOOK) && self.judge().is_empty();
        }
        true
    }

    fn tick(&mut self) {
        self.ticks += 1;
        let now = self.schedule.now();
        let course = &self.scenario.course;
        let most = if now > course.honest { course.parts } else { course.bad_parts };
        let may = self.stream.len() < most && self.has_room();
        if may && self.random.chance(course.rate) {
            let part = self.random.next_u64().to_be_bytes().to_vec();
            if self.hosts[0].local(&part) {
                self.stream.push(part);
            }
        }
        for number in 0..self.scenario.nodes {
            self.hosts[number as usize].tick();
            self.flush(number);
            self.begin_log_anew(number);
        }
        self.coalition_tick();
        self.look_at_suspicions(now);
        self.schedule.at(now + TICK, Happening::Tick);
    }

    /// Whether the host of the source gives it a part: one that lies is always given some.
    fn has_room(&self) -> bool {
        let held_from = self.group.options.held_from();
        let backlog = |it: &Node<Tree>| it.backlog() < held_from;
        self.coalition.is_none() || self.hosts[0].correct().is_none_or(backlog)
    }

    fn finish(mut self) -> Outcome<Violation> {
        let found = self.judge();
        self.violations.extend(found);
        self.note_ends();
        Outcome { events: self.events, violations: self.violations }
    }

    /// A node has delivered something to its host.
    pub(super) fn deliver(&mut self, number: u32, bytes: &[u8]) {
        let Some(Delivery { content, .. }) = Delivery::decode(bytes) else {
            return;
        };
        let parts = &mut self.delivered[number as usize];
        let known = parts.insert(content.number, content.bytes.clone());
        if known.is_some_and(|it| it != content.bytes) {
            self.violate(Violation::Redelivered(number, content.number));
        }
    }

    /// Sends all that a host wants sent.
    pub(super) fn flush(&mut self, number: u32) {
        let outputs = match &mut self.hosts[number as usize] {
            Host::Liar(liar) => {
                let sent = liar.outputs();
                return sent.into_iter().for_each(|it| self.send(number, it));
            }
            Host::Correct(node) => node.outputs(),
            Host::Logged(logged) => logged.commit().unwrap_or_else(|_| {
                self.violations.push(Violation::Failed(number));
                Vec::new()
            }),
            Host::Killed(_) => return,
        };
        for output in outputs {
            if let Output::Host(delivered) = &output {
                self.deliver(number, delivered);
            }
            for (to, bytes) in output.to_nodes(number, self.scenario.nodes) {
                self.look_at_output(bytes);
                self.send(number, Sent { to, bytes: bytes.to_vec(), is_lie: false });
            }
        }
    }

    fn send(&mut self, from: u32, sent: Sent) {
        let Sent { to, bytes, is_lie } = sent;
        let is_cut = |it: &mut Coalition| it.parts(to, from);
        if to >= self.scenario.nodes || self.coalition.as_mut().is_some_and(is_cut) {
            return;
        }
        match self.network.send(self.schedule.now(), Some((to, from)), &mut self.random) {
            Fate::Cut => self.note("Partition"),
            Fate::Lost => {}
            Fate::Arrives { at, again } => {
                if let Some(again) = again {
                    let bytes = bytes.clone();
                    self.schedule.at(again, Happening::Message { to, from, bytes, is_lie });
                }
                self.schedule.at(at, Happening::Message { to, from, bytes, is_lie });
            }
        }
    }
}
