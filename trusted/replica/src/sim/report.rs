// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often the runs of a search had what they search for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};

use crate::sim::step::StepName;

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome<V> {
    /// The names of all that happened at least once.
    pub events: BTreeSet<String>,
    /// The properties that do not hold.
    pub violations: Vec<V>,
}

/// In how many runs something must have happened, for the search to have tried it enough.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Least {
    /// In a hundredth of them.
    Percent,
    /// In one.
    Once,
    /// In none: it is counted alone.
    Never,
}

/// Something that the runs of a search may have.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Its name.
    pub name: String,
    /// In how many runs it must happen.
    pub least: Least,
}

impl Expected {
    /// Things that must happen in a hundredth of the runs each, by their names.
    pub fn each<T: ToString>(names: impl IntoIterator<Item = T>) -> impl Iterator<Item = Self> {
        names.into_iter().map(|it| Self { name: it.to_string(), least: Least::Percent })
    }

    /// Attacks, by their names in the program.
    pub fn attacks<A: Debug>(attacks: &[A]) -> impl Iterator<Item = Self> {
        Self::each(attacks.iter().map(|it| format!("{it:?}")))
    }

    /// All that liars do: each by itself in one of these ways, or together in these steps and those
    /// of all systems.
    pub fn lies<A: Debug, X: Copy + Debug>(
        alone: &[A],
        together: &[X],
        has_plans: bool,
    ) -> Vec<Self> {
        match has_plans {
            true => Self::steps(StepName::all(together)).collect(),
            false => Self::attacks(alone).collect(),
        }
    }

    /// The steps of liars that work together: each must be taken in one run, and it is counted in
    /// how many a correct node did something because of it.
    pub fn steps<X: Copy + Debug>(
        steps: impl IntoIterator<Item = StepName<X>>,
    ) -> impl Iterator<Item = Self> {
        let steps: Vec<StepName<X>> = steps.into_iter().collect();
        let bit: Vec<String> = steps.iter().filter_map(StepName::bit).collect();
        let taken = steps.into_iter().map(|it| Self { name: it.name(), least: Least::Once });
        taken.chain(bit.into_iter().map(|name| Self { name, least: Least::Never }))
    }

    /// All that happens to nodes with logs, if they have some.
    pub fn kills(has_logs: bool) -> impl Iterator<Item = Self> {
        let names = ["Kill", "KillOfAll", "UnsyncedWrite", "NewLog", "KillAtNewLog"];
        Self::each(names.into_iter().filter(move |_| has_logs))
    }
}

/// The sum of a search.
#[derive(Clone, Debug)]
pub struct Report<V> {
    expected: Vec<Expected>,
    runs: u64,
    counts: BTreeMap<String, u64>,
    violations: Vec<(u64, Vec<V>)>,
}

impl<V: Debug> Report<V> {
    /// No run yet, of a search for all this.
    pub fn new(expected: impl IntoIterator<Item = Expected>) -> Self {
        let expected = expected.into_iter().collect();
        Self { expected, runs: 0, counts: BTreeMap::new(), violations: Vec::new() }
    }

    /// Adds the outcome of a seed.
    pub fn add(&mut self, seed: u64, outcome: Outcome<V>) {
        self.runs += 1;
        for event in outcome.events {
            *self.counts.entry(event).or_default() += 1;
        }
        if !outcome.violations.is_empty() {
            self.violations.push((seed, outcome.violations));
        }
    }

    /// The violations, by seed.
    #[must_use]
    pub fn violations(&self) -> &[(u64, Vec<V>)] {
        &self.violations
    }

    /// All that happened in too few runs: the search does not try it enough.
    #[must_use]
    pub fn rare(&self) -> Vec<String> {
        let is_rare = |it: &&Expected| match it.least {
            Least::Never => false,
            Least::Once => self.count(&it.name) == 0,
            Least::Percent => self.count(&it.name) * 100 < self.runs,
        };
        self.expected.iter().filter(is_rare).map(|it| it.name.clone()).collect()
    }

    fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

impl<V: Debug> fmt::Display for Report<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<34} {:>8} {:>7}", "in the runs", "runs", "%")?;
        for Expected { name, .. } in &self.expected {
            let count = self.count(name);
            let percent = count as f64 * 100.0 / self.runs.max(1) as f64;
            writeln!(f, "{name:<34} {count:>8} {percent:>7.1}")?;
        }
        writeln!(f, "{:<34} {:>8}", "all", self.runs)?;
        for (seed, violations) in &self.violations {
            writeln!(f, "seed {seed}: {violations:?}")?;
        }
        write!(f, "{} violations", self.violations.len())
    }
}
