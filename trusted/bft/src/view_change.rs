// SPDX-License-Identifier: Apache-2.0 OR MIT
//! View changes: what f + 1 VIEW-CHANGEs come to.
//!
//! A VIEW-CHANGE carries its sender's whole gapless stream by reference: its receiver has taken
//! that stream up to there, or waits. A sender can hide nothing that it has said.

use std::collections::{BTreeMap, BTreeSet};

use smt_replica::Service;

use crate::follow::{Place, Verdict};
use crate::message::{Opening, Reference};
use crate::replica::Replica;
use crate::track::Change;
use crate::view::View;

use NewView::{Judged, Opens};

/// How many views are remembered, for streams that are behind.
const VIEWS: usize = 256;

/// The most members of a group that a device takes.
const MEMBERS_MAX: usize = 16;

/// VIEW-CHANGEs with what their senders' streams say.
type Votes = Vec<(Reference, Change)>;

/// The consequence of a NEW-VIEW.
enum NewView {
    /// The view begins like this, with the log of an earlier one up to a place, if it has one.
    Opens(Opening, Option<(u64, u64)>),
    /// It opens nothing.
    Judged(Verdict),
}

impl<S: Service> Replica<S> {
    /// Judges a NEW-VIEW, and opens the view.
    pub(crate) fn judge_new_view(
        &mut self,
        from: Place,
        view: u64,
        references: &[Reference],
    ) -> Verdict {
        match self.new_view(from, view, references) {
            Opens(opening, latest) => {
                self.begin_view(opening, latest);
                Verdict::Taken
            }
            Judged(verdict) => verdict,
        }
    }

    /// Whether the NEW-VIEW that a leader has said before the place from which on its stream is
    /// followed may still open the view here: its votes have come, or are to come.
    pub(crate) fn may_open_missed(&self, key: (u32, u64), view: u64) -> bool {
        let Some(stream) = self.streams.get(&key).filter(|it| it.begun() > 0) else {
            return false;
        };
        let Some(votes) = stream.track.opened.get(&view) else {
            return false;
        };
        // Nothing more of a liar's stream is taken.
        let comes = |it: &Reference| {
            let of_voter = self.streams.get(&(it.device, it.epoch));
            of_voter.is_none_or(|of| !of.track.is_faulty || it.counter <= of.track.counter)
        };
        let place = Place { device: key.0, epoch: key.1, counter: stream.track.counter };
        match self.new_view(place, view, votes) {
            Opens(..) => true,
            Judged(verdict) => verdict == Verdict::Wait && votes.iter().all(comes),
        }
    }

    /// The consequence of a NEW-VIEW.
    fn new_view(&self, from: Place, view: u64, references: &[Reference]) -> NewView {
        // Before any wait: the statement is kept while it waits, and who waits for nothing, since
        // the view is past, judges alike.
        if self.group.leader(view) != from.device || !self.is_quorum(references) {
            return Judged(Verdict::Faulty);
        }
        if self.views.contains_key(&view) {
            let is_same = self.views[&view].opening.votes == references;
            // The opening may have come with a state before.
            return Judged(if is_same { Verdict::Taken } else { Verdict::Faulty });
        }
        let has_own =
            references.iter().any(|it| (it.device, it.epoch) == (from.device, from.epoch));
        if !has_own {
            return Judged(Verdict::Faulty);
        }
        let mut votes = Votes::new();
        for reference in references {
            let key = (reference.device, reference.epoch);
            let Some(stream) = self.streams.get(&key) else {
                return Judged(self.wait_unless_past(view));
            };
            // Its leader has it, and it is kept: who went on without it could take for fine what
            // others take for faulty.
            if stream.track.counter < reference.counter {
                return Judged(Verdict::Wait);
            }
            let is_it = |it: &&Change| it.counter == reference.counter && it.mac == reference.mac;
            let Some(change) = stream.track.changes.get(&view).filter(is_it) else {
                // A stream that is followed from a checkpoint on has had others before.
                let is_before = reference.counter <= stream.begun();
                let past = || self.wait_unless_past(view);
                return Judged(if is_before { past() } else { Verdict::Faulty });
            };
            votes.push((*reference, change.clone()));
        }
        let latest = self.latest(&votes);
        if let Some((at, before)) = latest.and_then(|at| Some((at, self.views.get(&at.0)?))) {
            if self.configuration(before, &votes).is_none() {
                return Judged(Verdict::Faulty);
            }
            // A place that is stable beyond the votes was committed in a later view: f + 1 did,
            // and one of them is among these f + 1 voters. No later view begins with this one.
            if at.1 < self.ledger.stable && before.chain(at.1).is_none() {
                return Judged(Verdict::Taken);
            }
        }
        let is_here =
            |at: &(u64, u64)| self.views.get(&at.0).is_some_and(|it| it.chain(at.1).is_some());
        if latest.is_some_and(|at| !is_here(&at)) {
            return Judged(self.wait_unless_past(view));
        }
        match self.opening(view, &votes) {
            None => Judged(Verdict::Faulty),
            Some(opening) => Opens(opening, latest),
        }
    }

    /// Whether there are f + 1 VIEW-CHANGEs of distinct devices, in ascending order.
    fn is_quorum(&self, references: &[Reference]) -> bool {
        let is_ascending = references.windows(2).all(|it| it[0].device < it[1].device);
        references.len() == self.group.quorum() && is_ascending
    }

    /// The latest view in which a voter stands, and the longest part of its log that one has. An
    /// ENTER that was taken before the view was known has the place 0: its sender has all that the
    /// view begins with.
    fn latest(&self, votes: &Votes) -> Option<(u64, u64)> {
        let (view, place) = votes.iter().filter_map(|it| it.1.at).max()?;
        let start = self.views.get(&view).map_or(0, |it| it.opening.start);
        Some((view, place.max(start)))
    }

    fn begin_view(&mut self, opening: Opening, latest: Option<(u64, u64)>) {
        let before = latest.and_then(|at| self.views.get(&at.0));
        let log = before.map(|it| it.prefix(opening.start)).unwrap_or_default();
        self.views.insert(opening.view, View::new(opening, log));
        while self.views.len() > VIEWS {
            self.views.pop_first();
        }
    }

    /// How a view begins on the votes of a quorum; nothing if they do not count together.
    fn opening(&self, view: u64, votes: &Votes) -> Option<Opening> {
        // All that was committed in the latest view of a voter, or before, is in that view's log:
        // its f + 1 COMMITs and these f + 1 votes have a member in common.
        let latest = self.latest(votes)?;
        let before = self.views.get(&latest.0)?;
        let epochs = self.configuration(before, votes)?;
        let chain = before.chain(latest.1)?;
        let votes = votes.iter().map(|it| it.0).collect();
        Some(Opening { view, epochs, start: latest.1, chain, votes })
    }

    /// The epochs of all devices in a view that begins on these votes after another one; nothing if
    /// they do not count together.
    fn configuration(&self, before: &View, votes: &Votes) -> Option<Vec<u64>> {
        let devices: BTreeSet<u32> = votes.iter().map(|it| it.0.device).collect();
        let mut epochs = before.opening.epochs.clone();
        let ballots = |it: &(Reference, Change), device: u32| it.1.ballots.get(&device).copied();
        for (reference, _) in votes {
            // A device that has restarted may have forgotten its COMMITs. It counts when a view
            // was opened without its vote, by f + 1 others who had voted for its epoch before.
            let epoch = before.epoch(reference.device)?;
            if reference.epoch != epoch {
                return None;
            }
            let is_replaced =
                votes.iter().any(|it| ballots(it, reference.device) > Some(reference.epoch));
            if is_replaced {
                return None;
            }
        }
        for (device, epoch) in (0..self.group.replicas).zip(&mut epochs) {
            let voted: BTreeSet<_> = votes.iter().map(|it| ballots(it, device)).collect();
            if let (false, 1, Some(Some(newer))) =
                (devices.contains(&device), voted.len(), voted.first())
            {
                *epoch = (*epoch).max(*newer);
            }
        }
        Some(epochs)
    }

    /// The VIEW-CHANGEs that may count together: of each device one, in the epoch that it has in a
    /// view from which some of them come. A liar may have said it in any number of epochs.
    fn candidates(&self, view: u64) -> Vec<Votes> {
        let change_of = |it: &(u32, u64)| self.streams.get(it)?.track.changes.get(&view);
        let vote_of = |(device, epoch): (u32, u64)| {
            let change = change_of(&(device, epoch))?;
            let (counter, mac) = (change.counter, change.mac);
            Some((Reference { device, epoch, counter, mac }, change.clone()))
        };
        let from = self.streams.keys().filter_map(|it| Some(change_of(it)?.at?.0));
        let of_views = from.filter_map(|it| Some(&self.views.get(&it)?.opening.epochs));
        let configurations: BTreeSet<&Vec<u64>> = of_views.collect();
        let votes_of = |it: &Vec<u64>| (0..).zip(it.iter().copied()).filter_map(vote_of).collect();
        configurations.into_iter().map(votes_of).collect()
    }

    /// The quorums of some VIEW-CHANGEs that have this replica's.
    fn quorums_of(&self, all: Votes) -> impl Iterator<Item = Votes> {
        let own = self.own_key();
        let quorum = self.group.quorum();
        // Groups are small: of nine members there are 126 quorums.
        let sets = 0_u32..1 << all.len().min(MEMBERS_MAX);
        let sets = sets.filter(move |set| set.count_ones() as usize == quorum);
        sets.filter_map(move |set| {
            let chosen = (0..MEMBERS_MAX).zip(&all).filter(|it| set >> it.0 & 1 == 1);
            let votes: Votes = chosen.map(|it| it.1.clone()).collect();
            votes.iter().any(|it| (it.0.device, it.0.epoch) == own).then_some(votes)
        })
    }

    /// The VIEW-CHANGEs with which this replica can open a view: those that admit most newcomers.
    pub(crate) fn votes_for(&self, view: u64) -> Option<Vec<Reference>> {
        let wanted = &self.own_track().ballots;
        let mut best: Option<(u64, bool, Vec<Reference>)> = None;
        for votes in self.candidates(view).into_iter().flat_map(|it| self.quorums_of(it)) {
            let Some(opening) = self.opening(view, &votes) else {
                continue;
            };
            let sum = opening.epochs.iter().sum();
            let admits = |it: (&u32, &u64)| opening.epochs[*it.0 as usize] >= *it.1;
            if best.as_ref().is_none_or(|it| it.0 < sum) {
                let votes = votes.iter().map(|it| it.0).collect();
                best = Some((sum, wanted.iter().all(admits), votes));
            }
        }
        // A liar that wants all views ahead of time would be one of the first f + 1 in each, and no
        // newcomer would be admitted: those who have voted for it get some time.
        let is_early = 2 * self.waited <= self.group.options.timeout;
        best.filter(|it| it.1 || !is_early).map(|it| it.2)
    }

    /// The view that f + 1 have promised, which one correct replica at least wants.
    pub(crate) fn wanted_by_quorum(&self) -> u64 {
        let mut promised = BTreeMap::<u32, u64>::new();
        for ((device, _), stream) in &self.streams {
            let known = promised.entry(*device).or_default();
            *known = (*known).max(stream.track.promised);
        }
        let mut promised: Vec<u64> = promised.into_values().collect();
        promised.sort_unstable_by(|a, b| b.cmp(a));
        promised.get(self.group.faults()).copied().unwrap_or(0)
    }
}
