// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State transfer: a checkpoint, a view and the places of streams for a replica that has restarted,
//! or that has missed more than the others keep.
//!
//! Each part of a [`State`] is a fact that a correct replica among f + 1 has attested: a checkpoint
//! of the log was executed, a view begins like this, a stream's sender stands there. A log
//! beyond the checkpoint is not committed by them: f of f + 1 ENTERs may be liars', who attest them
//! when they may not, and show them to one replica alone. A replica that takes a state learns from
//! the streams what is committed ([`Replica::decide`]), as everybody does.

use std::collections::{BTreeMap, BTreeSet};

use smt_replica::{Attested, Digest, REQUEST_WAY_MAX, Request, Service};

use crate::ledger::{extend, state_digest};
use crate::message::{Batch, Checkpoint, Message, Opening, State, Statement, decode};
use crate::recovery::NEWCOMERS;
use crate::replica::Replica;
use crate::stream_checkpoint::StreamState;
use crate::track::{Stream, Track};
use crate::view::View;

/// Batches by their places, each with the hash of the log up to it.
type Log = BTreeMap<u64, (Digest, Batch)>;

/// The parts of a state that are proved.
pub(crate) struct Proved {
    checkpoint: Checkpoint,
    log: Log,
    /// Where the view's leader stands in its log, and the hash up to there, if `streams` says so.
    end: Option<(u64, Digest)>,
}

/// Whether a stream is of use beside a view: its sender has entered no later one, whose statements
/// could not be judged.
fn is_of_view(opening: &Opening, it: &StreamState) -> bool {
    it.track.at.is_none_or(|at| at.0 <= opening.view)
}

/// Whether a device is in a later epoch in a view. Its stream before is of use to those who follow
/// it, who may wait for the log of a view that it has led.
fn is_replaced(opening: &Opening, it: &StreamState) -> bool {
    opening.epochs.get(it.device as usize) > Some(&it.epoch)
}

/// Whether the proof of a request is no longer than that of any client. The hash of a log does not
/// cover it: a longer one would take the memory of all to whom the state goes on.
fn has_short_way(request: &Request) -> bool {
    request.proof.way.len() <= REQUEST_WAY_MAX
}

/// Whether the sender of a stream stands in a view that begins like this.
fn has_entered(it: &StreamState, view: u64, opening: &Digest) -> bool {
    it.track.opening == *opening && it.track.at.is_some_and(|at| at.0 == view)
}

impl<S: Service> Replica<S> {
    /// The stable checkpoint, the latest view whose beginning is proved, and the stable checkpoints
    /// of all streams.
    pub(crate) fn state_for_others(&self) -> Option<Message> {
        let (checkpoint, proof, snapshot) = self.ledger.stable_state()?;
        let quorum = self.group.quorum();
        let stable = self.streams.values().filter_map(|it| it.checkpoints.stable());
        let stable: Vec<&StreamState> = stable.collect();
        let is_proved = |it: &&View| {
            let begins_like_this =
                |stream: &&StreamState| has_entered(stream, it.opening.view, &it.digest);
            it.opening.view == 0 || it.enters.len() >= quorum || stable.iter().any(begins_like_this)
        };
        let view = self.views.values().rev().find(is_proved)?;
        let opening = view.opening.clone();
        let of_view = stable.into_iter().filter(|it| is_of_view(&opening, it));
        // Replaced epochs come last: there may be more of them than a state has streams.
        let (replaced, others): (Vec<_>, Vec<_>) =
            of_view.partition(|it| is_replaced(&opening, it));
        let streams = others.into_iter().chain(replaced.into_iter().rev());
        let streams: Vec<StreamState> = streams.take(self.streams_max()).cloned().collect();
        let end = self.end_of_leader(&opening, &streams).map_or(0, |it| it.0);
        let places = checkpoint.sequence + 1..=opening.start.max(end);
        let log: Option<Vec<_>> = places.map(|place| view.batch(place).cloned()).collect();
        let enters = view.enters.values().take(quorum).cloned().collect();
        Some(Message::State(Box::new(State {
            proof: proof.to_vec(),
            checkpoints: self.ledger.votes().cloned().collect(),
            snapshot: snapshot.to_vec(),
            log: log?,
            opening,
            enters,
            streams,
        })))
    }

    /// Where the leader of a view stands in its log, if it has entered it.
    fn end_of_leader(&self, opening: &Opening, streams: &[StreamState]) -> Option<(u64, Digest)> {
        let leader = self.group.leader(opening.view);
        let epoch = *opening.epochs.get(leader as usize)?;
        let track = &streams.iter().find(|it| it.key() == (leader, epoch))?.track;
        let (view, end) = track.at?;
        (view == opening.view).then_some((end, track.chain))
    }

    /// The parts of a state that is proved, if it has anything that this replica cannot have
    /// otherwise: a later view, or a stream whose next statement is missing.
    pub(crate) fn proved(&self, state: &State) -> Option<Proved> {
        let opening = &state.opening;
        let most = self.group.replicas as usize;
        let is_shaped = opening.epochs.len() == most
            && state.enters.len() <= most
            && state.proof.len() <= most
            && state.checkpoints.len() <= most * self.group.checkpoints_max()
            && self.fits_all(&state.checkpoints)
            && state.streams.len() <= self.streams_max()
            && state.streams.iter().all(|it| it.proof.len() <= most && self.fits_all(&it.proof))
            && state.log.iter().flat_map(|it| it.iter()).all(has_short_way)
            && self.fits_all(&state.enters)
            && self.fits_all(&state.proof);
        if !is_shaped || !self.is_of_use(state) {
            return None;
        }
        let is_proved = |it: &StreamState| is_of_view(opening, it) && self.is_proved(it);
        if !state.streams.iter().all(is_proved) || !self.is_entered(state) {
            return None;
        }
        let checkpoint = self.proved_checkpoint(state)?;
        if !self.fits_checkpoint(state, &checkpoint) {
            return None;
        }
        let end = self.end_of_leader(opening, &state.streams);
        let mut log = Log::new();
        let mut chain = checkpoint.chain;
        let mut chains = BTreeMap::from([(checkpoint.sequence, chain)]);
        for (place, batch) in (checkpoint.sequence.checked_add(1)?..).zip(&state.log) {
            chain = extend(&chain, batch);
            chains.insert(place, chain);
            log.insert(place, (chain, batch.clone()));
        }
        // The log is that of the view, as far as the checkpoint does not stand for it.
        let mut known = [Some((opening.start, opening.chain)), end].into_iter().flatten();
        let is_it =
            |it: (u64, Digest)| it.0 < checkpoint.sequence || chains.get(&it.0) == Some(&it.1);
        let last = opening.start.max(end.map_or(0, |it| it.0)).max(checkpoint.sequence);
        let is_whole = chains.last_key_value().is_some_and(|it| *it.0 == last);
        (is_whole && known.all(is_it)).then_some(Proved { checkpoint, log, end })
    }

    /// How many streams of members and newcomers there may be.
    fn streams_max(&self) -> usize {
        self.group.replicas as usize * (NEWCOMERS + 1)
    }

    fn fits_all(&self, statements: &[Attested]) -> bool {
        statements.iter().all(|it| self.fits(it))
    }

    /// Whether a state has a later view than this replica has, a later stable checkpoint, or a
    /// stream that it needs.
    fn is_of_use(&self, state: &State) -> bool {
        let opening = &state.opening;
        let view = opening.view;
        let is_later = self.views.last_key_value().is_none_or(|(newest, _)| *newest < view);
        // Statements of an earlier view that is unknown were taken as those of the past.
        if !is_later && !self.views.contains_key(&view) {
            return false;
        }
        let is_beyond = |it: &Attested| match decode(&it.body) {
            Some(Statement::Checkpoint(it)) => it.sequence > self.ledger.stable,
            _ => false,
        };
        let is_stable_later = state.proof.iter().any(is_beyond);
        is_later || is_stable_later || state.streams.iter().any(|it| self.needs(opening, it))
    }

    /// Whether a state has each stream once, and no stream beyond what may be ordered after its
    /// checkpoint: else the CHECKPOINTs that led there would be missing.
    fn fits_checkpoint(&self, state: &State, checkpoint: &Checkpoint) -> bool {
        let keys: BTreeSet<_> = state.streams.iter().map(StreamState::key).collect();
        let last = checkpoint.sequence.saturating_add(self.group.options.window);
        let is_within = |it: &StreamState| it.track.at.is_none_or(|at| at.1 <= last);
        keys.len() == state.streams.len() && state.streams.iter().all(is_within)
    }

    /// Whether the next statement of a stream is missing here, and its checkpoint is later. A
    /// replaced epoch that is not followed is not needed.
    fn needs(&self, opening: &Opening, state: &StreamState) -> bool {
        let (stream, window) = (self.streams.get(&state.key()), self.group.stream_window());
        let is_needed = match stream {
            Some(stream) => stream.needs(state, window),
            None => !is_replaced(opening, state),
        };
        state.key() != self.own_key() && is_needed
    }

    /// Takes a state that is proved.
    pub(crate) fn take_state(&mut self, state: State) {
        let Some(Proved { checkpoint, log, end }) = self.proved(&state) else {
            return;
        };
        if checkpoint.sequence <= self.ledger.executed {
            self.ledger.settle(checkpoint, state.proof);
        } else if !self.ledger.install(checkpoint, state.proof, &state.snapshot) {
            return;
        }
        self.metrics.states += 1;
        for it in &state.checkpoints {
            self.count_checkpoint(it);
        }
        let opening = state.opening;
        let view = opening.view;
        // A view that is known already, with all streams, leaves nothing out.
        let needs_any = state.streams.iter().any(|it| self.needs(&opening, it));
        if !self.views.contains_key(&view) || needs_any {
            self.skipped_to = self.skipped_to.max(view);
        }
        self.decided = self.decided.max((view, checkpoint.sequence));
        let leader = self.group.leader(view);
        let mut is_leader_moved = false;
        for it in state.streams {
            if self.needs(&opening, &it) {
                is_leader_moved |=
                    opening.epochs.get(leader as usize) == Some(&it.epoch) && it.device == leader;
                self.begin_stream_at(it, view);
            }
        }
        // The other members' streams are followed from the start, since all of them is kept.
        let members = (0..).zip(opening.epochs.iter().copied());
        let own = self.own_key();
        for (device, epoch) in members.filter(|it| *it != own) {
            let is_first = self.group.epochs.get(device as usize) == Some(&epoch);
            let track = if is_first { Track::first() } else { Track::default() };
            self.streams.entry((device, epoch)).or_insert_with(|| Stream::new(track));
        }
        let checkpoint = (checkpoint.sequence, checkpoint.chain);
        let end = end.filter(|_| is_leader_moved);
        self.learn_view(opening, state.enters, (checkpoint, log), end);
        (0..self.group.replicas).for_each(|device| self.forget_epochs(device));
        self.decide(view);
    }

    /// Counts a CHECKPOINT, wherever it stands in its sender's stream: f + 1 equal ones prove it.
    fn count_checkpoint(&mut self, it: &Attested) {
        let Some(device) = self.authenticate(it).map(|header| header.device.0) else {
            return;
        };
        if let Some(Statement::Checkpoint(checkpoint)) = decode(&it.body)
            && self.group.is_checkpoint(checkpoint.sequence, self.ledger.stable)
        {
            self.ledger.vote(device, (checkpoint, it.clone()), self.group.quorum());
        }
    }

    /// Follows a stream from its stable checkpoint on.
    fn begin_stream_at(&mut self, state: StreamState, view: u64) {
        let (device, at) = (state.device, state.track.at);
        self.metrics.stream_jumps += 1;
        self.streams.entry(state.key()).or_default().begin_at(state);
        // Statements of views that the device has led are missing: these logs never get whole.
        let group = self.group.clone();
        let is_whole = |number: u64, it: &View| {
            let is_last = at.is_some_and(|at| at.0 == number && at.1 == it.end());
            let is_later = at.is_none_or(|at| at.0 < number);
            number == view || group.leader(number) != device || is_last || is_later
        };
        self.views.retain(|number, it| is_whole(*number, it));
    }

    /// Knows a view as a state has it. `end` is where its leader stands, if its stream is followed
    /// from there on.
    fn learn_view(
        &mut self,
        opening: Opening,
        enters: Vec<Attested>,
        (checkpoint, mut log): ((u64, Digest), Log),
        end: Option<(u64, Digest)>,
    ) {
        let start = (opening.start, opening.chain);
        let known = self.views.remove(&opening.view);
        let view = opening.view;
        let mut of_view = match known {
            Some(known) if end.is_none_or(|it| it.0 <= known.end()) => known,
            known => {
                let end = end.unwrap_or(start);
                log.retain(|place, _| *place <= end.0);
                let mut of_view = View::from_state(opening, checkpoint, log, end);
                of_view.enters.extend(known.into_iter().flat_map(|it| it.enters));
                of_view
            }
        };
        // The proof is for others as well.
        let enter = Statement::Enter { view, opening: of_view.digest };
        for it in enters {
            let header =
                self.authenticate(&it).filter(|_| decode(&it.body).as_ref() == Some(&enter));
            if let Some(header) = header
                && of_view.epoch(header.device.0) == Some(header.epoch.0)
            {
                of_view.enters.entry(header.device.0).or_insert(it);
            }
        }
        self.views.insert(view, of_view);
    }

    /// Whether the view of a state begins like this on the word of a correct replica: f + 1 members
    /// have entered it, or f + 1 state that one has, since its stream stands there. The streams are
    /// proved.
    fn is_entered(&self, state: &State) -> bool {
        let opening = &state.opening;
        // All begin with the view in which the group was formed.
        if *opening == View::first(self.group.epochs.clone()).opening {
            return true;
        }
        let digest = opening.digest();
        if state.streams.iter().any(|it| has_entered(it, opening.view, &digest)) {
            return true;
        }
        let entered = state.enters.iter().filter_map(|it| {
            let header = self.authenticate(it)?;
            let statement: Statement = decode(&it.body)?;
            let is_it = statement == Statement::Enter { view: opening.view, opening: digest };
            let epoch = opening.epochs.get(header.device.0 as usize);
            (is_it && epoch == Some(&header.epoch.0)).then_some(header.device.0)
        });
        let entered: BTreeSet<u32> = entered.collect();
        entered.len() >= self.group.quorum()
    }

    /// The checkpoint of a state, if f + 1 have stated it and the snapshot is its state.
    fn proved_checkpoint(&self, state: &State) -> Option<Checkpoint> {
        let mut stated = BTreeMap::<Checkpoint, BTreeSet<u32>>::new();
        for it in &state.proof {
            let device = self.authenticate(it)?.device.0;
            let Some(Statement::Checkpoint(checkpoint)) = decode(&it.body) else {
                return None;
            };
            stated.entry(checkpoint).or_default().insert(device);
        }
        if stated.is_empty() {
            // The state in which the group was formed needs no proof, since all begin with it.
            return Some(Checkpoint { sequence: 0, chain: [0; 32], state: [0; 32] });
        }
        let quorum = self.group.quorum();
        let (checkpoint, _) = stated.into_iter().find(|it| it.1.len() >= quorum)?;
        let is_state = state_digest(&state.snapshot) == checkpoint.state;
        is_state.then_some(checkpoint)
    }
}
