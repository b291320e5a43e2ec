// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose inputs are on a disk before anything that follows from them leaves.
//!
//! A node is a function of its inputs, its device included: a kernel in the process signs the same
//! entries again. A node that was killed takes the inputs of its journal again, and goes on with
//! the log that others know. Inputs that the crash lost have had no consequence outside.
//!
//! The journal is the device's counter. A node whose journal is lost or restored from a copy signs
//! two entries at one index: its witnesses suspect it for good, and whoever sees both exposes it. A
//! last block that the disk has damaged is cut off as one that a crash has torn, which is the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestation::{GroupSecret, SigningKey, StreamId};
use smt_device_client::{Device, DeviceError};
use smt_journal::{Disk, Journal, JournalError};
use zeroize::Zeroizing;

use crate::application::Application;
use crate::digest::{Digest, digest};
use crate::group::{Group, GroupError, PublicKey};
use crate::message::{Message, decode, encode};
use crate::node::{Effect, Node, Output};

/// The version of what a node makes of its inputs. A journal of another version is refused.
const VERSION: u32 = 1;
/// Bytes of a record that has a part of a snapshot.
const PART: usize = 16 << 20;
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
}

/// An input that was not taken yet.
enum Waiting {
    Tick,
    Local(Vec<u8>),
    Message(u32, Message),
}

/// The secrets of a node.
pub struct Identity {
    /// The node's number.
    pub node: u32,
    /// The seed of the key with which its device signs. All other secrets are derived from it.
    pub signing_seed: Zeroizing<[u8; 32]>,
}

impl Identity {
    /// The public key of the device.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.signing_key().public_key()
    }

    fn signing_key(&self) -> SigningKey {
        SigningKey::new(&self.signing_seed)
    }

    fn derived(&self, purpose: &str) -> Digest {
        digest(purpose, &[&*self.signing_seed])
    }

    /// A kernel in this process that has attested so many entries.
    fn device(&self, group: &Group, entries: u64) -> Result<Box<dyn Device>, DeviceError> {
        let secret = GroupSecret::new(self.derived("codes"));
        let mut device = group.library(self.node, self.signing_key(), secret)?;
        // A kernel has no other way to a counter than through all before it.
        for _ in 0..entries {
            device.attest(StreamId(group.stream), &[])?;
        }
        Ok(device)
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
    /// The device cannot have such a group.
    #[error("your files: the device cannot have such a group: {0}")]
    Device(#[from] DeviceError),
    /// The node has failed, and no snapshot of it is taken.
    #[error("the node has failed, and its journal is not begun anew")]
    Failed,
    /// A record is none of a node.
    #[error("the host or its disk: the journal has a record that no node writes")]
    Record,
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
    /// node, group or application is refused. `deliver` gets what the application has delivered
    /// since the journal was begun ([`Durable::move_to`]), again.
    ///
    /// # Errors
    /// [`DurableError`]
    pub fn open(
        group: Arc<Group>,
        identity: &Identity,
        application: &A,
        disk: D,
        deliver: impl FnMut(Vec<u8>),
    ) -> Result<Self, DurableError> {
        let owner = owner(&group, identity.node, application);
        let mut replay = Replay::new(group, identity, application, deliver)?;
        let journal = Journal::open(disk, &owner, |record| replay.take(record))?;
        let (node, replayed, begun) = replay.end()?;
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
        }
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

    /// Bytes of the journal behind the snapshot with which it begins, and bytes of that. When the
    /// first are as many as the others, it is worth the work to begin it anew.
    pub fn journal_growth(&self) -> (u64, u64) {
        (self.journal.length().saturating_sub(self.begun), self.begun)
    }

    /// Begins the journal anew on an empty disk, with all that the node knows. The caller has kept
    /// what was delivered, and puts the disk into the place of the old one, which is as it was.
    /// Inputs that wait for a commit are kept too.
    ///
    /// # Errors
    /// [`DurableError`]. The old journal goes on, unless the caller has replaced it.
    pub fn move_to(&mut self, disk: D) -> Result<(), DurableError> {
        // The application of a node that has failed has gone on, and the log has not.
        if self.node.failure().is_some() {
            return Err(DurableError::Failed);
        }
        let mut is_empty = true;
        let mut journal = Journal::open(disk, &self.owner, |_| is_empty = false)?;
        if !is_empty {
            return Err(JournalError::OtherOwner.into());
        }
        for part in self.node.snapshot().chunks(PART) {
            journal.append(&encode(&Record::Part(part.to_vec())));
            journal.commit()?;
        }
        journal.append(&encode(&Record::Whole));
        journal.commit()?;
        for input in &self.waiting {
            let record = match input {
                Waiting::Tick => Record::Tick,
                Waiting::Local(input) => Record::Local(input.clone()),
                Waiting::Message(from, message) => Record::Message(*from, message.encode()),
            };
            journal.append(&encode(&record));
        }
        self.begun = journal.length();
        self.journal = journal;
        Ok(())
    }

    /// The node, to look at.
    pub fn node(&self) -> &Node<A> {
        &self.node
    }

    /// How many inputs the journal had behind its snapshot when it was opened.
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Bytes of the journal.
    pub fn journal_length(&self) -> u64 {
        self.journal.length()
    }
}

/// A node that takes the records of its journal.
struct Replay<'a, A, F> {
    group: Arc<Group>,
    identity: &'a Identity,
    deliver: F,
    node: Node<A>,
    /// The parts of a snapshot so far.
    parts: Vec<u8>,
    /// Bytes of the snapshot that was whole.
    begun: u64,
    count: u64,
    failure: Option<DurableError>,
}

impl<'a, A: Application, F: FnMut(Vec<u8>)> Replay<'a, A, F> {
    fn new(
        group: Arc<Group>,
        identity: &'a Identity,
        application: &A,
        deliver: F,
    ) -> Result<Self, DurableError> {
        group.check()?;
        let (own, device) = (identity.node, identity.device(&group, 0)?);
        let node = Node::new(group.clone(), own, device, identity.derived("nonces"), application)?;
        let (parts, begun, count, failure) = (Vec::new(), 0, 0, None);
        Ok(Self { group, identity, deliver, node, parts, begun, count, failure })
    }

    fn take(&mut self, record: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.step(record).err();
        }
    }

    fn step(&mut self, record: &[u8]) -> Result<(), DurableError> {
        match decode(record).ok_or(DurableError::Record)? {
            Record::Part(part) => {
                self.parts.extend(part);
                return Ok(());
            }
            Record::Whole => return self.restore(),
            Record::Tick => self.node.tick(),
            Record::Local(input) => drop(self.node.local(input)),
            Record::Message(from, bytes) => self.node.receive(from, &bytes),
        }
        self.count += 1;
        // Messages are said again in time.
        for output in self.node.outputs() {
            if let Output::Deliver(bytes) = output {
                (self.deliver)(bytes);
            }
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<(), DurableError> {
        let bytes = std::mem::take(&mut self.parts);
        self.begun = bytes.len() as u64;
        let (group, identity) = (self.group.clone(), self.identity);
        let is_whole = self.node.restore(&bytes, |entries| identity.device(&group, entries))?;
        is_whole.then_some(()).ok_or(DurableError::Record)
    }

    /// The node, how many inputs it has taken, and the bytes of the snapshot before them.
    fn end(self) -> Result<(Node<A>, u64, u64), DurableError> {
        match self.failure {
            Some(failure) => Err(failure),
            None if !self.parts.is_empty() => Err(DurableError::Record),
            None => Ok((self.node, self.count, self.begun)),
        }
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
    encode(&("SMT peer review journal", VERSION, node, configuration))
}

#[cfg(all(test, feature = "sim"))]
mod tests;
