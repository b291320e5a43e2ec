// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often the runs of a search had what they search for.

use std::collections::BTreeMap;
use std::fmt;

use crate::sim::liar::Attack;
use crate::sim::world::{Outcome, Violation};

/// The sum of a search.
#[derive(Clone, Debug, Default)]
pub struct Report {
    runs: u64,
    has_logs: bool,
    counts: BTreeMap<String, u64>,
    violations: Vec<(u64, Vec<Violation>)>,
}

impl Report {
    /// No run yet, of a search in which nodes have logs.
    pub fn with_logs() -> Self {
        Self { has_logs: true, ..Self::default() }
    }

    /// Adds the outcome of a seed.
    pub fn add(&mut self, seed: u64, outcome: Outcome) {
        self.runs += 1;
        for event in outcome.events {
            *self.counts.entry(event).or_default() += 1;
        }
        if !outcome.violations.is_empty() {
            self.violations.push((seed, outcome.violations));
        }
    }

    /// The violations, by seed.
    pub fn violations(&self) -> &[(u64, Vec<Violation>)] {
        &self.violations
    }

    /// The events of less than 1 % of the runs: the search does not try it enough.
    pub fn rare(&self) -> Vec<String> {
        let count = |event: &String| self.counts.get(event).copied().unwrap_or(0);
        self.expected().filter(|event| count(event) * 100 < self.runs).collect()
    }

    /// All that a search must have tried: kills too, if nodes had logs.
    fn expected(&self) -> impl Iterator<Item = String> {
        let others = ["stop", "view change", "partition", "client that lies", "liar found faulty"];
        let kills = ["kill", "kill of all", "write that is not synced"];
        let kills = kills.into_iter().filter(|_| self.has_logs);
        let attacks = Attack::ALL.into_iter().map(|it| format!("{it:?}"));
        attacks.chain(others.into_iter().chain(kills).map(str::to_owned))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<34} {:>8} {:>7}", "in the runs", "runs", "%")?;
        for event in self.expected() {
            let count = self.counts.get(&event).copied().unwrap_or(0);
            let percent = count as f64 * 100.0 / self.runs.max(1) as f64;
            writeln!(f, "{event:<34} {count:>8} {percent:>7.1}")?;
        }
        writeln!(f, "{:<34} {:>8}", "all", self.runs)?;
        for (seed, violations) in &self.violations {
            writeln!(f, "seed {seed}: {violations:?}")?;
        }
        write!(f, "{} violations", self.violations.len())
    }
}
