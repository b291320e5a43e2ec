// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose inputs are on a disk before anything that follows from them leaves.
//!
//! A node is a function of its inputs, its device's signatures included. A node that was killed
//! takes the inputs of its journal again, and goes on with the log that others know. Inputs that
//! the crash lost have had no consequence outside.
//!
//! Where the device is a kernel in the process, the journal is its counter. A node whose journal is
//! lost or restored from a copy signs two entries at one index: its witnesses suspect it for good,
//! and whoever sees both exposes it. A last block that the disk has damaged is cut off as one that
//! a crash has torn, which is the same. A device that outlives the node gives no counter twice:
//! such a journal is refused.

mod beginning;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestation::{GroupSecret, SigningKey};
use smt_attestor::{AttestorError, Given, OwnDevice};
use smt_journal::{Disk, Journal, JournalError, LogBytes, SNAPSHOT_PART, SnapshotLog};
use zeroize::Zeroizing;

use beginning::{Beginning, Begun, Host};

use crate::application::Application;
use crate::digest::{Digest, digest};
use crate::group::{Group, GroupError};
use crate::message::{Message, encode};
use crate::node::{Effect, Node, NodeError, Output};

/// The version of what a node makes of its inputs. A journal of another version is refused.
const VERSION: u32 = 2;
/// The beginning of a journal's owner. The version follows.
const JOURNAL: &str = "SMT peer review journal";
/// Messages of one peer that are answered after one commit.
const ANSWERS_MAX: usize = 64;

/// A record of the journal.
#[derive(Deserialize, Serialize)]
enum Record {
    /// Time passes.
    Tick,
    /// An input of the host.
    Local(Vec<u8>),
    /// A message, and its sender.
    Message(u32, Vec<u8>),
    /// A part of the snapshot with which the journal begins.
    Part(Vec<u8>),
    /// The snapshot is whole.
    Whole,
    /// The bytes from which the nonces of audits come: always the first.
    Nonces([u8; 32]),
    /// All that a device that outlives the node has given for the inputs before.
    Given(Vec<Given>),
}

/// An input that was not taken yet.
enum Waiting {
    Tick,
    Local(Vec<u8>),
    Message(u32, Message),
}

/// The device and the secret of a node.
pub struct Identity {
    /// The device. Its number is the node's, and its epoch the one that the group has of it.
    pub device: OwnDevice,
    /// 32 random bytes, from which the nonces of audits come. A journal that has begun has its own.
    pub nonces: Zeroizing<[u8; 32]>,
}

impl Identity {
    /// A kernel in this process as the device of a node. All secrets are derived from the seed of
    /// the key with which it signs.
    #[must_use]
    pub fn of_seed(group: &Group, node: u32, signing_seed: &[u8; 32]) -> Self {
        let derived = |purpose: &str| digest(purpose, &[signing_seed]);
        let (key, secret) = (SigningKey::new(signing_seed), GroupSecret::new(derived("codes")));
        let device = group.library(node, key, secret);
        Self { device, nonces: Zeroizing::new(derived("nonces")) }
    }
}

/// Why a node cannot be had from its journal, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DurableError {
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The group is none, or the node none of it.
    #[error("your files: {0}")]
    Group(#[from] GroupError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] AttestorError),
    /// The node does not begin for another reason.
    #[error(transparent)]
    Node(NodeError),
    /// The node has failed, and no snapshot of it is taken.
    #[error("the node has failed, and its journal is not begun anew")]
    Failed,
    /// A record is none of a node.
    #[error("the host or its disk: the journal has a record that no node writes")]
    Record,
}

impl From<NodeError> for DurableError {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Group(error) => error.into(),
            NodeError::Device(error) => error.into(),
            error @ (NodeError::Application(_) | NodeError::OldLog { .. }) => Self::Node(error),
        }
    }
}

/// A node with a journal.
pub struct Durable<A, D> {
    node: Node<A>,
    journal: Journal<D>,
    owner: Vec<u8>,
    /// Bytes of the snapshot with which the journal begins.
    begun: u64,
    /// Inputs that the node takes when they are durable.
    waiting: Vec<Waiting>,
    /// The hashes of the messages among them: a copy that comes meanwhile is not kept again.
    hashes: BTreeSet<Digest>,
    /// Peers whose evidence has proved nothing since the last tick: to verify it takes long.
    unproven: BTreeSet<u32>,
    /// Messages that change nothing and are answered, by sender.
    answered: BTreeMap<u32, Vec<Message>>,
    replayed: u64,
}

impl<A: Application, D: Disk> Durable<A, D> {
    /// Starts a node with an empty journal, or goes on where the journal ends. A journal of another
    /// node, group or application is refused, and one that is older than a device's counter.
    /// `deliver` gets what the application has delivered since the journal was begun
    /// ([`Durable::move_to`]), again.
    ///
    /// # Errors
    /// [`DurableError`]
    pub fn open(
        group: Arc<Group>,
        identity: Identity,
        application: &A,
        disk: D,
        deliver: impl FnMut(Vec<u8>),
    ) -> Result<Self, DurableError> {
        group.check()?;
        Journal::refuse_older(&disk, (0..VERSION).map(|it| encode(&(JOURNAL, it))))?;
        let owner = owner(&group, identity.device.start().device.0, application);
        let Identity { device, nonces } = identity;
        let node = Node::with_journal(group, device, *nonces, application)?;
        let mut beginning = Beginning::new(Host { node, deliver });
        let mut journal = Journal::open(disk, &owner, |record| beginning.take(record))?;
        if beginning.is_empty() {
            journal.append(&encode(&Record::Nonces(*nonces)));
            journal.commit()?;
        }
        let Begun { node, inputs: replayed, snapshot: begun } = beginning.end(&mut journal)?;
        Ok(Self {
            node,
            begun,
            journal,
            owner,
            waiting: Vec::new(),
            hashes: BTreeSet::new(),
            unproven: BTreeSet::new(),
            answered: BTreeMap::new(),
            replayed,
        })
    }

    /// Takes a message of another node, when it is durable. One that cannot change the node, if its
    /// signatures are right, leaves nothing in the journal, and one for which there is no room is
    /// lost as on a network.
    pub fn receive(&mut self, from: u32, bytes: &[u8]) {
        let Some(message) = Message::decode(bytes).filter(|_| from < self.node.group.nodes())
        else {
            return;
        };
        let is_evidence = matches!(message, Message::Evidence(_));
        if is_evidence && self.unproven.contains(&from) {
            return;
        }
        match self.node.effect_of(from, &message) {
            Effect::Nothing => {
                if is_evidence {
                    self.unproven.insert(from);
                }
            }
            Effect::Answer => {
                let answered = self.answered.entry(from).or_default();
                if answered.len() < ANSWERS_MAX {
                    answered.push(message);
                }
            }
            Effect::Change => {
                let bytes = message.encode();
                let hash = digest("input", &[&from.to_be_bytes(), &bytes]);
                if self.journal.has_room(bytes.len()) && self.hashes.insert(hash) {
                    self.journal.append(&encode(&Record::Message(from, bytes)));
                    self.waiting.push(Waiting::Message(from, message));
                }
            }
        }
    }

    /// Whether an input of so many bytes has room before the next commit.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.journal.has_room(bytes)
    }

    /// Takes an input of the host, when it is durable. False if it is too long, or there is no room
    /// for it before the next commit.
    pub fn local(&mut self, input: Vec<u8>) -> bool {
        let is_taken = input.len() <= self.node.group.options.body
            && self.journal.has_room(input.len())
            && self.node.failure().is_none();
        if is_taken {
            let record = Record::Local(input);
            self.journal.append(&encode(&record));
            if let Record::Local(input) = record {
                self.waiting.push(Waiting::Local(input));
            }
        }
        is_taken
    }

    /// Time passes ([`Node::tick`]).
    pub fn tick(&mut self) {
        self.unproven.clear();
        self.journal.append(&encode(&Record::Tick));
        self.waiting.push(Waiting::Tick);
    }

    /// Makes the inputs durable, has the node take them, and returns what is to be done.
    ///
    /// # Errors
    /// [`DurableError`]. The node must end: what it would say is not durable.
    pub fn commit(&mut self) -> Result<Vec<Output>, DurableError> {
        self.journal.commit()?;
        self.hashes.clear();
        for input in std::mem::take(&mut self.waiting) {
            match input {
                Waiting::Tick => self.node.tick(),
                Waiting::Local(input) => drop(self.node.local(input)),
                Waiting::Message(from, message) => self.node.take(from, message),
            }
            // The device issues its last signatures again, and no older ones.
            if self.node.device.is_ahead_of_log() {
                self.keep_given();
                self.journal.commit()?;
            }
        }
        self.keep_given();
        for (from, messages) in std::mem::take(&mut self.answered) {
            for message in messages {
                // Inputs that were taken meanwhile may have made it a change, which is not durable.
                if self.node.effect_of(from, &message) == Effect::Answer {
                    self.node.take(from, message);
                }
            }
        }
        Ok(self.node.outputs())
    }

    /// Writes what the device has given, with the next commit: until then it can be had again.
    fn keep_given(&mut self) {
        let given = self.node.device.take_unlogged();
        if !given.is_empty() {
            self.journal.append(&encode(&Record::Given(given)));
        }
    }

    /// The node, to look at.
    pub fn node(&self) -> &Node<A> {
        &self.node
    }

    /// How many inputs the journal had behind its snapshot when it was opened.
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// How many entries the device has signed again, since the journal did not have the signatures.
    pub fn reissued(&self) -> u64 {
        self.node.device.reissues()
    }
}

impl<A: Application, D: Disk> SnapshotLog<D> for Durable<A, D> {
    type Error = DurableError;

    fn log_bytes(&self) -> LogBytes {
        let length = self.journal.length();
        let growth = length.saturating_sub(self.begun);
        LogBytes { length, snapshot: self.begun, growth }
    }

    /// The caller has kept what was delivered.
    fn move_to(&mut self, disk: D) -> Result<D, DurableError> {
        // The application of a node that has failed has gone on, and the log has not.
        if self.node.failure().is_some() {
            return Err(DurableError::Failed);
        }
        let bytes = self.node.snapshot();
        let parts = bytes.chunks(SNAPSHOT_PART).map(|it| Record::Part(it.to_vec()));
        let records = iter::once(Record::Nonces(self.node.nonces_from()));
        let records = records.chain(parts).chain([Record::Whole]).map(|it| encode(&it));
        let mut journal = Journal::begin(disk, &self.owner, records)?;
        for input in &self.waiting {
            let record = match input {
                Waiting::Tick => Record::Tick,
                Waiting::Local(input) => Record::Local(input.clone()),
                Waiting::Message(from, message) => Record::Message(*from, message.encode()),
            };
            journal.append(&encode(&record));
        }
        self.begun = journal.length();
        Ok(std::mem::replace(&mut self.journal, journal).into_disk())
    }
}

/// All that the node depends on beside its inputs.
fn owner(group: &Group, node: u32, application: &impl Application) -> Vec<u8> {
    let it = group.options;
    let sizes = [it.body, it.state, it.sends, it.retained, it.segment].map(|it| it as u64);
    let times = [it.resend, it.complain, it.audit, it.suspect];
    let options = encode(&(it.interval, sizes, times));
    let members = encode(&(&group.keys, &group.epochs, group.faults, group.stream));
    let states: Vec<_> = (0..group.nodes()).map(|it| application.start(it).snapshot()).collect();
    let configuration = digest("configuration", &[&members, &options, &encode(&states)]);
    encode(&(JOURNAL, VERSION, node, configuration))
}

#[cfg(all(test, feature = "sim"))]
mod tests;
