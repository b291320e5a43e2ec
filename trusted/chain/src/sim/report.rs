// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often the runs of a search had what they search for.

use std::collections::BTreeMap;
use std::fmt;

use crate::sim::attack::Attack;
use crate::sim::history::Violation;
use crate::sim::world::Outcome;

/// Events beside attacks.
const EVENTS: [&str; 5] =
    ["Reconfiguration", "Partition", "ByzantineClient", "LiarFound", "ShortLog"];

/// Events of runs with logs.
const KILLS: [&str; 5] = ["Kill", "KillOfAll", "NewLog", "KillAtNewLog", "Reissue"];

/// The sum of a search.
#[derive(Clone, Debug, Default)]
pub struct Report {
    runs: u64,
    counts: BTreeMap<String, u64>,
    violations: Vec<(u64, Vec<Violation>)>,
}

impl Report {
    /// Adds a run.
    pub fn add(&mut self, seed: u64, outcome: Outcome) {
        self.runs += 1;
        for event in outcome.events {
            *self.counts.entry(event).or_default() += 1;
        }
        if !outcome.violations.is_empty() {
            self.violations.push((seed, outcome.violations));
        }
    }

    /// Seeds with violations.
    #[must_use]
    pub fn violations(&self) -> &[(u64, Vec<Violation>)] {
        &self.violations
    }

    /// All that happened in less than 1 % of the runs.
    #[must_use]
    pub fn rare(&self) -> Vec<String> {
        let is_rare = |it: &String| self.counts.get(it).copied().unwrap_or(0) * 100 < self.runs;
        self.all().filter(is_rare).collect()
    }

    fn all(&self) -> impl Iterator<Item = String> + use<> {
        let attacks = Attack::ALL.into_iter().map(|it| format!("{it:?}"));
        let has_logs = KILLS.iter().any(|it| self.counts.contains_key(*it));
        let kills = KILLS.into_iter().filter(move |_| has_logs);
        attacks.chain(EVENTS.into_iter().chain(kills).map(str::to_owned))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} runs", self.runs)?;
        for event in self.all() {
            let count = self.counts.get(&event).copied().unwrap_or(0);
            writeln!(f, "{event:<16} {count:>8}")?;
        }
        for (seed, violations) in &self.violations {
            writeln!(f, "seed {seed}: {violations:?}")?;
        }
        write!(f, "{} violations", self.violations.len())
    }
}
