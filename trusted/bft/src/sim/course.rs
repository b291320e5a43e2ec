// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The course of a run: its length, its sizes, and the replicas that crash or stop.

use smt_replica::Options;
use smt_simulation::Random;

use crate::sim::plan::Plan;
use crate::sim::scenario::Scenario;

/// One seed of this many is longer than all that is kept.
const LONG: u64 = 10;

/// A replica that crashes, loses all, and restarts in a new epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crash {
    pub(crate) device: u32,
    pub(crate) at: u64,
    pub(crate) until: u64,
}

/// The course of a run.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// When the network becomes honest, and when a run is given up.
    pub(crate) honest: u64,
    pub(crate) end: u64,
    /// Operations of a client while the network is bad, and in all.
    pub(crate) bad_operations: usize,
    pub(crate) operations: usize,
    /// Cuts are less than this longer than 100 units of time.
    pub(crate) cut: u64,
    /// Sizes, if others than in all runs.
    pub(crate) options: Option<Options>,
    /// Crashes with restarts. With the liars, f replicas at most are recovering at once.
    pub(crate) crashes: Vec<Crash>,
    /// The replicas that stop for good when all that are correct have caught up; the liars fall
    /// silent then, and clients make more requests. In some runs nobody stops.
    pub(crate) stops: Option<Vec<u32>>,
    /// Operations of a client after that.
    pub(crate) last_operations: usize,
    /// Whether all correct replicas must catch up.
    pub(crate) has_to_catch_up: bool,
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

impl Scenario {
    /// The scenario of a seed in which liars work together: f of three or five, or fewer beside
    /// replicas that recover. A tenth of the seeds are longer than all that is kept.
    pub fn with_plan(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x91a5_0000_0000);
        let replicas = if random.chance(40) { 3 } else { 5 };
        let faults = replicas / 2;
        let is_long = seed % LONG == LONG - 1;
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
        let plan = Plan::draw(&mut random, replicas, liars, is_long);
        let (liars, crashes) = (Vec::new(), Vec::new());
        let plan = Some(plan);
        Self { replicas, liars, crashes, plan, course, ..Self::of_seed(seed) }
    }

    /// The same without some steps of the liars' plan.
    #[must_use]
    pub fn without_steps(&self, steps: std::ops::Range<usize>) -> Self {
        let plan = self.plan.as_ref().map(|it| it.without(steps));
        Self { plan, ..self.clone() }
    }
}

impl Course {
    /// The moment after which the network is honest and nobody crashes.
    pub(crate) fn quiet(&self) -> u64 {
        let restarts = self.crashes.iter().map(|it| it.until);
        restarts.chain([self.honest]).max().unwrap_or(0)
    }

    /// Small sizes, so that all that is kept is soon too little.
    fn with_plan(random: &mut Random, is_long: bool) -> Self {
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
    fn crashes(&mut self, random: &mut Random, crashing: &[u32]) {
        for &device in crashing {
            let mut last = 100;
            for _ in 0..1 + random.below(3) {
                let at = last + random.below(self.honest / 2);
                let away = if random.chance(30) { self.honest / 2 } else { 400 };
                let until = at + 20 + random.below(away);
                self.crashes.push(Crash { device, at, until });
                last = until + 100;
            }
        }
    }
}
