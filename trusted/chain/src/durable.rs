// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose inputs are on a disk before anything that follows from them leaves.
//!
//! A node is a function of its inputs, its device's attestations included. A node that was killed
//! takes the inputs of its log again, and is in the state and counter that the others know: to them
//! it was slow. Inputs that the crash lost have had no consequence outside.
//!
//! Where the device is a kernel in the process, its log is its counter. A node whose log is lost or
//! restored from a copy says two things under one counter, and is one of the f that lie. A device
//! that outlives the node gives no counter twice: such a log is refused.

mod beginning;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestor::{Attested, AttestorError, Given, Unverified};
use smt_bft::{Digest, Group, Service};
use smt_journal::{Disk, Journal, JournalError, LogBytes, Questions, SNAPSHOT_PART, SnapshotLog};

use beginning::{Beginning, Begun};

use crate::accusation::Made;
use crate::digest::digest;
use crate::effect::{Asker, Effect};
use crate::message::{Message, encode};
use crate::node::{Identity, Metrics, Node, Output};
use crate::rule::Rule;

/// The version of what a node makes of its inputs. A log of another version is refused.
const VERSION: u32 = 5;
/// The beginning of a log's owner. The version follows.
const LOG: &str = "SMT chain log";

/// A record of the log.
#[derive(Deserialize, Serialize)]
enum Record {
    /// Time passes.
    Tick,
    /// A message.
    Message(Vec<u8>),
    /// All that a device that outlives the node has given for the inputs before.
    Given(Vec<Given>),
    /// A part of the snapshot with which a log begins.
    Part(Vec<u8>),
    /// The snapshot is whole.
    Whole,
}

/// An input that was not taken yet.
enum Input {
    Tick,
    Message(Message),
}

/// Why a node cannot be had from its log, or cannot go on.
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

/// A node with a log.
pub struct Durable<S, D> {
    node: Node<S>,
    journal: Journal<D>,
    owner: Vec<u8>,
    /// Bytes of the snapshot with which the log begins, and of the log when it began.
    snapshot: u64,
    begun: u64,
    /// Statements whose MACs are not verified yet.
    unverified: Unverified,
    /// Inputs that the node takes when they are durable.
    waiting: Vec<Input>,
    /// The hashes of the messages among them: a copy that comes meanwhile is not in the log again.
    hashes: BTreeSet<Digest>,
    questions: Questions<Asker, Message>,
    /// Whether time has passed that changes nothing: the node asks the others, and no more.
    asks: bool,
    outputs: Vec<Output>,
    replayed: u64,
}

impl<S: Service + Clone, D: Disk> Durable<S, D> {
    /// Starts a node with an empty log, or goes on where the log ends. A log of another node, group
    /// or service is refused, and one that is older than a device's counter.
    ///
    /// # Errors
    /// [`DurableError`]
    pub fn open(
        group: Arc<Group>,
        identity: Identity,
        empty: S,
        disk: D,
    ) -> Result<Self, DurableError> {
        Journal::refuse_older(&disk, (0..VERSION).map(|it| encode(&(LOG, it))))?;
        let owner = owner(&group, &identity, &empty);
        let mut beginning = Beginning::new(Node::with_log(group, identity, empty)?);
        let mut journal = Journal::open(disk, &owner, |record| beginning.take(record))?;
        let Begun { mut node, inputs: replayed, snapshot } = beginning.finish(&mut journal)?;
        let outputs = node.outputs();
        Ok(Self {
            node,
            journal,
            owner,
            snapshot,
            begun: snapshot,
            unverified: Unverified::default(),
            waiting: Vec::new(),
            hashes: BTreeSet::new(),
            questions: Questions::new(),
            asks: false,
            outputs,
            replayed,
        })
    }

    /// Takes a message, when it is durable. One that changes nothing leaves nothing in the log, and
    /// one for which the log has no room before the next commit is lost as on a network.
    pub fn receive(&mut self, bytes: &[u8]) {
        let Some(message) = Message::decode(bytes) else {
            return;
        };
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

    /// Takes a configuration and all before it, when that is durable. One that f + 1 nodes have not
    /// made is dropped.
    pub fn configure(&mut self, made: &Made) {
        self.receive(&Message::Made(made.clone()).encode());
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
        let lacks_macs = self.node.broken.lacks(Rule::Mac);
        for (statement, is_genuine) in self.unverified.verify(&self.node.device) {
            let message = Message::Statement(statement);
            let bytes = message.encode();
            if (is_genuine || lacks_macs) && self.journal.has_room(bytes.len()) {
                self.journal.append(&encode(&Record::Message(bytes)));
                self.waiting.push(Input::Message(message));
            }
        }
    }

    /// Time passes ([`Node::tick`]).
    pub fn tick(&mut self) {
        self.questions.tick();
        // The log does not grow while nothing happens but questions.
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
    /// [`DurableError`]. The node must end: what it would say is not durable, or its device says
    /// nothing more.
    pub fn commit(&mut self) -> Result<Vec<Output>, DurableError> {
        self.verify();
        self.journal.commit()?;
        self.work()?;
        Ok(std::mem::take(&mut self.outputs))
    }

    fn work(&mut self) -> Result<(), DurableError> {
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
            while self.node.device.is_ahead_of_log() {
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
        for question in self.questions.due() {
            self.outputs.extend(self.node.answer(&question));
        }
        Ok(())
    }

    fn take_outputs(&mut self) -> Result<(), DurableError> {
        if let Some(failure) = self.node.device.failure() {
            return Err(failure.into());
        }
        self.outputs.extend(self.node.outputs());
        Ok(())
    }

    /// Writes what the device has given, with the next commit: until then it can be had again.
    fn keep_given(&mut self) {
        let given = self.node.device.take_unlogged();
        if !given.is_empty() {
            self.journal.append(&encode(&Record::Given(given)));
        }
    }

    /// The node, to look at.
    pub fn node(&self) -> &Node<S> {
        &self.node
    }

    /// The numbers of this moment.
    pub fn metrics(&self) -> Metrics {
        self.node.metrics()
    }

    /// How many inputs the log had when it was opened.
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Bytes of the log.
    pub fn log_length(&self) -> u64 {
        self.journal.length()
    }
}

impl<S: Service + Clone, D: Disk> SnapshotLog<D> for Durable<S, D> {
    type Error = DurableError;

    fn log_bytes(&self) -> LogBytes {
        let length = self.journal.length();
        let growth = length.saturating_sub(self.begun);
        LogBytes { length, snapshot: self.snapshot, growth }
    }

    fn move_to(&mut self, disk: D) -> Result<D, DurableError> {
        let bytes = self.node.snapshot();
        let parts = bytes.chunks(SNAPSHOT_PART).map(|it| Record::Part(it.to_vec()));
        let records = parts.chain([Record::Whole]).map(|it| encode(&it));
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
impl<S: Service + Clone> Durable<S, smt_journal::ModelDisk> {
    /// All that is to be done, though it is not durable.
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

/// All that the node depends on beside its inputs.
fn owner(group: &Group, identity: &Identity, empty: &impl Service) -> Vec<u8> {
    let node = identity.device.start().device.0;
    let members = encode(&(&group.clients, &group.reply_keys, group.stream, &group.epochs));
    let options = group.options;
    let sizes = encode(&(options.operation, options.window, options.retained, options.timeout));
    let configuration = digest("configuration", &[&members, &sizes, &empty.snapshot()]);
    encode(&(LOG, VERSION, node, configuration))
}

#[cfg(all(test, feature = "sim"))]
mod tests;
