// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of what was explored: how often each kind of action was tried, and changed something.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::action::Action;

/// How often a kind of action could happen in a state, and how often it changed a correct node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Ways of all states in which it could happen.
    pub tried: usize,
    /// Those of them after which a correct node was in another state.
    pub changed: usize,
}

/// Counts of one model.
#[derive(Debug)]
pub struct Counts {
    actions: Mutex<BTreeMap<String, Count>>,
    ways: AtomicUsize,
    ways_max: AtomicUsize,
    closings: AtomicUsize,
}

impl Default for Counts {
    fn default() -> Self {
        let (ways, ways_max) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        Self { actions: <_>::default(), ways, ways_max, closings: AtomicUsize::new(0) }
    }
}

impl Counts {
    pub(crate) fn count<E: Debug, L: Debug>(&self, action: &Action<E, L>, changes: bool) {
        self.ways.fetch_add(1, Ordering::Relaxed);
        let mut actions = self.actions.lock().unwrap_or_else(PoisonError::into_inner);
        let count = actions.entry(action.kind()).or_default();
        count.tried += 1;
        count.changed += usize::from(changes);
    }

    /// After so many ways to states nothing more happens; without a number there is no end.
    pub(crate) fn end_after(&self, ways: Option<usize>) {
        self.ways_max.store(ways.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Whether so many ways were tried.
    pub(crate) fn are_all(&self) -> bool {
        self.ways.load(Ordering::Relaxed) >= self.ways_max.load(Ordering::Relaxed)
    }

    /// Counts a closing that was played.
    pub(crate) fn close(&self) {
        self.closings.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts of each kind of action.
    pub fn actions(&self) -> BTreeMap<String, Count> {
        self.actions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many fair closings were played.
    pub fn closings(&self) -> usize {
        self.closings.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, Count { tried, changed }) in self.actions() {
            writeln!(f, "{kind:<20} {tried:>9} tried {changed:>9} changed a correct node")?;
        }
        write!(f, "{} closings", self.closings())
    }
}
