// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a run.

use smt_replica::ServiceKind;
use smt_simulation::Random;

use crate::sim::attack::Attack;
use crate::sim::course::Course;
use crate::sim::plan::Plan;

/// A run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// All that is random in the run follows from it.
    pub seed: u64,
    /// How many replicas there are.
    pub replicas: u32,
    /// The service.
    pub service: ServiceKind,
    /// The replicas that lie, and how.
    pub liars: Vec<(u32, Attack)>,
    /// The replicas that crash and restart, at most once at a time.
    pub crashes: Vec<u32>,
    /// Whether liars run a second device with the counters of the first: what a rollback comes to.
    pub is_rolled_back: bool,
    /// Whether correct replicas have logs, and are killed: any one, or all at once. A kill is no
    /// fault of the f, since the replica goes on where its log ends.
    pub has_logs: bool,
    /// Whether replicas with logs send before what they send is durable: what they must not do.
    pub sends_before_sync: bool,
    /// Whether logs that were begun anew take the place of others before they are durable: what
    /// they must not do.
    pub replaces_before_sync: bool,
    /// The plan of liars that work together, if any do.
    pub plan: Option<Plan>,
    /// Lengths and sizes.
    pub(crate) course: Course,
}

impl Scenario {
    /// The scenario of a seed: three or five replicas, of which f lie or crash.
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let replicas = if random.chance(75) { 3 } else { 5 };
        let service = if random.chance(50) { ServiceKind::Counter } else { ServiceKind::KeyValue };
        let mut scenario = Self {
            seed,
            replicas,
            service,
            liars: Vec::new(),
            crashes: Vec::new(),
            is_rolled_back: false,
            has_logs: false,
            sends_before_sync: false,
            replaces_before_sync: false,
            plan: None,
            course: Course::default(),
        };
        let mut faulty: Vec<u32> = (0..replicas).collect();
        while faulty.len() > (replicas / 2) as usize {
            faulty.remove(random.below(faulty.len() as u64) as usize);
        }
        for mut device in faulty {
            match random.below(10) {
                0 => {}
                1 | 2 => scenario.crashes.push(device),
                _ => {
                    let attack = Attack::ALL[random.below(Attack::ALL.len() as u64) as usize];
                    // Leaders lie more often than not in view 0, which all are in.
                    let is_taken = scenario.liars.iter().any(|it| it.0 == 0);
                    let is_crash = scenario.crashes.contains(&0);
                    if attack.is_of_leader() && !is_taken && !is_crash && random.chance(80) {
                        device = 0;
                    }
                    scenario.liars.push((device, attack));
                }
            }
        }
        scenario
    }

    /// The same with logs. Crashes that lose a log, and begin a new epoch, stay.
    pub fn with_logs(seed: u64) -> Self {
        Self { has_logs: true, ..Self::of_seed(seed) }
    }
}
