// SPDX-License-Identifier: Apache-2.0 OR MIT
//! States that liars put together of parts that were attested, each by itself.

use std::sync::Arc;

use smt_replica::sim::{By, StepName as Common};
use smt_replica::{AnyService, Attested, Digest};

use crate::ledger::extend;
use crate::message::{Batch, Message, Opening, State, Statement, decode, encode};
use crate::replica::Replica;
use crate::sim::coalition::statements::{enter_one, false_place};
use crate::sim::coalition::{Coalition, Correct, KEPT};
use crate::sim::liar::wrong_snapshot;
use crate::sim::step::{Recipe, StepName};
use crate::view::View;

/// The state that a replica would give to others.
pub(super) fn state_of(of: &Replica<AnyService>) -> Option<State> {
    match of.state_for_others() {
        Some(Message::State(state)) => Some(*state),
        _ => None,
    }
}

/// The place of a state's checkpoint, and the hash of the log up to there.
fn checkpoint_of(state: &State) -> (u64, Digest) {
    let stated = state.proof.first().and_then(|it| decode(&it.body));
    match stated {
        Some(Statement::Checkpoint(it)) => (it.sequence, it.chain),
        _ => (0, [0; 32]),
    }
}

/// Batches from one place to another, as a replica has them in a view or has executed them.
fn batches(
    of: &Replica<AnyService>,
    view: &View,
    places: std::ops::RangeInclusive<u64>,
) -> Vec<Batch> {
    let executed = |place: u64| of.history.iter().find(|it| it.0 == place).map(|it| it.1.clone());
    places.map_while(|place| view.batch(place).cloned().or_else(|| executed(place))).collect()
}

/// Gives a replica a state that it has not asked for.
pub(super) fn give_state(
    liars: &mut Coalition,
    to: u32,
    of: u32,
    recipe: Recipe,
    correct: &Correct<'_>,
) {
    let Some(of) = correct[of as usize] else {
        return;
    };
    let Some(state) = state_of(of) else {
        return;
    };
    keep(liars, &state);
    let state = match recipe.name {
        StepName::OldState => old_state(liars),
        StepName::StateOfView => state_of_view(liars, state, (to, of.own), correct),
        StepName::StateOfNoView => state_of_no_view(liars, state),
        StepName::StateWithoutCheckpoint => without_checkpoint(state, of),
        StepName::StateOfOldPlaces => with_old_places(liars, state),
        StepName::StateOfFalsePlace => with_false_place(liars, state, of),
        StepName::StateOfFalseBytes => {
            Some(State { snapshot: wrong_snapshot(&state.snapshot), ..state })
        }
        _ => Some(state),
    };
    let Some(mut state) = state else {
        return;
    };
    if !recipe.has_streams && recipe.name == StepName::StateOfView {
        state.streams.clear();
    }
    let bytes = Message::State(Box::new(state)).encode();
    liars.send(to, bytes, Common::Own(recipe.name));
}

/// Keeps a state for later, if there is room.
fn keep(liars: &mut Coalition, state: &State) {
    if liars.memory.old_states.len() < KEPT {
        liars.memory.old_states.push(state.clone());
        liars.memory.old_places.extend(state.streams.iter().cloned());
    }
}

fn old_state(liars: &mut Coalition) -> Option<State> {
    let at = liars.random.below(liars.memory.old_states.len() as u64) as usize;
    liars.memory.old_states.get(at).cloned()
}

/// A view that a correct replica knows, `of` before others, entered by all liars, whatever they
/// have promised.
fn state_of_view(
    liars: &mut Coalition,
    state: State,
    (to, of): (u32, u32),
    correct: &Correct<'_>,
) -> Option<State> {
    let known = correct[to as usize];
    let is_known = |view: &u64| known.is_some_and(|it| it.views.contains_key(view));
    let views = correct.iter().flatten().flat_map(|of| of.views.values().map(move |it| (*of, it)));
    let mut unknown: Vec<_> =
        views.filter(|it| it.1.opening.view > 0 && !is_known(&it.1.opening.view)).collect();
    if unknown.iter().any(|it| it.0.own == of) {
        unknown.retain(|it| it.0.own == of);
    }
    let at = liars.random.below(unknown.len() as u64) as usize;
    let (of, view) = *unknown.get(at)?;
    let state = state_of(of).unwrap_or(state);
    let (checkpoint, _) = checkpoint_of(&state);
    let (number, digest) = (view.opening.view, view.digest);
    liars.those(By::All).into_iter().for_each(|it| enter_one(liars, it, number, digest));
    let mut enters: Vec<Attested> = view.enters.values().cloned().collect();
    let entered = |it: &Attested| {
        let is_it = decode(&it.body) == Some(Statement::Enter { view: number, opening: digest });
        is_it && !enters.contains(it)
    };
    let own = liars.members.values().filter_map(|it| it.core.streams.get(&it.core.own_key()));
    let own = own.flat_map(|it| it.after(0, usize::MAX));
    let own: Vec<Attested> = own.filter(|it| entered(it)).cloned().collect();
    enters.extend(own);
    enters.truncate(liars.nodes as usize);
    let log = batches(of, view, checkpoint + 1..=view.opening.start);
    Some(State { opening: view.opening.clone(), enters, log, ..state })
}

/// A view that nobody has opened, with a log of its own, which all liars enter.
fn state_of_no_view(liars: &mut Coalition, state: State) -> Option<State> {
    let (place, chain) = checkpoint_of(&state);
    let batch: Batch = Arc::new(vec![liars.own_request()]);
    let chain = extend(&chain, &batch);
    let view = state.opening.view + 1 + liars.random.below(u64::from(liars.nodes));
    let epochs = state.opening.epochs.clone();
    let opening = Opening { view, epochs, start: place + 1, chain, votes: Vec::new() };
    let (digest, mut enters) = (opening.digest(), Vec::new());
    for member in liars.members.values_mut() {
        let statement = Statement::Enter { view, opening: digest };
        enters.extend(member.says(&encode(&statement), Common::Own(StepName::LateEnter)));
    }
    Some(State { opening, enters, log: vec![batch], streams: Vec::new(), ..state })
}

/// Places of streams as they were before, in the stead of the newer ones or beside them.
fn with_old_places(liars: &mut Coalition, mut state: State) -> Option<State> {
    let count = liars.memory.old_places.len() as u64;
    let place = liars.memory.old_places.get(liars.random.below(count) as usize)?.clone();
    match liars.random.below(3) {
        0 => state.streams.retain(|it| it.key() != place.key()),
        1 => state.log.clear(),
        _ => {}
    }
    let at = liars.random.below(state.streams.len() as u64 + 1) as usize;
    state.streams.insert(at, place);
    Some(state)
}

/// A false place of a liar's stream that all liars state.
fn with_false_place(
    liars: &mut Coalition,
    mut state: State,
    of: &Replica<AnyService>,
) -> Option<State> {
    let mut place = false_place(liars, of)?;
    let statement = Statement::Streams(vec![place.checkpoint()]);
    for member in liars.members.values_mut() {
        place.proof.extend(member.says(&encode(&statement), Common::Own(StepName::FalsePlace)));
    }
    state.streams.retain(|it| it.key() != place.key());
    state.streams.push(place);
    Some(state)
}

/// The same from the first batch on, without a checkpoint.
fn without_checkpoint(state: State, of: &Replica<AnyService>) -> Option<State> {
    let view = of.views.get(&state.opening.view)?;
    let leader = of.group.leader(state.opening.view);
    let of_leader = state.streams.iter().find(|it| it.device == leader);
    let end = of_leader.and_then(|it| it.track.at).map_or(0, |at| at.1);
    let log = batches(of, view, 1..=state.opening.start.max(end));
    let (proof, checkpoints, snapshot) = <_>::default();
    Some(State { proof, checkpoints, snapshot, log, ..state })
}
