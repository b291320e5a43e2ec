// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checkpoints of streams: where a sender stands after some statements, on the word of f + 1.
//!
//! A replica that takes a stream from its first statement knows where the sender stands. One that
//! has restarted, or that has missed more than the others keep, cannot begin in the middle on
//! anybody's word: the statements before may have promised a view, after which a COMMIT in a lower
//! one counts nowhere. At each multiple of [`Group::stream_interval`] all that take a stream state
//! where its sender stands there ([`Statement::Streams`]). f + 1 equal statements, one of which is
//! a correct replica's, are a proof for everybody: the checkpoint is stable.
//!
//! Statements after the stable checkpoint are kept, and no more than
//! [`Group::stream_window`] of them are taken before the next one is stable. A correct replica
//! that was away finds the statement after its last one, or a checkpoint that it can trust.
//!
//! [`Statement::Streams`]: crate::message::Statement::Streams

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_replica::{Attested, Digest, STREAM_INTERVALS, Service};

use crate::follow::Place;
use crate::message::{Statement, decode, digest, encode};
use crate::replica::Replica;
use crate::track::Track;

/// Checkpoints of one statement, at most.
pub(crate) const STATED_MAX: usize = 64;
/// Checkpoints of one stream that are remembered of each replica that states them: the newest.
const REMEMBERED: usize = STREAM_INTERVALS as usize + 1;

/// Where the sender of a stream stands after some statements, as one replica has taken them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StreamCheckpoint {
    /// The sender.
    pub device: u32,
    /// Its epoch.
    pub epoch: u64,
    /// The counter of the last statement.
    pub counter: u64,
    /// The hash of all that follows from the statements.
    pub state: Digest,
}

/// A stable checkpoint of a stream, with its proof.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StreamState {
    /// The sender.
    pub(crate) device: u32,
    /// Its epoch.
    pub(crate) epoch: u64,
    /// Where it stands.
    pub(crate) track: Track,
    /// f + 1 attested statements of [`Statement::Streams`] that have this checkpoint.
    ///
    /// [`Statement::Streams`]: crate::message::Statement::Streams
    pub(crate) proof: Vec<Attested>,
}

impl StreamState {
    pub(crate) fn key(&self) -> (u32, u64) {
        (self.device, self.epoch)
    }

    /// The checkpoint that the proof has to state.
    pub(crate) fn checkpoint(&self) -> StreamCheckpoint {
        checkpoint_of(self.key(), &self.track)
    }
}

fn checkpoint_of((device, epoch): (u32, u64), track: &Track) -> StreamCheckpoint {
    let stream = (device.to_be_bytes(), epoch.to_be_bytes());
    let state = digest("stream", &[&stream.0, &stream.1, &encode(track)]);
    StreamCheckpoint { device, epoch, counter: track.counter, state }
}

/// The checkpoints of one stream: those that this replica has passed, and those that others state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct StreamCheckpoints {
    /// Where the sender stands at the checkpoints after the stable one.
    passed: BTreeMap<u64, (StreamCheckpoint, Track)>,
    /// The statements of each replica, by counter, with the state that they name.
    stated: BTreeMap<u32, BTreeMap<u64, (Digest, Attested)>>,
    stable: Option<StreamState>,
    /// The last checkpoint that this replica has stated.
    said: u64,
}

impl StreamCheckpoints {
    /// Begins at a stable checkpoint.
    pub(crate) fn stable_at(state: StreamState) -> Self {
        let said = state.track.counter;
        Self { stable: Some(state), said, ..Self::default() }
    }

    /// The stable checkpoint; nothing before the first one.
    pub(crate) fn stable(&self) -> Option<&StreamState> {
        self.stable.as_ref()
    }

    /// The counter of the stable checkpoint.
    pub(crate) fn stable_counter(&self) -> u64 {
        self.stable.as_ref().map_or(0, |it| it.track.counter)
    }

    /// The sender stands here at a checkpoint.
    fn pass(&mut self, key: (u32, u64), track: Track, quorum: usize) {
        let counter = track.counter;
        self.passed.insert(counter, (checkpoint_of(key, &track), track));
        self.settle(counter, quorum);
    }

    /// Counts what a replica states.
    fn hear(&mut self, from: u32, stated: &StreamCheckpoint, statement: &Attested, quorum: usize) {
        if stated.counter <= self.stable_counter() {
            return;
        }
        let of_replica = self.stated.entry(from).or_default();
        of_replica.entry(stated.counter).or_insert_with(|| (stated.state, statement.clone()));
        while of_replica.len() > REMEMBERED {
            of_replica.pop_first();
        }
        self.settle(stated.counter, quorum);
    }

    /// Makes a checkpoint stable that f + 1 state as this replica sees it.
    fn settle(&mut self, counter: u64, quorum: usize) {
        let Some((checkpoint, track)) = self.passed.get(&counter) else {
            return;
        };
        let stated = self.stated.values().filter_map(|it| it.get(&counter));
        let equal = stated.filter(|it| it.0 == checkpoint.state).map(|it| it.1.clone());
        let proof: Vec<Attested> = equal.take(quorum).collect();
        if proof.len() < quorum {
            return;
        }
        let (device, epoch, track) = (checkpoint.device, checkpoint.epoch, track.clone());
        self.stable = Some(StreamState { device, epoch, track, proof });
        self.passed = self.passed.split_off(&(counter + 1));
        for of_replica in self.stated.values_mut() {
            *of_replica = of_replica.split_off(&(counter + 1));
        }
    }

    /// Whether f + 1 replicas state one beyond a counter.
    pub(crate) fn is_stated_beyond(&self, counter: u64, quorum: usize) -> bool {
        let mut stated = BTreeMap::<(u64, Digest), usize>::new();
        for (place, (state, _)) in self.stated.values().flatten() {
            *stated.entry((*place, *state)).or_default() += 1;
        }
        stated.into_iter().any(|(it, count)| it.0 > counter && count >= quorum)
    }

    /// The checkpoints that this replica has passed and not stated.
    fn unsaid(&self) -> impl Iterator<Item = StreamCheckpoint> {
        self.passed.range(self.said + 1..).map(|it| it.1.0)
    }
}

impl<S: Service> Replica<S> {
    /// Notes where the sender of a stream stands, if that is one of the stream's checkpoints.
    pub(crate) fn pass_checkpoint(&mut self, key: (u32, u64)) {
        let (interval, quorum) = (self.group.stream_interval(), self.group.quorum());
        let Some(stream) = self.streams.get_mut(&key) else {
            return;
        };
        let track = &stream.track;
        // Where this replica has skipped views with a state, it does not know all.
        if track.counter.is_multiple_of(interval) && track.is_exact && !track.is_faulty {
            let track = track.checkpointed();
            stream.checkpoints.pass(key, track, quorum);
        }
    }

    /// Counts what a replica states of streams. False if no correct replica states it.
    ///
    /// Statements on a stream that is not followed here are dropped, as are those that come before
    /// the place from which on their own stream is followed. This replica may then stand at the end
    /// of the window. It goes on with a state when f + 1 state a later place ([`Stream::needs`]). A
    /// sender that says nothing more before that place would stay there. Others give a replica the
    /// statements of a stream that it lacks in each tick: it misses a whole window of a stream, and
    /// hears what is stated of it, on a network alone that brings the one and never the other.
    ///
    /// [`Stream::needs`]: crate::track::Stream::needs
    pub(crate) fn hear_checkpoints(
        &mut self,
        from: Place,
        stated: &[StreamCheckpoint],
        statement: &Attested,
    ) -> bool {
        let (interval, quorum) = (self.group.stream_interval(), self.group.quorum());
        let is_fine = |it: &StreamCheckpoint| {
            let is_place = it.counter > 0 && it.counter.is_multiple_of(interval);
            it.device < self.group.replicas && is_place
        };
        if stated.is_empty() || stated.len() > STATED_MAX || !stated.iter().all(is_fine) {
            return false;
        }
        for it in stated {
            if let Some(stream) = self.streams.get_mut(&(it.device, it.epoch)) {
                stream.checkpoints.hear(from.device, it, statement, quorum);
            }
        }
        true
    }

    /// States the checkpoints of streams that this replica has passed.
    pub(crate) fn state_checkpoints(&mut self) -> bool {
        let unsaid = self.streams.values().flat_map(|it| it.checkpoints.unsaid());
        let unsaid: Vec<StreamCheckpoint> = unsaid.take(STATED_MAX).collect();
        if unsaid.is_empty() || !self.metrics.is_active {
            return false;
        }
        for it in &unsaid {
            if let Some(stream) = self.streams.get_mut(&(it.device, it.epoch)) {
                stream.checkpoints.said = it.counter;
            }
        }
        self.say(Statement::Streams(unsaid));
        true
    }

    /// Whether the own stream is so far from its stable checkpoint that others might take no more
    /// of it. Orders, COMMITs and votes for newcomers wait then: what is left of the window is for
    /// checkpoints and view changes.
    pub(crate) fn is_window_full(&self) -> bool {
        let own = self.streams.get(&self.own_key());
        own.is_some_and(|it| {
            let beyond = it.track.counter.saturating_sub(it.checkpoints.stable_counter());
            beyond >= self.group.stream_window() / 2
        })
    }

    /// Whether f + 1 replicas state a checkpoint of a stream.
    pub(crate) fn is_proved(&self, state: &StreamState) -> bool {
        let checkpoint = state.checkpoint();
        let mut devices = Vec::new();
        for it in &state.proof {
            let Some(header) = self.authenticate(it) else {
                return false;
            };
            let Some(Statement::Streams(stated)) = decode(&it.body) else {
                return false;
            };
            if stated.contains(&checkpoint) && !devices.contains(&header.device) {
                devices.push(header.device);
            }
        }
        devices.len() >= self.group.quorum()
    }
}
