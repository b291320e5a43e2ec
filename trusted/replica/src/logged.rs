// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose inputs are on a disk before anything that follows from them leaves.
//!
//! A node is a function of its inputs, its device's attestations included. A node that was killed
//! takes the inputs of its log again, and is in the state, epoch and counter that the others know:
//! to them it was slow. Inputs that the crash lost have had no consequence outside.
//!
//! A log that is lost or damaged ends the epoch of the device. An older log that is restored rolls
//! a kernel in the process back, whose counter is its log; a device that outlives the node gives no
//! counter twice, and such a log is refused.

mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use serde::{Deserialize, Serialize};
use smt_attestor::{Attested, AttestorError, Given, Unverified};
use smt_device_client::DeviceError;
use smt_journal::{Disk, Journal, JournalError, LogBytes, Questions, SNAPSHOT_PART, SnapshotLog};

use reading::{Read, Reading};

use crate::digest::{Digest, digest};
use crate::encoding::encode;
use crate::node::{Asker, Effect, Node};

/// Ticks from one long answer for an asker to the next.
const LONG_EVERY: u32 = 8;

/// A record of the log.
#[derive(Deserialize, Serialize)]
enum Record {
    /// The nonce of the device's start: always the first.
    Start([u8; 16]),
    /// Time passes.
    Tick,
    /// A message.
    Message(Vec<u8>),
    /// All that a device that outlives the node has given for the inputs before.
    Given(Vec<Given>),
    /// A part of the snapshot with which a log goes on behind its first record.
    Part(Vec<u8>),
    /// The snapshot is whole.
    Whole,
}

/// An input that was not taken yet.
enum Input<M> {
    Tick,
    Message(M),
}

/// Why a node cannot be had from its log, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoggedError {
    /// The log cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] AttestorError),
}

impl From<DeviceError> for LoggedError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.into())
    }
}

/// The owner of a log: a log of another one is refused.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The number of the device.
    pub device: u32,
    /// Its epoch.
    pub epoch: u64,
    /// The hash of all that the node depends on beside its inputs: members, keys, sizes.
    pub configuration: Digest,
}

impl Owner {
    fn encode<N: Node>(&self) -> Vec<u8> {
        let Self { device, epoch, configuration } = *self;
        encode(&(log_name::<N>(), N::VERSION, device, epoch, configuration))
    }
}

/// The beginning of an owner. The version follows.
fn log_name<N: Node>() -> String {
    format!("SMT {} log", N::SYSTEM)
}

/// A node with a log.
pub struct Logged<N: Node, D> {
    node: N,
    journal: Journal<D>,
    owner: Vec<u8>,
    /// The nonce of the device's start.
    nonce: [u8; 16],
    /// Bytes of the snapshot with which the log begins, and of the log when it began.
    snapshot: u64,
    begun: u64,
    /// Statements whose MACs are not verified yet.
    unverified: Unverified,
    /// Inputs that the node takes when they are durable.
    waiting: Vec<Input<N::Message>>,
    /// The hashes of the messages among them: a copy that comes meanwhile is not in the log again.
    hashes: BTreeSet<Digest>,
    questions: Questions<Asker, N::Message>,
    /// The ticks since an asker had a long answer.
    long_answers: BTreeMap<Asker, u32>,
    /// Whether time has passed that changes nothing: the node asks the others, and no more.
    asks: bool,
    outputs: Vec<N::Output>,
    replayed: u64,
}

impl<N: Node, D: Disk> Logged<N, D> {
    /// Starts a node with an empty log, or continues where the log ends. `start` makes the node of
    /// the nonce of its device's start: the one that the log has, or `nonce` for an empty log. A
    /// log of another owner is refused, and one that is older than a device's counter.
    ///
    /// # Errors
    /// Those of the journal, the device and `start`.
    pub fn open(
        owner: Owner,
        nonce: [u8; 16],
        disk: D,
        start: impl FnOnce([u8; 16]) -> Result<N, LoggedError>,
    ) -> Result<Self, LoggedError> {
        Journal::refuse_older(&disk, (0..N::VERSION).map(|it| encode(&(log_name::<N>(), it))))?;
        let owner = owner.encode::<N>();
        let mut reading = Reading::new(start);
        let mut journal = Journal::open(disk, &owner, |record| reading.take(record))?;
        if reading.is_empty() {
            let record = encode(&Record::Start(nonce));
            journal.append(&record);
            journal.commit()?;
            reading.take(&record);
        }
        let Read { mut node, nonce, inputs: replayed, snapshot } = reading.finish(&mut journal)?;
        let outputs = node.outputs();
        Ok(Self {
            node,
            journal,
            owner,
            nonce,
            snapshot,
            begun: snapshot,
            unverified: Unverified::default(),
            waiting: Vec::new(),
            hashes: BTreeSet::new(),
            questions: Questions::new(),
            long_answers: BTreeMap::new(),
            asks: false,
            outputs,
            replayed,
        })
    }

    /// Takes a message, when it is durable. One that changes nothing leaves nothing in the log, and
    /// one for which the log has no room before the next commit is lost as on a network.
    pub fn receive(&mut self, bytes: &[u8]) {
        let Some(message) = N::decode(bytes) else {
            return;
        };
        // One message may come in several forms of bytes, since a number of variable length has
        // more than one. The log has the shortest.
        let bytes = N::encode(&message);
        let hash = digest(N::SYSTEM, "input", &[&bytes]);
        if self.hashes.contains(&hash) {
            return;
        }
        let message = match N::statement(message) {
            Ok(statement) => return self.arrive(statement, hash),
            Err(message) => message,
        };
        match self.node.effect_of(&message) {
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
        if self.node.may_take(&statement) && self.journal.has_room(bytes) {
            self.hashes.insert(hash);
            self.unverified.push(statement);
        }
    }

    /// Logs the statements that have come, but for those that no device has attested.
    fn verify(&mut self) {
        for (statement, is_genuine) in self.unverified.verify(self.node.device()) {
            let message = N::message(statement);
            let bytes = N::encode(&message);
            if is_genuine && self.journal.has_room(bytes.len()) {
                self.journal.append(&encode(&Record::Message(bytes)));
                self.waiting.push(Input::Message(message));
            }
        }
    }

    /// Time passes ([`Node::tick`]). A tick that changes nothing is in no log, which therefore does
    /// not grow while nothing happens but questions.
    pub fn tick(&mut self) {
        self.questions.tick();
        self.long_answers.retain(|_, ticks| {
            *ticks += 1;
            *ticks < LONG_EVERY
        });
        if self.waiting.is_empty() && self.node.is_idle() {
            self.asks = true;
            return;
        }
        self.journal.append(&encode(&Record::Tick));
        self.waiting.push(Input::Tick);
    }

    /// Makes the inputs durable, has the node take them, and returns what is to be done.
    ///
    /// # Errors
    /// [`LoggedError`]. The node must end: what it would say is not durable, or its device says
    /// nothing more.
    pub fn commit(&mut self) -> Result<Vec<N::Output>, LoggedError> {
        self.verify();
        self.journal.commit()?;
        self.work()?;
        Ok(std::mem::take(&mut self.outputs))
    }

    /// The node, to look at.
    pub fn node(&self) -> &N {
        &self.node
    }

    /// How many inputs the log had when it was opened.
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Bytes of the log.
    pub fn log_length(&self) -> u64 {
        self.journal.length()
    }

    fn work(&mut self) -> Result<(), LoggedError> {
        self.hashes.clear();
        // A device that has failed since the last commit ends the node, also one that is idle.
        self.take_outputs()?;
        for input in std::mem::take(&mut self.waiting) {
            match input {
                Input::Tick => self.node.tick(),
                Input::Message(message) => self.node.take(message),
            }
            self.take_outputs()?;
            // The device issues its last attestations again, and no older ones: the node has
            // stopped in the middle of its work until the log has them.
            while self.node.device().is_ahead_of_log() {
                self.keep_given();
                self.journal.commit()?;
                self.node.advance();
                self.take_outputs()?;
            }
        }
        self.keep_given();
        if std::mem::take(&mut self.asks) {
            self.outputs.push(self.node.question());
        }
        self.answer();
        Ok(())
    }

    fn answer(&mut self) {
        for (asker, question) in self.questions.due() {
            let is_long = self.node.has_long_answer(&question);
            let may_be_long = is_long && !self.long_answers.contains_key(&asker);
            if may_be_long {
                self.long_answers.insert(asker, 0);
            }
            self.outputs.extend(self.node.answer(&question, may_be_long));
        }
    }

    fn take_outputs(&mut self) -> Result<(), LoggedError> {
        if let Some(failure) = self.node.device_mut().failure() {
            return Err(failure.into());
        }
        self.outputs.extend(self.node.outputs());
        Ok(())
    }

    /// Writes what the device has given, with the next commit: until then it can be had again.
    fn keep_given(&mut self) {
        let given = self.node.device_mut().take_unlogged();
        if !given.is_empty() {
            self.journal.append(&encode(&Record::Given(given)));
        }
    }
}

impl<N: Node, D: Disk> SnapshotLog<D> for Logged<N, D> {
    type Error = LoggedError;

    fn log_bytes(&self) -> LogBytes {
        let length = self.journal.length();
        let growth = length.saturating_sub(self.begun);
        LogBytes { length, snapshot: self.snapshot, growth }
    }

    fn move_to(&mut self, disk: D) -> Result<D, LoggedError> {
        let bytes = self.node.snapshot();
        let parts = bytes.chunks(SNAPSHOT_PART).map(|it| Record::Part(it.to_vec()));
        let records = iter::once(Record::Start(self.nonce));
        let records = records.chain(parts).chain([Record::Whole]).map(|it| encode(&it));
        let mut journal = Journal::begin(disk, &self.owner, records)?;
        for input in &self.waiting {
            let record = match input {
                Input::Tick => Record::Tick,
                Input::Message(message) => Record::Message(N::encode(message)),
            };
            journal.append(&encode(&record));
        }
        (self.snapshot, self.begun) = (bytes.len() as u64, journal.length());
        Ok(std::mem::replace(&mut self.journal, journal).into_disk())
    }
}

/// For searches.
#[cfg(feature = "sim")]
impl<N: Node> Logged<N, smt_journal::ModelDisk> {
    /// The node, for tests that put it into a state.
    pub fn node_mut(&mut self) -> &mut N {
        &mut self.node
    }

    /// Whether somebody's question waits.
    pub fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    /// All that is to be done, though it is not durable.
    pub fn outputs_before_commit(&mut self) -> Vec<N::Output> {
        self.verify();
        // A device that fails sends nothing.
        let _ = self.work();
        std::mem::take(&mut self.outputs)
    }

    /// The next commit writes, and the disk fails before it is durable.
    pub fn fail_next_sync(&mut self) {
        self.journal.disk_mut().fails_after = Some(0);
    }

    /// The disk fails no more, and syncs.
    pub fn heal_disk(&mut self) {
        let disk = self.journal.disk_mut();
        (disk.fails_after, disk.loses_syncs) = (None, false);
    }

    /// The disk, without what was not committed.
    pub fn into_disk(self) -> smt_journal::ModelDisk {
        self.journal.into_disk()
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests;
