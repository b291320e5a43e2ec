// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The stream of a device in one epoch, and what follows from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_replica::{AHEAD_MAX, Attested, Digest, Followed};

use crate::message::Reference;
use crate::stream_checkpoint::{StreamCheckpoints, StreamState};

/// How many VIEW-CHANGEs of a sender are remembered. A NEW-VIEW may refer to one long after its
/// sender has wanted others: a replica that forgets it before others do would take a correct leader
/// for faulty.
const CHANGES: usize = 2 * WANTED_MAX as usize;
/// How many views a sender may want without having entered one. Timeouts double, and newcomers are
/// admitted after few of them: a correct replica does not come that far.
pub(crate) const WANTED_MAX: u32 = 1024;
/// How many NEW-VIEWs of a sender are remembered that it has not entered: the latest views.
const OPENED: usize = 16;

/// Where a sender stands after the statements that were taken: a function of its stream alone, thus
/// the same for all who have taken as much.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Track {
    /// The counter that was taken last.
    pub(crate) counter: u64,
    /// The view that it has entered, and the length of that view's log that it has committed to.
    pub(crate) at: Option<(u64, u64)>,
    /// The view below which it says nothing more.
    pub(crate) promised: u64,
    /// Its votes for newer epochs of others, since it has entered its view.
    pub(crate) ballots: BTreeMap<u32, u64>,
    /// How many views it has wanted since it has entered one.
    pub(crate) wanted: u32,
    /// Its last VIEW-CHANGEs, by view.
    pub(crate) changes: BTreeMap<u64, Change>,
    /// Its NEW-VIEWs for views after the one that it has entered. Others may stand in these views
    /// already, and who follows the stream from a checkpoint on has the NEW-VIEW from here.
    pub(crate) opened: BTreeMap<u64, Vec<Reference>>,
    /// Its last CHECKPOINT.
    pub(crate) checkpoint: u64,
    /// It has said what no correct replica says; nothing more of it is taken.
    pub(crate) is_faulty: bool,
    /// The nonce of its start, if it began with HELLO.
    pub(crate) nonce: Option<[u8; 16]>,
    /// The hash of how the view begins that it has entered; zeros for the group's first.
    pub(crate) opening: Digest,
    /// The hash of its view's log up to the place in `at`, if it is the view's leader.
    pub(crate) chain: Digest,
    /// Whether all this is what everybody sees: this replica does not know how a view begins that
    /// it has skipped with a state.
    pub(crate) is_exact: bool,
}

impl Default for Track {
    /// A device in a later epoch than the group's first, before HELLO.
    fn default() -> Self {
        Self {
            counter: 0,
            at: None,
            promised: 0,
            ballots: BTreeMap::new(),
            wanted: 0,
            changes: BTreeMap::new(),
            opened: BTreeMap::new(),
            checkpoint: 0,
            is_faulty: false,
            nonce: None,
            opening: [0; 32],
            chain: [0; 32],
            is_exact: true,
        }
    }
}

/// A VIEW-CHANGE, and where its sender stood.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Change {
    pub(crate) counter: u64,
    pub(crate) mac: [u8; 32],
    pub(crate) at: Option<(u64, u64)>,
    pub(crate) ballots: BTreeMap<u32, u64>,
}

impl Track {
    /// A member of the group as it was formed.
    pub(crate) fn first() -> Self {
        Self { at: Some((0, 0)), ..Self::default() }
    }

    /// The same for a checkpoint of the stream: without VIEW-CHANGEs for views up to the one that
    /// the sender has entered, which open nothing that is still to come.
    pub(crate) fn checkpointed(&self) -> Self {
        let mut track = self.clone();
        let entered = self.at.map_or(0, |at| at.0);
        track.changes = track.changes.split_off(&(entered + 1));
        track
    }

    /// The sender enters a view. `start` is the length of the log with which it begins, and nothing
    /// for a view that is unknown here; `chain` is that log's hash, if the sender is its leader.
    pub(crate) fn enter(
        &mut self,
        (view, opening): (u64, Digest),
        start: Option<u64>,
        chain: Digest,
    ) {
        self.at = Some((view, start.unwrap_or(0)));
        self.opened = self.opened.split_off(&view.saturating_add(1));
        (self.opening, self.chain) = (opening, chain);
        self.is_exact = start.is_some();
        self.promised = self.promised.max(view);
        self.wanted = 0;
        // A vote for a newcomer counts in one view. The next opening has admitted the newcomer, or
        // its members vote again.
        self.ballots = BTreeMap::new();
    }

    /// Whether the sender may open a view, now or after other statements: it has opened none so
    /// late, and stands in none. Receivers need therefore not remember for long what it has opened.
    pub(crate) fn may_open(&self, view: u64) -> bool {
        let is_after_opened = self.opened.last_key_value().is_none_or(|it| *it.0 < view);
        is_after_opened && self.at.is_none_or(|at| at.0 < view)
    }

    /// Whether the sender may want a view: a later one than before, and not too many in vain.
    pub(crate) fn may_want(&self, view: u64) -> bool {
        view > self.promised && self.wanted < WANTED_MAX
    }

    /// Remembers a NEW-VIEW.
    pub(crate) fn open(&mut self, view: u64, votes: Vec<Reference>) {
        if self.at.is_none_or(|at| at.0 < view) {
            self.opened.entry(view).or_insert(votes);
        }
        while self.opened.len() > OPENED {
            self.opened.pop_first();
        }
    }

    /// Remembers a VIEW-CHANGE.
    pub(crate) fn change(&mut self, view: u64, counter: u64, mac: [u8; 32]) {
        self.wanted += 1;
        let (at, ballots) = (self.at, self.ballots.clone());
        self.changes.insert(view, Change { counter, mac, at, ballots });
        while self.changes.len() > CHANGES {
            self.changes.pop_first();
        }
    }
}

/// The statements of a device in one epoch.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Stream {
    pub(crate) track: Track,
    statements: Followed,
    pub(crate) checkpoints: StreamCheckpoints,
    /// The highest counter that was heard of.
    heard: u64,
    /// The counter of the checkpoint from which on the stream is followed.
    begun: u64,
}

impl Stream {
    pub(crate) fn new(track: Track) -> Self {
        Self { track, ..Self::default() }
    }

    /// Keeps an authentic statement, if there is room.
    pub(crate) fn put(&mut self, counter: u64, statement: Attested) {
        self.heard = self.heard.max(counter);
        self.statements.put(self.track.counter, counter, statement);
    }

    /// Whether a statement of this counter and length may still be taken, is not here, and would be
    /// kept.
    pub(crate) fn lacks(&self, counter: u64, length: usize) -> bool {
        let has_room = || self.statements.has_room(self.track.counter, counter, length);
        !self.track.is_faulty
            && !self.statements.has(counter)
            && (has_room() || self.is_far(counter))
    }

    /// Whether a statement tells that this replica lacks far more than it knows of.
    fn is_far(&self, counter: u64) -> bool {
        counter.saturating_sub(self.track.counter.max(self.heard)) > AHEAD_MAX
    }

    /// Whether so many statements at least are missing.
    pub(crate) fn is_behind(&self, by: u64) -> bool {
        !self.track.is_faulty && self.heard.saturating_sub(self.track.counter) >= by
    }

    /// Whether another replica that has taken statements up to `counter` finds the next one here,
    /// or has all of them.
    pub(crate) fn can_go_on_from(&self, counter: u64) -> bool {
        counter >= self.track.counter || self.statements.has(counter.saturating_add(1))
    }

    /// The counter of the checkpoint from which on the stream is followed.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// The statement after those that were taken.
    pub(crate) fn next(&self) -> Option<(u64, Attested)> {
        self.statements.next(self.track.counter)
    }

    /// How many statements wait behind those that were taken, without a gap.
    #[cfg(feature = "sim")]
    pub(crate) fn waits_in_a_row(&self) -> u64 {
        self.statements.waits_in_a_row(self.track.counter)
    }

    /// Forgets statements: `retained` of those that were taken stay, and all after the stable
    /// checkpoint.
    pub(crate) fn forget(&mut self, retained: u64) {
        let last = self.track.counter.saturating_sub(retained);
        self.statements.forget(last.min(self.checkpoints.stable_counter()));
    }

    /// Up to `most` statements after `counter`; none if the first of them is gone.
    pub(crate) fn after(&self, counter: u64, most: usize) -> impl Iterator<Item = &Attested> {
        self.statements.after(counter, most)
    }

    /// Whether a stable checkpoint is beyond what was taken, and the next statement is not here, or
    /// cannot be taken before a later checkpoint is stable.
    pub(crate) fn needs(&self, state: &StreamState, window: u64) -> bool {
        let is_later = self.track.counter < state.track.counter;
        is_later && !self.track.is_faulty && (self.next().is_none() || self.is_blocked(window))
    }

    /// Whether no more is taken before a later checkpoint is stable.
    pub(crate) fn is_blocked(&self, window: u64) -> bool {
        let last = self.checkpoints.stable_counter().saturating_add(window);
        !self.track.is_faulty && self.track.counter >= last
    }

    /// Keeps a statement of the own device, which nobody else has yet.
    pub(crate) fn put_own(&mut self, counter: u64, statement: Attested) {
        self.heard = self.heard.max(counter);
        self.statements.put_own(counter, statement);
    }

    /// Goes on from a stable checkpoint.
    pub(crate) fn begin_at(&mut self, state: StreamState) {
        self.statements.forget(state.track.counter);
        self.track = state.track.clone();
        self.begun = self.track.counter;
        self.heard = self.heard.max(self.begun);
        self.checkpoints = StreamCheckpoints::stable_at(state);
    }
}
