// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a run.

use smt_replica::ServiceKind;
use smt_replica::sim::Conditions;
use smt_simulation::Random;

use crate::sim::attack::Attack;
use crate::sim::plan::{Plan, write};

/// A run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The conditions that runs of all systems have. The service is the counter.
    pub conditions: Conditions,
    /// The nodes that lie, and how.
    pub liars: Vec<(u32, Attack)>,
    /// The nodes that stop for ever, which count as faulty.
    pub stops: Vec<u32>,
    /// The plan of liars that work together, if any do.
    pub plan: Option<Plan>,
}

impl Scenario {
    /// The scenario of a seed: three or five nodes, of which f lie or stop.
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
        let mut conditions = Conditions::new(seed, nodes, ServiceKind::Counter);
        conditions.course.has_to_catch_up = true;
        Self { conditions, liars, stops, plan: None }
    }

    /// The same with logs.
    pub fn with_logs(seed: u64) -> Self {
        Self::of_seed(seed).and_logs(true)
    }

    /// The same with logs, or without.
    #[must_use]
    pub fn and_logs(mut self, has_logs: bool) -> Self {
        self.conditions.has_logs = has_logs;
        self
    }

    /// The scenario of a seed in which f liars of three or five work together. A tenth of the seeds
    /// are long.
    pub fn with_plan(seed: u64) -> Self {
        let (conditions, plan) = Conditions::with_plan(seed, ServiceKind::Counter, write);
        Self { conditions, liars: Vec::new(), stops: Vec::new(), plan: Some(plan) }
    }

    /// Whether a node lies.
    pub(super) fn is_liar(&self, node: u32) -> bool {
        let is_together = self.plan.as_ref().is_some_and(|it| it.liars.contains(&node));
        is_together || self.liars.iter().any(|it| it.0 == node)
    }
}
