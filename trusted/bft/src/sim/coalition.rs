// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replicas that lie together by a plan: the steps of theirs alone.

mod statements;
mod states;

use std::collections::BTreeSet;

use smt_replica::AnyService;

use crate::message::{State, Statement, decode};
use crate::replica::Replica;
use crate::sim::step::Step;
use crate::sim::system::Bft;
use crate::stream_checkpoint::StreamState;

/// States and places of before that are kept, at most.
const KEPT: usize = 12;

pub(super) type Coalition = smt_replica::sim::Coalition<Bft>;
pub(super) type Correct<'a> = smt_replica::sim::Correct<'a, Bft>;

/// The statements of a liar in this epoch, for choices that depend on them.
#[derive(Default)]
pub(super) struct Notes {
    /// The latest view that it has promised.
    promised: u64,
    /// The views that it has entered.
    entered: BTreeSet<u64>,
}

impl Notes {
    pub(super) fn note(&mut self, body: &[u8]) {
        match decode(body) {
            Some(Statement::ViewChange { view }) => self.promised = self.promised.max(view),
            Some(Statement::Enter { view, .. }) => {
                self.entered.insert(view);
            }
            _ => {}
        }
    }
}

/// All that liars remember.
#[derive(Default)]
pub(super) struct Memory {
    /// The last batch that they have ordered: its view and its place.
    ordered: (u64, u64),
    old_states: Vec<State>,
    old_places: Vec<StreamState>,
}

/// Keeps states and places of streams that are right now, for later.
pub(super) fn remember(liars: &mut Coalition, correct: &Correct<'_>) {
    if !liars.random.chance(3) {
        return;
    }
    let at = liars.random.below(u64::from(liars.nodes)) as usize;
    let of = correct.get(at).copied().flatten();
    let Some(state) = of.and_then(states::state_of) else {
        return;
    };
    if liars.memory.old_states.len() == KEPT {
        let at = liars.random.below(KEPT as u64) as usize;
        liars.memory.old_states.remove(at);
    }
    liars.memory.old_states.push(state.clone());
    liars.memory.old_places.extend(state.streams);
    while liars.memory.old_places.len() > KEPT * 2 {
        let at = liars.random.below(liars.memory.old_places.len() as u64) as usize;
        liars.memory.old_places.remove(at);
    }
}

pub(super) fn take(liars: &mut Coalition, step: Step, correct: &Correct<'_>) {
    let of_step = |it: u32| correct[it as usize];
    match step {
        Step::State { to, of, recipe } => states::give_state(liars, to, of, recipe, correct),
        Step::FalseCheckpoint { by } => statements::state_false_checkpoint(liars, by),
        Step::Pad { by } => statements::pad(liars, by),
        Step::Restart { by } => statements::restart(liars, by),
        Step::Want { by, of, led, ahead } => statements::want(liars, by, of_step(of), led, ahead),
        Step::Open { of } => with(of_step(of), |of| statements::open(liars, of)),
        Step::Enter { by, of, is_newest } => {
            with(of_step(of), |of| statements::enter(liars, by, of, is_newest));
        }
        Step::Order { of } => with(of_step(of), |of| statements::order(liars, of)),
        Step::Commit { by, of, is_newest } => {
            with(of_step(of), |of| statements::commit(liars, by, of, is_newest));
        }
        Step::Place { by, of, is_true } => {
            with(of_step(of), |of| statements::place(liars, by, of, is_true));
        }
    }
}

fn with(of: Option<&Replica<AnyService>>, step: impl FnOnce(&Replica<AnyService>)) {
    of.map(step);
}
