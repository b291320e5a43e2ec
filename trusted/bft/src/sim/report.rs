// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often the runs of a search had what they search for.

use std::collections::BTreeMap;
use std::fmt;

use crate::sim::attack::Attack;
use crate::sim::history::Violation;
use crate::sim::step::StepName;
use crate::sim::world::Outcome;

/// Something that a search must have tried.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Event {
    /// A replica lied in this way.
    Attack(Attack),
    /// A correct replica entered a later view.
    ViewChange,
    /// A correct replica crashed.
    Crash,
    /// It is a member again, in a new epoch.
    Recovery,
    /// A correct replica took the state of others.
    StateTransfer,
    /// A correct replica went on in a stream from a checkpoint of it.
    StreamJump,
    /// A checkpoint became stable.
    Checkpoint,
    /// A client lied.
    ByzantineClient,
    /// Two replicas were cut off from each other.
    Partition,
    /// A correct replica with a log was killed.
    Kill,
    /// All correct replicas were killed at once.
    KillOfAll,
    /// A replica was killed between a write and its sync.
    UnsyncedWrite,
    /// A log was begun anew with a snapshot.
    NewLog,
    /// A replica was killed before or after a new log had the place of the old one.
    KillAtNewLog,
    /// A device issued again what it had given before its host was killed.
    Reissue,
    /// Liars who work together took this step.
    Step(StepName),
    /// It changed what a correct replica did.
    StepBit(StepName),
    /// All correct replicas caught up, and went on without those that stopped for good and without
    /// liars.
    Closing,
}

impl Event {
    /// All that is counted. Only runs with logs have kills.
    pub fn all(has_logs: bool) -> impl Iterator<Item = Self> {
        let others = [
            Self::ViewChange,
            Self::Crash,
            Self::Recovery,
            Self::StateTransfer,
            Self::StreamJump,
            Self::Checkpoint,
            Self::ByzantineClient,
            Self::Partition,
        ];
        let kills = [
            Self::Kill,
            Self::KillOfAll,
            Self::UnsyncedWrite,
            Self::NewLog,
            Self::KillAtNewLog,
            Self::Reissue,
        ];
        let kills = kills.into_iter().filter(move |_| has_logs);
        Attack::ALL.into_iter().map(Self::Attack).chain(others).chain(kills)
    }
}

impl Event {
    /// All that only runs have in which liars work together. Clients see a wrong answer, and no
    /// correct replica does.
    fn of_plans() -> impl Iterator<Item = Self> {
        let bites = StepName::ALL.into_iter().filter(|it| {
            let is_answer = matches!(it, StepName::AnswerWrong | StepName::AnswerAlike);
            !is_answer
        });
        let steps = StepName::ALL.into_iter().map(Self::Step);
        steps.chain(bites.map(Self::StepBit)).chain([Self::Closing])
    }
}

/// The sum of a search.
#[derive(Clone, Debug, Default)]
pub struct Report {
    runs: u64,
    counts: BTreeMap<Event, u64>,
    violations: Vec<(u64, Vec<Violation>)>,
}

impl Report {
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

    /// In how many runs something happened.
    pub fn count(&self, event: Event) -> u64 {
        self.counts.get(&event).copied().unwrap_or(0)
    }

    fn has_logs(&self) -> bool {
        self.count(Event::Kill) > 0
    }

    fn has_plans(&self) -> bool {
        StepName::ALL.into_iter().any(|it| self.count(Event::Step(it)) > 0)
    }

    /// All that is counted in runs like these.
    fn all(&self) -> impl Iterator<Item = Event> {
        let has_plans = self.has_plans();
        let of_plans = Event::of_plans().filter(move |_| has_plans);
        let others = Event::all(self.has_logs());
        others.filter(move |it| !has_plans || !matches!(it, Event::Attack(_))).chain(of_plans)
    }

    /// The violations, by seed.
    pub fn violations(&self) -> &[(u64, Vec<Violation>)] {
        &self.violations
    }

    /// The events of less than 1 % of the runs, and the steps of plans that no run had: the search
    /// does not try it enough.
    pub fn rare(&self) -> Vec<Event> {
        let is_rare = |event: &Event| match event {
            Event::StepBit(_) => false,
            Event::Step(_) => self.count(*event) == 0,
            _ => self.count(*event) * 100 < self.runs,
        };
        self.all().filter(is_rare).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<34} {:>8} {:>7}", "in the runs", "runs", "%")?;
        for event in self.all() {
            let (name, count) = (format!("{event:?}"), self.count(event));
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
