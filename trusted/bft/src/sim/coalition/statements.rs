// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements that liars have attested when it suits them.

use std::sync::Arc;

use smt_replica::sim::{LIAR_CLIENT, client_key};
use smt_replica::{AnyService, Request};

use crate::message::{Batch, Checkpoint, Reference, Statement, decode};
use crate::replica::Replica;
use crate::sim::coalition::Coalition;
use crate::sim::step::{By, Led, StepName};
use crate::stream_checkpoint::{StreamCheckpoint, StreamState};
use crate::view::View;

/// Statements of one padding at most.
const PADDING: usize = 48;

impl Coalition {
    /// Has some liars say something. Others are told later.
    fn say(&mut self, by: By, statement: &Statement, name: StepName) {
        for device in self.those(by) {
            if let Some(member) = self.members.get_mut(&device)
                && member.says(statement, name).is_some()
            {
                self.carried_out.insert(name);
            }
        }
    }

    /// Wants a view that all of these liars may want, and the replica `of` too.
    pub(super) fn want(&mut self, by: By, of: Option<&Replica<AnyService>>, led: Led, ahead: u64) {
        let those = self.those(by);
        let own = those.iter().filter_map(|it| Some(self.members.get(it)?.promised)).max();
        let least = own.unwrap_or(0) + 1;
        let of_it = of.map_or(0, |it| it.own_track().promised + self.random.below(2));
        let first = least.max(of_it) + ahead;
        let replicas = u64::from(self.replicas);
        let leader = |view: &u64| u32::try_from(*view % replicas).unwrap_or(0);
        let is_led = |view: &u64| match led {
            Led::ByAny => true,
            Led::By(device) => leader(view) == device,
            Led::ByLiar => self.members.contains_key(&leader(view)),
        };
        let Some(view) = (first..first + replicas).find(is_led) else {
            return;
        };
        self.view = view;
        self.say(by, &Statement::ViewChange { view }, StepName::Want);
    }

    /// Opens the view that liars have wanted last, if one of them leads it.
    pub(super) fn open(&mut self, of: &Replica<AnyService>) {
        let (view, leader) = (self.view, of.group.leader(self.view));
        if !self.members.contains_key(&leader) || of.views.contains_key(&view) {
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
            let at = self.random.below(votes.len() as u64) as usize;
            if votes[at].device != leader {
                votes.remove(at);
            }
        }
        if votes.len() == quorum && votes.iter().any(|it| it.device == leader) {
            let statement = Statement::NewView { view, votes };
            self.say(By::One(leader), &statement, StepName::Open);
        }
    }

    /// The newest view of a replica, or any.
    fn view_of<'a>(&mut self, of: &'a Replica<AnyService>, is_newest: bool) -> Option<&'a View> {
        let count = of.views.len() as u64;
        let at = if is_newest { 0 } else { self.random.below(count) as usize };
        of.views.values().rev().nth(at)
    }

    pub(super) fn enter(&mut self, by: By, of: &Replica<AnyService>, is_newest: bool) {
        if let Some(of_view) = self.view_of(of, is_newest) {
            let (view, opening) = (of_view.opening.view, of_view.digest);
            for device in self.those(by) {
                self.enter_one(device, view, opening);
            }
        }
    }

    /// A liar enters a view, once.
    pub(super) fn enter_one(&mut self, device: u32, view: u64, opening: [u8; 32]) {
        let Some(member) = self.members.get(&device).filter(|it| !it.entered.contains(&view))
        else {
            return;
        };
        let is_late = member.promised > view;
        let name = if is_late { StepName::LateEnter } else { StepName::Enter };
        self.say(By::One(device), &Statement::Enter { view, opening }, name);
    }

    /// The end of a view's log as liars have it, which may have ordered more than was heard of.
    fn end_of(&self, of_view: &View) -> u64 {
        let (view, place) = self.ordered;
        if view == of_view.opening.view { of_view.end().max(place) } else { of_view.end() }
    }

    /// Orders what waits at a replica, or a request of the client that lies, in its newest view.
    pub(super) fn order(&mut self, of: &Replica<AnyService>) {
        let Some(of_view) = self.view_of(of, true) else {
            return;
        };
        let (view, sequence) = (of_view.opening.view, self.end_of(of_view) + 1);
        let leader = of.group.leader(view);
        if !self.members.contains_key(&leader) {
            return;
        }
        let waiting: Vec<Request> = of.pending.iter().map(|it| it.request.clone()).collect();
        let is_own = waiting.is_empty() || self.random.chance(20);
        let mut requests = if is_own { vec![self.own_request()] } else { waiting };
        requests.truncate(of.group.options.batch);
        let batch: Batch = Arc::new(requests);
        self.ordered = (view, sequence);
        let statement = Statement::Prepare { view, sequence, batch };
        self.say(By::One(leader), &statement, StepName::Order);
    }

    /// A request of the client that lies as well.
    pub(super) fn own_request(&mut self) -> Request {
        self.number += 1;
        let operation = self.random.below(100).to_be_bytes().to_vec();
        let body = (self.random.nonce(), operation);
        let number = self.number * 1000 + self.random.below(1000);
        Request::sign(&client_key(LIAR_CLIENT), LIAR_CLIENT, number, body)
    }

    pub(super) fn commit(&mut self, by: By, of: &Replica<AnyService>, is_newest: bool) {
        let Some(of_view) = self.view_of(of, is_newest) else {
            return;
        };
        let (view, sequence) = (of_view.opening.view, self.end_of(of_view));
        if sequence <= of_view.opening.start {
            return;
        }
        let leader = of.group.leader(view);
        for device in self.those(by).into_iter().filter(|it| *it != leader) {
            let promised = self.members.get(&device).map_or(0, |it| it.promised);
            let is_late = promised > view;
            let name = if is_late { StepName::LateCommit } else { StepName::Commit };
            self.say(By::One(device), &Statement::Commit { view, sequence }, name);
        }
    }

    pub(super) fn state_false_checkpoint(&mut self, by: By) {
        let state = [self.random.below(200) as u8; 32];
        for device in self.those(by) {
            let Some(member) = self.members.get(&device) else {
                continue;
            };
            let interval = member.core.group.options.interval;
            let sequence = member.core.own_track().checkpoint + interval;
            let checkpoint = Checkpoint { sequence, chain: state, state };
            let statement = Statement::Checkpoint(checkpoint);
            self.say(By::One(device), &statement, StepName::FalseCheckpoint);
        }
    }

    /// States a place of a stream, as a correct replica has done, or a false one.
    pub(super) fn place(&mut self, by: By, of: &Replica<AnyService>, is_true: bool) {
        if !is_true {
            if let Some(place) = self.false_place(of) {
                let statement = Statement::Streams(vec![place.checkpoint()]);
                self.say(by, &statement, StepName::FalsePlace);
            }
            return;
        }
        let Some(own) = of.streams.get(&of.own_key()) else {
            return;
        };
        let stated = own.after(0, usize::MAX).filter_map(|it| decode::<Statement>(&it.body));
        let stated: Vec<Statement> =
            stated.filter(|it| matches!(it, Statement::Streams(_))).collect();
        let newest = self.random.below(3) as usize;
        if let Some(statement) = stated.iter().rev().nth(newest).or_else(|| stated.last()) {
            self.say(by, statement, StepName::Place);
        }
    }

    /// A place of a liar's stream as it would suit the liars: beyond its promise, or before it.
    pub(super) fn false_place(&mut self, of: &Replica<AnyService>) -> Option<StreamState> {
        let devices = self.those(By::All);
        let device = devices[self.random.below(devices.len() as u64) as usize];
        let (device, epoch) = self.members.get(&device)?.core.own_key();
        let interval = of.group.stream_interval();
        let mut track = of.streams.get(&(device, epoch))?.track.checkpointed();
        track.counter = (track.counter / interval + self.random.below(2) + 1) * interval;
        let end = of.views.last_key_value().map(|(view, it)| (*view, it.end()));
        match self.random.below(3) {
            0 => track.promised = track.at.map_or(0, |at| at.0),
            1 => (track.at, track.is_faulty) = (end, false),
            _ => track.at = track.at.map(|at| (at.0, at.1 + 1 + self.random.below(6))),
        }
        Some(StreamState { device, epoch, track, proof: Vec::new() })
    }

    /// Statements that say nothing, until the own stream has a checkpoint.
    pub(super) fn pad(&mut self, by: By) {
        let nothing = StreamCheckpoint { device: 0, epoch: 1, counter: 1 << 40, state: [0; 32] };
        for device in self.those(by) {
            for _ in 0..PADDING {
                let Some(member) = self.members.get(&device) else {
                    break;
                };
                let interval = member.core.group.stream_interval();
                if member.core.device.counter().is_multiple_of(interval) {
                    break;
                }
                let counter = nothing.counter / interval * interval;
                let statement = Statement::Streams(vec![StreamCheckpoint { counter, ..nothing }]);
                self.say(By::One(device), &statement, StepName::Pad);
            }
        }
    }

    pub(super) fn restart(&mut self, by: u32) {
        let nonce = self.random.nonce();
        if let Some(member) = self.members.get_mut(&by) {
            member.restart(nonce);
            self.carried_out.insert(StepName::Restart);
        }
    }
}
