// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica whose inputs are on a disk before anything that follows from them leaves.
//!
//! A replica is a function of its inputs, its device's attestations included. A replica that was
//! killed takes the inputs of its log again, and is in the state, epoch and counter that the others
//! know: to them it was slow. Inputs that the crash lost have had no consequence outside.
//!
//! A log that is lost or damaged ends the epoch: the device must begin the next one with an empty
//! log, and gets the state from the others. An older log that is restored rolls the device back.

mod beginning;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestor::{Attested, AttestorError, Given, Unverified};
use smt_device_client::DeviceError;
use smt_journal::{Disk, Journal, JournalError, LogBytes, Questions, SNAPSHOT_PART, SnapshotLog};

use beginning::{Beginning, Begun};

use crate::digest::{Digest, digest};
use crate::effect::{Asker, Effect};
use crate::group::Group;
use crate::message::{Message, encode};
use crate::replica::{Identity, Metrics, Output, Replica};
use crate::rule::Rule;
use crate::service::Service;

/// The version of what a replica makes of its inputs. A log of another version is refused.
const VERSION: u32 = 6;
/// Ticks from one state for a replica that asks to the next: it is all that the service knows.
const STATE_EVERY: u32 = 8;
/// The beginning of a log's owner. The version follows.
const LOG: &str = "SMT bft log";

/// A record of the log.
#[derive(Deserialize, Serialize)]
enum Record {
    /// The nonce of the device's start: always the first.
    Start([u8; 16]),
    /// Time passes.
    Tick,
    /// A message.
    Message(Vec<u8>),
    /// All that a device that outlives the replica has given for the inputs before.
    Given(Vec<Given>),
    /// A part of the snapshot with which a log goes on behind its first record.
    Part(Vec<u8>),
    /// The snapshot is whole.
    Whole,
}

/// An input that was not taken yet.
enum Input {
    Tick,
    Message(Message),
}

/// Why a replica cannot be had from its log, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DurableError {
    /// The log cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] AttestorError),
}

impl From<DeviceError> for DurableError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.into())
    }
}

/// A replica with a log.
pub struct Durable<S, D> {
    replica: Replica<S>,
    journal: Journal<D>,
    owner: Vec<u8>,
    /// Bytes of the snapshot with which the log begins, and of the log when it began.
    snapshot: u64,
    begun: u64,
    /// Statements whose MACs are not verified yet.
    unverified: Unverified,
    /// Inputs that the replica takes when they are durable.
    waiting: Vec<Input>,
    /// The hashes of the messages among them: a copy that comes meanwhile is not in the log again.
    hashes: BTreeSet<Digest>,
    questions: Questions<Asker, Message>,
    /// The ticks since a replica that asks for the state had it.
    states: BTreeMap<u32, u32>,
    outputs: Vec<Output>,
    replayed: u64,
}

impl<S: Service, D: Disk> Durable<S, D> {
    /// Starts a replica with an empty log, or goes on where the log ends: then the nonce of a
    /// library's start is the log's, and that of `identity` plays no part. A log of another device,
    /// epoch or group is refused, and one that is older than a device's counter.
    ///
    /// # Errors
    /// [`DurableError`]
    pub fn open(
        group: Arc<Group>,
        identity: Identity,
        service: S,
        disk: D,
    ) -> Result<Self, DurableError> {
        Journal::refuse_older(&disk, (0..VERSION).map(|it| encode(&(LOG, it))))?;
        let owner = owner(&group, &identity);
        let nonce = identity.device.start().nonce;
        let mut beginning = Beginning::new(group, identity, service);
        let mut journal = Journal::open(disk, &owner, |record| beginning.take(record))?;
        if beginning.is_empty() {
            let start = encode(&Record::Start(nonce));
            journal.append(&start);
            journal.commit()?;
            beginning.take(&start);
        }
        let Begun { mut replica, inputs: replayed, snapshot } = beginning.finish(&mut journal)?;
        let outputs = replica.outputs();
        Ok(Self {
            replica,
            journal,
            owner,
            snapshot,
            begun: snapshot,
            unverified: Unverified::default(),
            waiting: Vec::new(),
            hashes: BTreeSet::new(),
            questions: Questions::new(),
            states: BTreeMap::new(),
            outputs,
            replayed,
        })
    }

    /// Takes a message, when it is durable. One that changes nothing leaves nothing in the log, and
    /// one for which the log has no room before the next commit is lost as on a network.
    pub fn receive(&mut self, bytes: &[u8]) {
        let Some(mut message) = Message::decode(bytes) else {
            return;
        };
        // The state in which the group was formed needs no proof, and nobody takes it from others.
        if let Message::State(state) = &mut message
            && state.proof.is_empty()
        {
            state.snapshot.clear();
        }
        // One message may come in several forms of bytes, since a number of variable length has
        // more than one. The log has the shortest.
        let bytes = message.encode();
        let hash = digest("input", &[&bytes]);
        if self.hashes.contains(&hash) {
            return;
        }
        if let Message::Statement(statement) = message {
            self.arrive(statement, hash);
            return;
        }
        match self.replica.effect_of(&message) {
            Effect::Nothing => {}
            Effect::Answer(asker) => self.questions.put(asker, message),
            Effect::Change if !self.journal.has_room(bytes.len()) => {}
            Effect::Change => {
                self.hashes.insert(hash);
                self.journal.append(&encode(&Record::Message(bytes)));
                self.waiting.push(Input::Message(message));
            }
        }
    }

    /// A statement that is of use waits for the next commit, which verifies all of them together.
    fn arrive(&mut self, statement: Attested, hash: Digest) {
        let bytes = self.unverified.bytes_with(&statement);
        if self.replica.may_take(&statement) && self.journal.has_room(bytes) {
            self.hashes.insert(hash);
            self.unverified.push(statement);
        }
    }

    /// Logs the statements that have come, but for those that no device has attested.
    fn verify(&mut self) {
        let lacks_macs = self.replica.broken.lacks(Rule::Mac);
        for (statement, is_genuine) in self.unverified.verify(&self.replica.device) {
            let message = Message::Statement(statement);
            let bytes = message.encode();
            if (is_genuine || lacks_macs) && self.journal.has_room(bytes.len()) {
                self.journal.append(&encode(&Record::Message(bytes)));
                self.waiting.push(Input::Message(message));
            }
        }
    }

    /// Time passes ([`Replica::tick`]).
    pub fn tick(&mut self) {
        self.questions.tick();
        self.states.retain(|_, ticks| {
            *ticks += 1;
            *ticks < STATE_EVERY
        });
        // The log does not grow while nothing happens but questions.
        if !(self.waiting.is_empty() && self.replica.is_idle()) {
            self.journal.append(&encode(&Record::Tick));
        }
        self.waiting.push(Input::Tick);
    }

    /// Makes the inputs durable, has the replica take them, and returns what is to be sent.
    ///
    /// # Errors
    /// [`DurableError`]. The replica must end: what it would say is not durable, or its device says
    /// nothing more.
    pub fn commit(&mut self) -> Result<Vec<Output>, DurableError> {
        self.verify();
        self.journal.commit()?;
        self.work()?;
        Ok(std::mem::take(&mut self.outputs))
    }

    /// The numbers of this moment.
    pub fn metrics(&self) -> Metrics {
        self.replica.metrics()
    }

    /// How many inputs the log had when it was opened.
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Bytes of the log.
    pub fn log_length(&self) -> u64 {
        self.journal.length()
    }

    fn work(&mut self) -> Result<(), DurableError> {
        self.hashes.clear();
        // A device that has failed since the last commit ends the replica, also one that is idle.
        self.take_outputs()?;
        for input in std::mem::take(&mut self.waiting) {
            match input {
                Input::Tick => self.replica.tick(),
                Input::Message(message) => self.replica.take(message),
            }
            self.take_outputs()?;
            // The device issues its last attestations again, and no older ones: the replica has
            // stopped in the middle of its work until the log has them.
            while self.replica.device.is_ahead_of_log() {
                self.keep_given();
                self.journal.commit()?;
                self.replica.advance();
                self.take_outputs()?;
            }
        }
        self.keep_given();
        for mut question in self.questions.due() {
            if let Message::Status(status) = &mut question
                && self.replica.lacks_state(status)
            {
                status.wants_state = !self.states.contains_key(&status.from);
                self.states.entry(status.from).or_insert(0);
            }
            self.outputs.extend(self.replica.answer(&question));
        }
        Ok(())
    }

    fn take_outputs(&mut self) -> Result<(), DurableError> {
        if let Some(failure) = self.replica.device.failure() {
            return Err(failure.into());
        }
        self.outputs.extend(self.replica.outputs());
        Ok(())
    }

    /// Writes what the device has given, with the next commit: until then it can be had again.
    fn keep_given(&mut self) {
        let given = self.replica.device.take_unlogged();
        if !given.is_empty() {
            self.journal.append(&encode(&Record::Given(given)));
        }
    }
}

impl<S: Service, D: Disk> SnapshotLog<D> for Durable<S, D> {
    type Error = DurableError;

    fn log_bytes(&self) -> LogBytes {
        let length = self.journal.length();
        let growth = length.saturating_sub(self.begun);
        LogBytes { length, snapshot: self.snapshot, growth }
    }

    fn move_to(&mut self, disk: D) -> Result<D, DurableError> {
        let bytes = self.replica.snapshot();
        let parts = bytes.chunks(SNAPSHOT_PART).map(|it| Record::Part(it.to_vec()));
        let records = iter::once(Record::Start(self.replica.start.nonce));
        let records = records.chain(parts).chain([Record::Whole]).map(|it| encode(&it));
        let mut journal = Journal::begin(disk, &self.owner, records)?;
        for input in &self.waiting {
            match input {
                Input::Tick => journal.append(&encode(&Record::Tick)),
                Input::Message(message) => {
                    journal.append(&encode(&Record::Message(message.encode())));
                }
            }
        }
        (self.snapshot, self.begun) = (bytes.len() as u64, journal.length());
        Ok(std::mem::replace(&mut self.journal, journal).into_disk())
    }
}

#[cfg(feature = "sim")]
impl<S: Service> Durable<S, smt_journal::ModelDisk> {
    pub(crate) fn replica(&self) -> &Replica<S> {
        &self.replica
    }

    /// All that is to be sent, though it is not durable.
    pub(crate) fn outputs_before_commit(&mut self) -> Vec<Output> {
        self.verify();
        // A device that fails sends nothing.
        let _ = self.work();
        std::mem::take(&mut self.outputs)
    }

    /// The next commit writes, and the disk fails before it is durable.
    pub(crate) fn fail_next_sync(&mut self) {
        self.journal.disk_mut().fails_after = Some(0);
    }

    /// The disk fails no more, and syncs.
    pub(crate) fn heal_disk(&mut self) {
        let disk = self.journal.disk_mut();
        (disk.fails_after, disk.loses_syncs) = (None, false);
    }

    pub(crate) fn into_disk(self) -> smt_journal::ModelDisk {
        self.journal.into_disk()
    }
}

/// All that the replica depends on beside its inputs.
fn owner(group: &Group, identity: &Identity) -> Vec<u8> {
    let start = identity.device.start();
    let members = encode(&(&group.clients, &group.reply_keys, &group.epochs));
    let options = group.options;
    let sizes = (options.batch, options.operation, options.interval, options.window);
    let (replicas, stream) = (group.replicas, group.stream);
    let rest = (options.pipeline, options.retained, options.timeout, replicas, stream);
    let configuration = digest("configuration", &[&members, &encode(&sizes), &encode(&rest)]);
    encode(&(LOG, VERSION, start.device.0, start.epoch.0, configuration))
}

#[cfg(all(test, feature = "sim"))]
mod tests;
