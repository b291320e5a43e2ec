// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a run.

use smt_simulation::Random;

use crate::sim::attack::Attack;
use crate::tree::Tree;

/// The children of a node, at most.
pub(super) const DEGREE: u32 = 2;

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
}

impl Scenario {
    /// The scenario of a seed: four to six nodes, of which one or two lie or stop.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let nodes = 4 + random.below(3) as u32;
        let faults = if nodes > 4 && random.chance(40) { 2 } else { 1 };
        let mut scenario = Self { seed, nodes, faults, liars: Vec::new(), is_rolled_back: false };
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

    /// The nodes of the tree that can lie in this way, and do not lie yet.
    pub fn places(&self, attack: Attack) -> impl Iterator<Item = u32> {
        let tree = Tree::new(self.nodes, DEGREE);
        let is_free = |it: &u32| !self.liars.iter().any(|liar| liar.0 == *it);
        (0..self.nodes).filter(is_free).filter(move |it| {
            let has_children = tree.children(*it).next().is_some();
            (has_children || !attack.is_of_parent()) && (*it > 0 || !attack.is_of_child())
        })
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
