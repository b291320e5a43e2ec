// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts of a run that all systems have: its length, its sizes, and who crashes or stops.

use smt_simulation::Random;

use crate::any_service::ServiceKind;
use crate::group::Options;
use crate::sim::plan::{Plan, Writer};

/// A node that crashes, loses all, and restarts in a new epoch.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    /// The node.
    pub node: u32,
    /// When it crashes.
    pub at: u64,
    /// When it restarts.
    pub until: u64,
}

/// The conditions of a run.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// All that is random in the run follows from it.
    pub seed: u64,
    /// How many nodes there are.
    pub nodes: u32,
    /// The service.
    pub service: ServiceKind,
    /// Whether correct nodes have logs, and are killed: any one, or all at once. A kill is no fault
    /// of the f, since the node goes on where its log ends.
    pub has_logs: bool,
    /// Whether nodes with logs send before what they send is durable: what they must not do.
    pub sends_before_sync: bool,
    /// Whether logs that were begun anew take the place of others before they are durable: what
    /// they must not do.
    pub replaces_before_sync: bool,
    /// Lengths and sizes.
    pub course: Course,
}

impl Conditions {
    /// A run of ordinary length, without logs.
    #[must_use]
    pub fn new(seed: u64, nodes: u32, service: ServiceKind) -> Self {
        Self {
            seed,
            nodes,
            service,
            has_logs: false,
            sends_before_sync: false,
            replaces_before_sync: false,
            course: Course::default(),
        }
    }
}

/// One seed of this many is longer than all that is kept.
const LONG: u64 = 10;

impl Conditions {
    /// The conditions of a seed in which f liars of three or five work together, for systems whose
    /// nodes do not recover from a loss, and their plan. In some runs one of the liars is spared,
    /// and another node stops for good in the end.
    pub fn with_plan<X: Clone>(
        seed: u64,
        service: ServiceKind,
        write: impl FnOnce(&mut Writer<'_, X>),
    ) -> (Self, Plan<X>) {
        let mut random = Random::new(seed ^ 0x91a5_0000_0000);
        let nodes = if random.chance(40) { 3 } else { 5 };
        let is_long = Self::is_long(seed);
        let spared = u32::from(random.chance(25));
        let mut others: Vec<u32> = (0..nodes).collect();
        let mut draw = || others.remove(random.below(others.len() as u64) as usize);
        let liars: Vec<u32> = (spared..nodes / 2).map(|_| draw()).collect();
        let stops: Vec<u32> = (0..spared).map(|_| draw()).collect();
        let mut course = Course::with_plan(&mut random, is_long);
        course.stops = random.chance(70).then_some(stops);
        let plan = Plan::draw(&mut random, nodes, liars, is_long, write);
        (Self { course, ..Self::new(seed, nodes, service) }, plan)
    }

    /// Whether the run of a seed is longer than all that is kept.
    #[must_use]
    pub fn is_long(seed: u64) -> bool {
        seed % LONG == LONG - 1
    }
}

/// The course of a run.
#[derive(Clone, Debug)]
pub struct Course {
    /// When the network becomes honest.
    pub honest: u64,
    /// When the run is given up.
    pub end: u64,
    /// Operations of a client while the network is bad.
    pub bad_operations: usize,
    /// Operations of a client in all.
    pub operations: usize,
    /// Cuts are less than this longer than 100 units of time.
    pub cut: u64,
    /// Sizes, if others than in all runs.
    pub options: Option<Options>,
    /// Crashes with restarts. With the liars, f nodes at most are recovering at once.
    pub crashes: Vec<Crash>,
    /// The nodes that stop for good when all that are correct have caught up; the liars fall silent
    /// then, and clients make more requests. In some runs nobody stops.
    pub stops: Option<Vec<u32>>,
    /// Operations of a client after that.
    pub last_operations: usize,
    /// Whether all correct nodes must catch up.
    pub has_to_catch_up: bool,
}

impl Default for Course {
    /// The course of runs without a plan.
    fn default() -> Self {
        Self {
            honest: 3000,
            end: 60_000,
            bad_operations: 9,
            operations: 12,
            cut: 1200,
            options: None,
            crashes: Vec::new(),
            stops: None,
            last_operations: 0,
            has_to_catch_up: false,
        }
    }
}

impl Course {
    /// The moment after which the network is honest and nobody crashes.
    #[must_use]
    pub fn quiet(&self) -> u64 {
        let restarts = self.crashes.iter().map(|it| it.until);
        restarts.chain([self.honest]).max().unwrap_or(0)
    }

    /// Small sizes, so that all that is kept is soon too little. One that is long has more than all
    /// that is kept.
    pub fn with_plan(random: &mut Random, is_long: bool) -> Self {
        let interval = 2 + random.below(3);
        let window = interval * (2 + random.below(3));
        let options = Options {
            batch: 1 + random.below(4) as usize,
            operation: 1024,
            interval,
            window,
            pipeline: if random.chance(50) { 1 } else { window },
            retained: if random.chance(60) || is_long { 1 } else { 1500 },
            timeout: 3 + random.below(6) as u32,
        };
        let honest = if is_long { 16_000 } else { 5000 + random.below(5000) };
        Self {
            honest,
            end: honest + 150_000,
            bad_operations: if is_long { 120 } else { 9 },
            operations: if is_long { 130 } else { 12 },
            cut: if is_long { 8000 } else { 1200 },
            options: Some(options),
            last_operations: 4,
            has_to_catch_up: true,
            ..Self::default()
        }
    }

    /// Each of these crashes up to three times, and is away for a moment or for long.
    pub fn crashes(&mut self, random: &mut Random, crashing: &[u32]) {
        for &node in crashing {
            let mut last = 100;
            for _ in 0..1 + random.below(3) {
                let at = last + random.below(self.honest / 2);
                let away = if random.chance(30) { self.honest / 2 } else { 400 };
                let until = at + 20 + random.below(away);
                self.crashes.push(Crash { node, at, until });
                last = until + 100;
            }
        }
    }
}
