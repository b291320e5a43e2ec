// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Following the streams of all members.
//!
//! Whether a statement is taken depends on the streams alone, never on time or on what else a
//! receiver knows: all correct replicas judge each sender alike. A receiver may wait, though. The
//! exception is a view that a receiver has skipped with a state, in which it takes what it cannot
//! judge.

use smt_attestation::Kind;
use smt_replica::{Attested, Service};

use crate::message::{Batch, Checkpoint, Reference, Statement, decode, fits_statement};
use crate::replica::Replica;
use crate::track::Track;

/// The fate of a statement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It was taken.
    Taken,
    /// It refers to something that is not here yet.
    Wait,
    /// No correct replica says this.
    Faulty,
}

/// A statement's place: device, epoch and counter.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) device: u32,
    pub(crate) epoch: u64,
    pub(crate) counter: u64,
}

impl<S: Service> Replica<S> {
    /// Takes what can be taken from all streams.
    pub(crate) fn drain(&mut self) {
        loop {
            let keys: Vec<_> = self.streams.keys().copied().collect();
            let mut has_taken = false;
            keys.iter().for_each(|key| has_taken |= self.open_missed_views(*key));
            for key in keys {
                while self.take_next(key) {
                    has_taken = true;
                }
            }
            if !has_taken {
                return;
            }
        }
    }

    /// Opens views whose NEW-VIEW came before the checkpoint from which on a stream is followed.
    /// True if there was one.
    fn open_missed_views(&mut self, key: (u32, u64)) -> bool {
        let Some(stream) = self.streams.get(&key).filter(|it| it.begun() > 0) else {
            return false;
        };
        let is_missed = |it: &(&u64, &Vec<Reference>)| !self.views.contains_key(it.0);
        let missed: Vec<_> = stream.track.opened.iter().filter(is_missed).collect();
        let missed: Vec<_> = missed.into_iter().map(|it| (*it.0, it.1.clone())).collect();
        let place = Place { device: key.0, epoch: key.1, counter: stream.track.counter };
        let mut has_opened = false;
        for (view, votes) in missed {
            self.judge_new_view(place, view, &votes);
            has_opened |= self.views.contains_key(&view);
        }
        has_opened
    }

    fn take_next(&mut self, key: (u32, u64)) -> bool {
        let Some(stream) = self.streams.get(&key).filter(|it| !it.track.is_faulty) else {
            return false;
        };
        // A replica that has restarted follows others only from where a view's opening says.
        let is_later = self.group.epochs.get(key.0 as usize) < Some(&key.1);
        let is_known = stream.track.at.is_some() || stream.track.counter > 0 || is_later;
        let Some((counter, statement)) = stream.next().filter(|_| is_known) else {
            return false;
        };
        if counter > stream.checkpoints.stable_counter() + self.group.stream_window() {
            return false;
        }
        let place = Place { device: key.0, epoch: key.1, counter };
        let mut track = stream.track.clone();
        let verdict = self.judge(&mut track, place, &statement);
        let retained = self.group.options.retained;
        let Some(stream) = self.streams.get_mut(&key) else {
            return false;
        };
        match verdict {
            Verdict::Wait => return false,
            Verdict::Faulty => stream.track.is_faulty = true,
            Verdict::Taken => {
                track.counter = counter;
                stream.track = track;
                stream.forget(retained);
            }
        }
        let at = stream.track.at;
        if verdict == Verdict::Taken {
            self.pass_checkpoint(key);
        }
        if let Some((view, _)) = at {
            self.decide(view);
        }
        verdict == Verdict::Taken
    }

    /// Notes up to where f + 1 have committed to a view's log.
    pub(crate) fn decide(&mut self, view: u64) {
        let Some(of_view) = self.views.get(&view) else {
            return;
        };
        let length = |device: u32| {
            let key = (device, of_view.epoch(device)?);
            let at = self.streams.get(&key)?.track.at?;
            (at.0 == view).then_some(at.1)
        };
        let mut lengths: Vec<u64> = (0..self.group.replicas).filter_map(length).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let quorum = self.group.quorum();
        if let Some(length) = lengths.get(quorum - 1) {
            self.decided = self.decided.max((view, *length));
        }
    }

    /// Judges the next statement of a stream, whose state becomes what follows from it.
    fn judge(&mut self, track: &mut Track, place: Place, it: &Attested) -> Verdict {
        let Some(kind) = it.attestation().claim().map(|header| header.kind) else {
            return Verdict::Faulty;
        };
        if kind == Kind::Vote {
            let Some((newcomer, epoch)) = newcomer(&it.body) else {
                return Verdict::Faulty;
            };
            let known = track.ballots.entry(newcomer).or_insert(epoch);
            *known = epoch.max(*known);
            return Verdict::Taken;
        }
        match decode(&it.body) {
            None => Verdict::Faulty,
            Some(Statement::Hello { nonce }) => {
                track.nonce = Some(nonce);
                let first = self.group.epochs.get(place.device as usize);
                let is_fine = place.counter == 1 && first < Some(&place.epoch);
                if is_fine { Verdict::Taken } else { Verdict::Faulty }
            }
            Some(Statement::Prepare { view, sequence, batch }) => {
                self.judge_prepare(track, place, (view, sequence, batch))
            }
            Some(Statement::Commit { view, sequence }) => {
                self.judge_commit(track, place, (view, sequence))
            }
            Some(Statement::Checkpoint(checkpoint)) => {
                self.judge_checkpoint(track, place, (checkpoint, it))
            }
            Some(Statement::ViewChange { view }) => {
                if !track.may_want(view) {
                    return Verdict::Faulty;
                }
                track.change(view, place.counter, it.attestation[1]);
                track.promised = view;
                Verdict::Taken
            }
            Some(Statement::NewView { view, votes }) => {
                // Before any wait: who remembers the view, and who does not, judge alike.
                if !track.may_open(view) {
                    return Verdict::Faulty;
                }
                let verdict = self.judge_new_view(place, view, &votes);
                if verdict == Verdict::Taken {
                    track.open(view, votes);
                }
                verdict
            }
            Some(Statement::Enter { view, opening }) => {
                self.judge_enter(track, place, (view, opening, it))
            }
            Some(Statement::Streams(stated)) => match self.hear_checkpoints(place, &stated, it) {
                true => Verdict::Taken,
                false => Verdict::Faulty,
            },
        }
    }

    /// Whether a sender may speak in a view: it has entered it, and has not promised a later one.
    fn may_speak(&self, track: &Track, view: u64) -> bool {
        let has_promised = track.promised > view;
        track.at.is_some_and(|at| at.0 == view) && !has_promised
    }

    /// The fate of a statement that refers to something unknown. It may come yet, but for a view
    /// that this replica has skipped with a state: there nothing depends on it any more.
    pub(crate) fn wait_unless_past(&self, view: u64) -> Verdict {
        let is_past = self.own_track().at.is_some_and(|at| at.0 > view) || view < self.skipped_to;
        if is_past { Verdict::Taken } else { Verdict::Wait }
    }

    /// The fate of a statement in a view that is unknown. It waits while the leader's stream may
    /// still open the view: a lie that is taken here, and is faulty to those who know the view,
    /// would part this replica from them, since they take no view that begins with a later vote of
    /// the liar. A NEW-VIEW before the place from which on the leader's stream is followed may open
    /// it too, when its votes are here. A view that was skipped with a state need not be in any
    /// stream. One that was never opened is void, and all who have promised a later one go on
    /// without it: those who want a view beyond the others come to it by their timeouts, whatever
    /// view they have entered.
    fn wait_unless_never_opened(&self, view: u64) -> Verdict {
        let leader = self.group.leader(view);
        let mut of_leader = self.streams.range((leader, 0)..=(leader, u64::MAX));
        let may_open = of_leader.any(|it| {
            let may_come = !it.1.track.is_faulty && it.1.track.may_open(view);
            may_come || self.may_open_missed(*it.0, view)
        });
        let is_skipped = view < self.skipped_to;
        let is_void = !may_open && self.own_track().promised > view;
        if is_skipped || is_void { Verdict::Taken } else { Verdict::Wait }
    }

    fn judge_prepare(
        &mut self,
        track: &mut Track,
        from: Place,
        (view, sequence, batch): (u64, u64, Batch),
    ) -> Verdict {
        let is_leader = self.group.leader(view) == from.device;
        if !is_leader || !self.may_speak(track, view) {
            return Verdict::Faulty;
        }
        if sequence > self.ledger.stable.saturating_add(self.group.options.window) {
            return Verdict::Wait;
        }
        let size = batch.len();
        let fits = fits_statement(batch.iter().map(|it| it.operation.len()));
        if size == 0 || size > self.group.options.batch || !fits {
            return Verdict::Faulty;
        }
        if !batch.iter().all(|request| self.is_genuine(request)) {
            return Verdict::Faulty;
        }
        let verdict = self.wait_unless_never_opened(view);
        let Some(of_view) = self.views.get_mut(&view) else {
            track.at = Some((view, sequence));
            track.is_exact = false;
            return verdict;
        };
        if sequence != of_view.end() + 1 {
            return Verdict::Faulty;
        }
        of_view.append(batch);
        track.chain = of_view.end_chain();
        track.at = Some((view, sequence));
        Verdict::Taken
    }

    fn judge_commit(
        &self,
        track: &mut Track,
        from: Place,
        (view, sequence): (u64, u64),
    ) -> Verdict {
        let is_next = track.at.is_some_and(|at| at.1 < sequence);
        if !self.may_speak(track, view) || !is_next || self.group.leader(view) == from.device {
            return Verdict::Faulty;
        }
        let end = self.views.get(&view).map(crate::view::View::end);
        track.at = Some((view, sequence));
        if end.is_none_or(|end| end < sequence) {
            let is_known = end.is_some();
            return if is_known { Verdict::Wait } else { self.wait_unless_never_opened(view) };
        }
        Verdict::Taken
    }

    fn judge_checkpoint(
        &mut self,
        track: &mut Track,
        from: Place,
        (checkpoint, it): (Checkpoint, &Attested),
    ) -> Verdict {
        let sequence = checkpoint.sequence;
        let is_place = sequence.is_multiple_of(self.group.options.interval.max(1));
        if sequence <= track.checkpoint || !is_place {
            return Verdict::Faulty;
        }
        if !self.group.is_checkpoint(sequence, self.ledger.stable) {
            return Verdict::Wait;
        }
        track.checkpoint = sequence;
        let quorum = self.group.quorum();
        if self.ledger.vote(from.device, (checkpoint, it.clone()), quorum) {
            self.forget_stable();
        }
        Verdict::Taken
    }

    /// Forgets the part of the log that is stable and executed here.
    pub(crate) fn forget_stable(&mut self) {
        let place = self.ledger.stable.min(self.ledger.executed);
        self.views.values_mut().for_each(|view| view.forget(place));
    }

    fn judge_enter(
        &mut self,
        track: &mut Track,
        from: Place,
        (view, opening, it): (u64, [u8; 32], &Attested),
    ) -> Verdict {
        let is_later = track.at.is_none_or(|at| at.0 < view);
        if !is_later || view < track.promised {
            return Verdict::Faulty;
        }
        let verdict = self.wait_unless_never_opened(view);
        let leads = self.group.leader(view) == from.device;
        let Some(of_view) = self.views.get_mut(&view) else {
            // Its stream tells, whatever is known of the view: NEW-VIEW comes before.
            if leads && !track.opened.contains_key(&view) {
                return Verdict::Faulty;
            }
            track.enter((view, opening), None, [0; 32]);
            return verdict;
        };
        if of_view.epoch(from.device) != Some(from.epoch) || of_view.digest != opening {
            return Verdict::Faulty;
        }
        of_view.enters.insert(from.device, it.clone());
        let chain = if leads { of_view.opening.chain } else { [0; 32] };
        track.enter((view, opening), Some(of_view.opening.start), chain);
        Verdict::Taken
    }
}

/// The device and the epoch that a vote is for.
fn newcomer(vote: &[u8]) -> Option<(u32, u64)> {
    let device = vote.get(0..4)?.try_into().ok()?;
    let epoch = vote.get(4..12)?.try_into().ok()?;
    Some((u32::from_be_bytes(device), u64::from_be_bytes(epoch)))
}
