// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Explorations to the end, and up to a first violation.

use std::fmt;
use std::hash::Hash;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

/// The outcome of an exploration to the end.
#[derive(Debug)]
pub struct Report {
    /// How many states there are.
    pub states: usize,
    /// How many ways to a state were tried.
    pub ways: usize,
    /// The most actions of a shortest way to a state.
    pub depth: usize,
    /// How long it took.
    pub time: Duration,
    /// The properties that do not hold, each with a way to a state where it does not.
    pub violations: Vec<(&'static str, String)>,
    /// The situations that are not reached.
    pub unreached: Vec<&'static str>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, ways, depth, .. } = self;
        write!(f, "{states} states, {ways} ways, depth {depth}, {:.1} s", self.time.as_secs_f64())
    }
}

impl Report {
    /// Nothing was broken, and each situation was reached that tests a property.
    ///
    /// # Panics
    /// Otherwise; the message has the way to each violation.
    pub fn assert(&self) {
        let ways = self.violations.iter().map(|(name, way)| format!("{name}:\n{way}"));
        let ways: String = ways.collect();
        assert!(ways.is_empty(), "{ways}");
        assert!(self.unreached.is_empty(), "not reached: {:?}", self.unreached);
    }
}

/// Explores all states.
pub fn explore<M>(model: M, threads: usize) -> Report
where
    M: Model + Limited + Send + Sync + 'static,
    M::State: Clone + Hash + PartialEq + fmt::Debug + Send + Sync + 'static,
    M::Action: Clone + PartialEq + fmt::Debug,
{
    explore_some(model, threads, None)
}

/// A model that can end before all states are known.
pub trait Limited {
    /// Ends after so many ways to states; without a number there is no end.
    fn end_after(&self, ways: Option<usize>);
}

/// Explores states, the nearest first, up to so many ways to states. With one thread these are the
/// same each time.
pub fn explore_some<M>(model: M, threads: usize, ways: Option<usize>) -> Report
where
    M: Model + Limited + Send + Sync + 'static,
    M::State: Clone + Hash + PartialEq + fmt::Debug + Send + Sync + 'static,
    M::Action: Clone + PartialEq + fmt::Debug,
{
    let begin = Instant::now();
    let properties = model.properties();
    // A violation does not end it: states are counted all the same.
    model.end_after(ways);
    let checker = model.checker().threads(threads).finish_when(HasDiscoveries::All);
    let checker = checker.spawn_bfs().join();
    // A way is written again from the first state on.
    checker.model().end_after(None);
    let (mut violations, mut unreached) = (Vec::new(), Vec::new());
    for property in properties {
        let found = checker.discovery(property.name);
        match (&property.expectation, found) {
            (Expectation::Sometimes, None) => unreached.push(property.name),
            (Expectation::Always, Some(way)) => {
                violations.push((property.name, written(checker.model(), way)));
            }
            _ => {}
        }
    }
    let (states, ways) = (checker.unique_state_count(), checker.state_count());
    let (depth, time) = (checker.max_depth(), begin.elapsed());
    Report { states, ways, depth, time, violations, unreached }
}

/// Explores up to a state in which a property does not hold, and writes the way there. Nothing if
/// there is none within so many ways to states.
pub fn first_violation<M>(
    model: M,
    property: &'static str,
    threads: usize,
    ways: Option<usize>,
) -> Option<String>
where
    M: Model + Limited + Send + Sync + 'static,
    M::State: Clone + Hash + PartialEq + fmt::Debug + Send + Sync + 'static,
    M::Action: Clone + PartialEq + fmt::Debug,
{
    let found = HasDiscoveries::AnyOf([property].into());
    model.end_after(ways);
    let checker = model.checker().threads(threads).finish_when(found);
    let checker = checker.spawn_bfs().join();
    // A way is written again from the first state on.
    checker.model().end_after(None);
    checker.discovery(property).map(|way| written(checker.model(), way))
}

/// A way as lines of text.
fn written<M>(model: &M, way: Path<M::State, M::Action>) -> String
where
    M: Model,
    M::State: PartialEq + fmt::Debug,
    M::Action: Clone + PartialEq + fmt::Debug,
{
    let actions = way.into_actions();
    let lines = (1..).zip(&actions);
    lines.map(|(number, it)| format!("{number:>3}. {}\n", model.format_action(it))).collect()
}
