// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements that liars have attested when it suits them.

use std::sync::Arc;

use smt_replica::sim::By;
use smt_replica::{AnyService, Request};

use crate::message::{Batch, Checkpoint, Reference, Statement, decode, encode};
use crate::replica::Replica;
use crate::sim::coalition::Coalition;
use crate::sim::liar::restart_keeping_state;
use crate::sim::step::{Led, StepName};
use crate::stream_checkpoint::{StreamCheckpoint, StreamState};
use crate::view::View;

/// Statements of one padding at most.
const PADDING: usize = 48;

/// Wants a view that all of these liars may want, and the replica `of` too.
pub(super) fn want(
    liars: &mut Coalition,
    by: By,
    of: Option<&Replica<AnyService>>,
    led: Led,
    ahead: u64,
) {
    let those = liars.those(by);
    let own = those.iter().filter_map(|it| Some(liars.members.get(it)?.notes.promised)).max();
    let least = own.unwrap_or(0) + 1;
    let of_it = of.map_or(0, |it| it.own_track().promised + liars.random.below(2));
    let first = least.max(of_it) + ahead;
    let replicas = u64::from(liars.nodes);
    let leader = |view: &u64| u32::try_from(*view % replicas).unwrap_or(0);
    let is_led = |view: &u64| match led {
        Led::ByAny => true,
        Led::By(device) => leader(view) == device,
        Led::ByLiar => liars.members.contains_key(&leader(view)),
    };
    let Some(view) = (first..first + replicas).find(is_led) else {
        return;
    };
    liars.view = view;
    liars.say(by, &encode(&Statement::ViewChange { view }), StepName::Want);
}

/// Opens the view that liars have wanted last, if one of them leads it.
pub(super) fn open(liars: &mut Coalition, of: &Replica<AnyService>) {
    let (view, leader) = (liars.view, of.group.leader(liars.view));
    if !liars.members.contains_key(&leader) || of.views.contains_key(&view) {
        return;
    }
    let mut votes = Vec::<Reference>::new();
    for ((device, epoch), stream) in &of.streams {
        if let Some(change) = stream.track.changes.get(&view) {
            votes.retain(|it| it.device != *device);
            let (counter, mac) = (change.counter, change.mac);
            votes.push(Reference { device: *device, epoch: *epoch, counter, mac });
        }
    }
    let quorum = of.group.quorum();
    while votes.len() > quorum {
        let at = liars.random.below(votes.len() as u64) as usize;
        if votes[at].device != leader {
            votes.remove(at);
        }
    }
    if votes.len() == quorum && votes.iter().any(|it| it.device == leader) {
        let statement = Statement::NewView { view, votes };
        liars.say(By::One(leader), &encode(&statement), StepName::Open);
    }
}

/// The newest view of a replica, or any.
fn view_of<'a>(
    liars: &mut Coalition,
    of: &'a Replica<AnyService>,
    is_newest: bool,
) -> Option<&'a View> {
    let count = of.views.len() as u64;
    let at = if is_newest { 0 } else { liars.random.below(count) as usize };
    of.views.values().rev().nth(at)
}

pub(super) fn enter(liars: &mut Coalition, by: By, of: &Replica<AnyService>, is_newest: bool) {
    if let Some(of_view) = view_of(liars, of, is_newest) {
        let (view, opening) = (of_view.opening.view, of_view.digest);
        for device in liars.those(by) {
            enter_one(liars, device, view, opening);
        }
    }
}

/// A liar enters a view, once.
pub(super) fn enter_one(liars: &mut Coalition, device: u32, view: u64, opening: [u8; 32]) {
    let Some(member) = liars.members.get(&device).filter(|it| !it.notes.entered.contains(&view))
    else {
        return;
    };
    let is_late = member.notes.promised > view;
    let name = if is_late { StepName::LateEnter } else { StepName::Enter };
    liars.say(By::One(device), &encode(&Statement::Enter { view, opening }), name);
}

/// The end of a view's log as liars have it, which may have ordered more than was heard of.
fn end_of(liars: &Coalition, of_view: &View) -> u64 {
    let (view, place) = liars.memory.ordered;
    if view == of_view.opening.view { of_view.end().max(place) } else { of_view.end() }
}

/// Orders what waits at a replica, or a request of the client that lies, in its newest view.
pub(super) fn order(liars: &mut Coalition, of: &Replica<AnyService>) {
    let Some(of_view) = view_of(liars, of, true) else {
        return;
    };
    let (view, sequence) = (of_view.opening.view, end_of(liars, of_view) + 1);
    let leader = of.group.leader(view);
    if !liars.members.contains_key(&leader) {
        return;
    }
    let waiting: Vec<Request> = of.pending.iter().map(|it| it.request.clone()).collect();
    let is_own = waiting.is_empty() || liars.random.chance(20);
    let mut requests = if is_own { vec![liars.own_request()] } else { waiting };
    requests.truncate(of.group.options.batch);
    let batch: Batch = Arc::new(requests);
    liars.memory.ordered = (view, sequence);
    let statement = Statement::Prepare { view, sequence, batch };
    liars.say(By::One(leader), &encode(&statement), StepName::Order);
}

pub(super) fn commit(liars: &mut Coalition, by: By, of: &Replica<AnyService>, is_newest: bool) {
    let Some(of_view) = view_of(liars, of, is_newest) else {
        return;
    };
    let (view, sequence) = (of_view.opening.view, end_of(liars, of_view));
    if sequence <= of_view.opening.start {
        return;
    }
    let leader = of.group.leader(view);
    for device in liars.those(by).into_iter().filter(|it| *it != leader) {
        let promised = liars.members.get(&device).map_or(0, |it| it.notes.promised);
        let is_late = promised > view;
        let name = if is_late { StepName::LateCommit } else { StepName::Commit };
        liars.say(By::One(device), &encode(&Statement::Commit { view, sequence }), name);
    }
}

pub(super) fn state_false_checkpoint(liars: &mut Coalition, by: By) {
    let state = [liars.random.below(200) as u8; 32];
    for device in liars.those(by) {
        let Some(member) = liars.members.get(&device) else {
            continue;
        };
        let interval = member.core.group.options.interval;
        let sequence = member.core.own_track().checkpoint + interval;
        let checkpoint = Checkpoint { sequence, chain: state, state };
        let statement = Statement::Checkpoint(checkpoint);
        liars.say(By::One(device), &encode(&statement), StepName::FalseCheckpoint);
    }
}

/// States a place of a stream, as a correct replica has done, or a false one.
pub(super) fn place(liars: &mut Coalition, by: By, of: &Replica<AnyService>, is_true: bool) {
    if !is_true {
        if let Some(place) = false_place(liars, of) {
            let statement = Statement::Streams(vec![place.checkpoint()]);
            liars.say(by, &encode(&statement), StepName::FalsePlace);
        }
        return;
    }
    let Some(own) = of.streams.get(&of.own_key()) else {
        return;
    };
    let stated = own.after(0, usize::MAX).filter_map(|it| decode::<Statement>(&it.body));
    let stated: Vec<Statement> = stated.filter(|it| matches!(it, Statement::Streams(_))).collect();
    let newest = liars.random.below(3) as usize;
    if let Some(statement) = stated.iter().rev().nth(newest).or_else(|| stated.last()) {
        liars.say(by, &encode(&statement), StepName::Place);
    }
}

/// A place of a liar's stream as it would suit the liars: beyond its promise, or before it.
pub(super) fn false_place(liars: &mut Coalition, of: &Replica<AnyService>) -> Option<StreamState> {
    let devices = liars.those(By::All);
    let device = devices[liars.random.below(devices.len() as u64) as usize];
    let (device, epoch) = liars.members.get(&device)?.core.own_key();
    let interval = of.group.stream_interval();
    let mut track = of.streams.get(&(device, epoch))?.track.checkpointed();
    track.counter = (track.counter / interval + liars.random.below(2) + 1) * interval;
    let end = of.views.last_key_value().map(|(view, it)| (*view, it.end()));
    match liars.random.below(3) {
        0 => track.promised = track.at.map_or(0, |at| at.0),
        1 => (track.at, track.is_faulty) = (end, false),
        _ => track.at = track.at.map(|at| (at.0, at.1 + 1 + liars.random.below(6))),
    }
    Some(StreamState { device, epoch, track, proof: Vec::new() })
}

/// Statements that say nothing, until the own stream has a checkpoint.
pub(super) fn pad(liars: &mut Coalition, by: By) {
    let nothing = StreamCheckpoint { device: 0, epoch: 1, counter: 1 << 40, state: [0; 32] };
    for device in liars.those(by) {
        for _ in 0..PADDING {
            let Some(member) = liars.members.get(&device) else {
                break;
            };
            let interval = member.core.group.stream_interval();
            if member.core.device.counter().is_multiple_of(interval) {
                break;
            }
            let counter = nothing.counter / interval * interval;
            let statement = Statement::Streams(vec![StreamCheckpoint { counter, ..nothing }]);
            liars.say(By::One(device), &encode(&statement), StepName::Pad);
        }
    }
}

pub(super) fn restart(liars: &mut Coalition, by: u32) {
    let nonce = liars.random.nonce();
    let name = smt_replica::sim::StepName::Own(StepName::Restart);
    if let Some(member) = liars.members.get_mut(&by) {
        member.restart(name, |core| restart_keeping_state(core, nonce));
        liars.carried_out.insert(name);
    }
}
