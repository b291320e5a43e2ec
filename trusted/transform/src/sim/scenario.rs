// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a run.

use smt_simulation::Random;

use crate::sim::liar::Attack;

/// A run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// All that is random in the run follows from it.
    pub seed: u64,
    /// How many nodes there are: three or five.
    pub nodes: u32,
    /// The nodes that lie, and how.
    pub liars: Vec<(u32, Attack)>,
    /// The nodes that stop for ever, which count as faulty.
    pub stops: Vec<u32>,
    /// Whether correct nodes have logs, and are killed: any one, or all at once. A kill is no fault
    /// of the f, since the node goes on where its log ends.
    pub has_logs: bool,
    /// Whether nodes with logs send before what they send is durable: what they must not do.
    pub sends_before_sync: bool,
}

impl Scenario {
    /// The scenario of a seed: f nodes lie or stop.
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let nodes = if random.chance(75) { 3 } else { 5 };
        let (mut liars, mut stops) = (Vec::new(), Vec::new());
        let mut faulty: Vec<u32> = (0..nodes).collect();
        while faulty.len() > (nodes / 2) as usize {
            faulty.remove(random.below(faulty.len() as u64) as usize);
        }
        // The first leader lies more often than not.
        if !faulty.contains(&0) && random.chance(50) {
            faulty[0] = 0;
        }
        for node in faulty {
            if random.chance(10) {
                stops.push(node);
            } else {
                let attack = random.below(Attack::ALL.len() as u64) as usize;
                liars.push((node, Attack::ALL[attack]));
            }
        }
        let (has_logs, sends_before_sync) = (false, false);
        Self { seed, nodes, liars, stops, has_logs, sends_before_sync }
    }

    /// The same with logs.
    pub fn with_logs(seed: u64) -> Self {
        Self { has_logs: true, ..Self::of_seed(seed) }
    }
}
