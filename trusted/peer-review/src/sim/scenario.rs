// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a run.

use smt_replica::sim::Conditions;
use smt_simulation::Random;

use crate::group::Options;
use crate::sim::attack::Attack;
use crate::sim::group;
use crate::sim::plan::{Plan, write};
use crate::tree::Tree;

/// The children of a node, at most.
pub(super) const DEGREE: u32 = 2;

/// The length of a run, and the numbers of its group.
#[derive(Clone, Debug)]
pub struct Course {
    /// When the network becomes honest.
    pub honest: u64,
    /// When the run ends, or is given up if liars have a plan.
    pub end: u64,
    /// Parts of the stream while the network is bad.
    pub bad_parts: usize,
    /// Parts of the stream in all.
    pub parts: usize,
    /// Percent of the ticks in which the source has a part.
    pub rate: u64,
    /// Cuts are less than this longer than 100 units of time.
    pub cut: u64,
    /// Numbers of the protocol.
    pub options: Options,
}

impl Default for Course {
    /// The course of runs without a plan.
    fn default() -> Self {
        Self {
            honest: 2000,
            end: 8000,
            bad_parts: 6,
            parts: 14,
            rate: 10,
            cut: 800,
            options: group::options(),
        }
    }
}

impl Course {
    /// Small sizes. One that is long has more entries and messages than all that is kept.
    fn with_plan(random: &mut Random, is_long: bool) -> Self {
        let options = Options {
            interval: 8 + random.below(9),
            segment: 8 + random.below(17) as usize,
            retained: if is_long { RETAINED } else { 4096 },
            ..group::options()
        };
        let honest = if is_long { 6000 } else { 2000 + random.below(4000) };
        Self {
            honest,
            end: honest + 80_000,
            bad_parts: if is_long { 60 } else { 8 },
            parts: if is_long { 2 * RETAINED } else { 16 },
            rate: if is_long { 25 } else { 10 },
            options,
            ..Self::default()
        }
    }
}

/// Entries that a node keeps for its witnesses, and messages for a receiver, in a long run.
const RETAINED: usize = 48;

/// A run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// All that is random in the run follows from it.
    pub seed: u64,
    /// How many nodes there are.
    pub nodes: u32,
    /// How many of a node's witnesses lie at most: each node has one more.
    pub faults: u32,
    /// The nodes that lie, and how.
    pub liars: Vec<(u32, Attack)>,
    /// Whether liars run a second device with the counters of the first: what a rollback comes to.
    pub is_rolled_back: bool,
    /// The plan of liars that work together, if any do.
    pub plan: Option<Plan>,
    /// Whether correct nodes have journals, and are killed: any one, or all at once. A kill is no
    /// fault, since the node goes on where its journal ends.
    pub has_logs: bool,
    /// Lengths and sizes.
    pub course: Course,
}

impl Scenario {
    /// The scenario of a seed: four to six nodes, of which one or two lie or stop.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let nodes = 4 + random.below(3) as u32;
        let faults = if nodes > 4 && random.chance(40) { 2 } else { 1 };
        let mut scenario = Self::new(seed, nodes, faults);
        for _ in 0..faults {
            let attack = Attack::ALL[random.below(Attack::ALL.len() as u64) as usize];
            let places: Vec<u32> = scenario.places(attack).collect();
            if !places.is_empty() && !random.chance(5) {
                let place = places[random.below(places.len() as u64) as usize];
                scenario.liars.push((place, attack));
            }
        }
        scenario
    }

    fn new(seed: u64, nodes: u32, faults: u32) -> Self {
        Self {
            seed,
            nodes,
            faults,
            liars: Vec::new(),
            is_rolled_back: false,
            plan: None,
            has_logs: false,
            course: Course::default(),
        }
    }

    /// The scenario of a seed in which liars work together by a plan: one of four, or two of five
    /// or six. A tenth of the seeds are longer than all that is kept.
    #[must_use]
    pub fn with_plan(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x91a5_0000_0000);
        let nodes = 4 + random.below(3) as u32;
        let faults = if nodes > 4 && random.chance(80) { 2 } else { 1 };
        let is_long = Conditions::is_long(seed);
        let course = Course::with_plan(&mut random, is_long);
        // Nodes that have children can do more.
        let mut others: Vec<u32> = (0..nodes).collect();
        let liars = (0..faults).map(|_| {
            let most = if random.chance(60) { 3.min(others.len()) } else { others.len() };
            others.remove(random.below(most as u64) as usize)
        });
        let liars = liars.collect();
        let tree = Tree::new(nodes, DEGREE);
        let plan = Plan::draw(&mut random, nodes, liars, is_long, |it| write(it, &tree));
        Self { plan: Some(plan), course, ..Self::new(seed, nodes, faults) }
    }

    /// The same with journals, or without.
    #[must_use]
    pub fn and_logs(mut self, has_logs: bool) -> Self {
        self.has_logs = has_logs;
        self
    }

    /// Whether a node lies.
    pub(super) fn is_liar(&self, node: u32) -> bool {
        let is_together = self.plan.as_ref().is_some_and(|it| it.liars.contains(&node));
        is_together || self.attack(node).is_some()
    }

    /// The way in which a node lies in the whole run.
    pub(super) fn attack(&self, node: u32) -> Option<Attack> {
        self.liars.iter().find(|it| it.0 == node).map(|it| it.1)
    }

    /// The nodes of the tree that can lie in this way, and do not lie yet.
    fn places(&self, attack: Attack) -> impl Iterator<Item = u32> {
        let tree = Tree::new(self.nodes, DEGREE);
        let is_free = |it: &u32| !self.liars.iter().any(|liar| liar.0 == *it);
        let free = (0..self.nodes).filter(is_free);
        free.filter(move |it| attack.is_possible(*it, &tree))
    }

    /// The same run with one liar, who lies in this way.
    #[must_use]
    pub fn with_liar(mut self, attack: Attack) -> Self {
        self.liars.clear();
        let places: Vec<u32> = self.places(attack).collect();
        if let Some(place) = places.get(self.seed as usize % places.len().max(1)) {
            self.liars.push((*place, attack));
        }
        self
    }
}
