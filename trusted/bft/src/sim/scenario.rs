// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a run.

use smt_replica::ServiceKind;
use smt_replica::sim::{Conditions, Course};
use smt_simulation::Random;

use crate::sim::attack::Attack;
use crate::sim::plan::{Plan, write};

/// A run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The conditions that runs of all systems have.
    pub conditions: Conditions,
    /// The replicas that lie, and how.
    pub liars: Vec<(u32, Attack)>,
    /// The replicas that crash and restart, at most once at a time.
    pub crashes: Vec<u32>,
    /// Whether liars run a second device with the counters of the first: what a rollback comes to.
    pub is_rolled_back: bool,
    /// The plan of liars that work together, if any do.
    pub plan: Option<Plan>,
}

impl Scenario {
    /// The scenario of a seed: three or five replicas, of which f lie or crash.
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let replicas = if random.chance(75) { 3 } else { 5 };
        let service = if random.chance(50) { ServiceKind::Counter } else { ServiceKind::KeyValue };
        let mut scenario = Self {
            conditions: Conditions::new(seed, replicas, service),
            liars: Vec::new(),
            crashes: Vec::new(),
            is_rolled_back: false,
            plan: None,
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
        Self::of_seed(seed).and_logs(true)
    }

    /// The same with logs, or without.
    #[must_use]
    pub fn and_logs(mut self, has_logs: bool) -> Self {
        self.conditions.has_logs = has_logs;
        self
    }

    /// The scenario of a seed in which liars work together: f of three or five, or fewer beside
    /// replicas that recover. A tenth of the seeds are longer than all that is kept.
    pub fn with_plan(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x91a5_0000_0000);
        let replicas = if random.chance(40) { 3 } else { 5 };
        let faults = replicas / 2;
        let is_long = Conditions::is_long(seed);
        let mut others: Vec<u32> = (0..replicas).collect();
        let mut draw = |random: &mut Random| {
            let at = random.below(others.len() as u64) as usize;
            others.remove(at)
        };
        let recovering = match (random.below(10), faults) {
            (0, _) => faults,
            (1..=3, 2..) => 1,
            _ => 0,
        };
        let liars: Vec<u32> = (recovering..faults).map(|_| draw(&mut random)).collect();
        let crashing: Vec<u32> = (0..recovering).map(|_| draw(&mut random)).collect();
        let mut course = Course::with_plan(&mut random, is_long);
        course.crashes(&mut random, &crashing);
        let mut correct: Vec<u32> = (0..replicas).filter(|it| !liars.contains(it)).collect();
        while correct.len() > recovering as usize {
            correct.remove(random.below(correct.len() as u64) as usize);
        }
        course.stops = random.chance(70).then_some(correct);
        let plan = Plan::draw(&mut random, replicas, liars, is_long, write);
        let service = Self::of_seed(seed).conditions.service;
        let conditions = Conditions { course, ..Conditions::new(seed, replicas, service) };
        let (liars, crashes) = (Vec::new(), Vec::new());
        Self { conditions, liars, crashes, is_rolled_back: false, plan: Some(plan) }
    }
}
