// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs of state machines that cannot be cloned: each step is played once, and remembered.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// A deterministic state machine with an environment that only adds to what it has said.
pub trait Machine: Sized {
    /// An input.
    type Input: Clone + Eq + Hash + Send + Sync;
    /// The parts of a state that a model looks at.
    type Seen: Send + Sync;

    /// Takes an input.
    fn take(&mut self, input: &Self::Input);
    /// The hash of all that tells this state from others, with what it has said, and its parts.
    fn see(&mut self) -> ([u8; 32], Self::Seen);
}

/// A state of a machine, among those of one [`Runs`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RunId(u32);

/// All states of machines that were reached, each with the inputs of one way there.
pub struct Runs<M: Machine> {
    start: Box<dyn Fn(u32) -> M + Send + Sync>,
    known: RwLock<Known<M>>,
}

struct Known<M: Machine> {
    runs: Vec<Run<M>>,
    by_key: HashMap<(u32, [u8; 32]), RunId>,
    next: HashMap<(RunId, Vec<M::Input>), RunId>,
}

struct Run<M: Machine> {
    node: u32,
    inputs: Vec<M::Input>,
    seen: Arc<M::Seen>,
}

impl<M: Machine> Runs<M> {
    /// Runs of nodes that `start` makes.
    pub fn new(start: impl Fn(u32) -> M + Send + Sync + 'static) -> Self {
        let known = Known { runs: Vec::new(), by_key: HashMap::new(), next: HashMap::new() };
        Self { start: Box::new(start), known: RwLock::new(known) }
    }

    /// A node before its first input.
    pub fn first(&self, node: u32) -> RunId {
        self.insert(node, Vec::new(), (self.start)(node))
    }

    /// A node after some inputs more.
    pub fn after(&self, run: RunId, more: &[M::Input]) -> RunId {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let step = (run, more.to_vec());
        if let Some(next) = known.next.get(&step) {
            return *next;
        }
        drop(known);
        let (node, mut inputs, mut machine) = self.replayed(run);
        more.iter().for_each(|it| machine.take(it));
        inputs.extend_from_slice(more);
        let next = self.insert(node, inputs, machine);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.next.insert(step, next);
        next
    }

    /// A node in a state that was reached.
    pub fn machine(&self, run: RunId) -> M {
        self.replayed(run).2
    }

    fn replayed(&self, run: RunId) -> (u32, Vec<M::Input>, M) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let before = &known.runs[run.0 as usize];
        let (node, inputs) = (before.node, before.inputs.clone());
        drop(known);
        let mut machine = (self.start)(node);
        inputs.iter().for_each(|it| machine.take(it));
        (node, inputs, machine)
    }

    /// The parts of a state.
    pub fn see(&self, run: RunId) -> Arc<M::Seen> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.runs[run.0 as usize].seen.clone()
    }

    /// How many states of nodes were reached, and how many steps were played.
    pub fn count(&self) -> (usize, usize) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        (known.runs.len(), known.next.len())
    }

    fn insert(&self, node: u32, inputs: Vec<M::Input>, mut machine: M) -> RunId {
        let (key, seen) = machine.see();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let next = RunId(u32::try_from(known.runs.len()).unwrap_or(u32::MAX));
        let run = *known.by_key.entry((node, key)).or_insert(next);
        if run == next {
            known.runs.push(Run { node, inputs, seen: Arc::new(seen) });
        }
        run
    }
}
