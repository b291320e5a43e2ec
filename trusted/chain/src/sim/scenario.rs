// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a run.

use smt_simulation::Random;

use crate::sim::attack::Attack;

/// A run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// All that is random in the run follows from it.
    pub seed: u64,
    /// How many nodes there are.
    pub nodes: u32,
    /// The nodes that lie, and how.
    pub liars: Vec<(u32, Attack)>,
    /// Whether liars run a second device with the counters of the first: what a rollback comes to.
    pub is_rolled_back: bool,
    /// Whether correct nodes have logs, and are killed. A kill is no fault of the f.
    pub has_logs: bool,
    /// Whether nodes with logs send before what they send is durable: what they must not do.
    pub sends_early: bool,
    /// Whether logs that were begun anew take the place of others before they are durable: what
    /// they must not do.
    pub replaces_early: bool,
}

impl Scenario {
    /// The scenario of a seed: three or five nodes, of which f lie or stop.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let nodes = if random.chance(75) { 3 } else { 5 };
        let mut faulty: Vec<u32> = (0..nodes).collect();
        while faulty.len() > (nodes / 2) as usize {
            faulty.remove(random.below(faulty.len() as u64) as usize);
        }
        let mut liars: Vec<(u32, Attack)> = Vec::new();
        for mut node in faulty {
            if random.chance(10) {
                continue;
            }
            let attack = Attack::ALL[random.below(Attack::ALL.len() as u64) as usize];
            // Heads lie more often than not in configuration 0.
            let is_taken = liars.iter().any(|it| it.0 == 0);
            if attack.is_of_head() && !is_taken && random.chance(80) {
                node = 0;
            }
            liars.push((node, attack));
        }
        Self {
            seed,
            nodes,
            liars,
            is_rolled_back: false,
            has_logs: false,
            sends_early: false,
            replaces_early: false,
        }
    }

    /// The same with logs.
    #[must_use]
    pub fn with_logs(seed: u64) -> Self {
        Self { has_logs: true, ..Self::of_seed(seed) }
    }
}
