// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose inputs are on a disk before anything that follows from them leaves.
//!
//! A node is a function of its inputs, its device included: a kernel in the process gives the same
//! attestations for the same steps. A node that was killed takes the inputs of its log again, and
//! is in the state and counter that the others know: to them it was slow. Inputs that the crash
//! lost have had no consequence outside.
//!
//! The log also has a digest of the steps that followed. A protocol that makes other steps of the
//! same inputs, since its program was changed or since it depends on more than them, is refused:
//! its node would say a second thing under a counter that it has used.
//!
//! The log is the device's counter. A node whose log is lost or restored from a copy says two
//! things under one counter, and is one of the f that lie.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestation::Misuse;
use smt_journal::{Disk, Inputs, Journal, JournalError, Questions};

use crate::consequence::{Consequence, Party};
use crate::error::NodeError;
use crate::group::Group;
use crate::message::{Message, decode, digest, encode};
use crate::node::{Identity, Made, Node, Output};
use crate::protocol::Protocol;

/// The version of what a node makes of its inputs. A log of another version is refused.
const VERSION: u32 = 1;
/// The beginning of a log's owner. The version follows.
const LOG: &str = "SMT transform log";
/// The epoch of all devices. One that has restarted in another has stopped.
const EPOCH: u64 = 1;

/// A record of the log.
#[derive(Deserialize, Serialize)]
enum Record {
    /// Time passes.
    Tick,
    /// A message.
    Message(Vec<u8>),
    /// The steps that have followed from all before.
    Made(Made),
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
    /// The device cannot have such a group.
    #[error("your files: the device cannot have such a group: {0:?}")]
    Device(Misuse),
    /// The node has stopped.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The inputs of the log have other steps than when it was written.
    #[error(
        "the protocol: on the inputs of its log it makes other steps than before, up to step {0}: \
         the program was changed, or depends on more than its inputs, or the group's secret is \
         another one"
    )]
    OtherSteps(u64),
}

/// A node with a log.
pub struct Durable<P, D> {
    node: Node<P>,
    inputs: Inputs<Input, D>,
    questions: Questions<Party, Message>,
    /// The steps of which the log knows.
    noted: Made,
    replayed: u64,
}

impl<P: Protocol, D: Disk> Durable<P, D> {
    /// Starts a node with an empty log, or goes on where the log ends. A log of another node or
    /// group is refused. `protocol` is that of [`Node::new`].
    ///
    /// # Errors
    /// [`DurableError`]
    pub fn open(
        group: Arc<Group>,
        identity: Identity,
        protocol: impl Fn(u32) -> P,
        disk: D,
    ) -> Result<Self, DurableError> {
        let mut node = Node::new(group, identity, protocol).map_err(DurableError::Device)?;
        Journal::refuse_older(&disk, (0..VERSION).map(|it| encode(&(LOG, it))))?;
        let owner = owner(&node.group, node.own);
        node.is_silent = true;
        let mut replay = Replay { node, noted: Made::default(), count: 0, failure: None };
        let journal = Journal::open(disk, &owner, |record| replay.take(record))?;
        if let Some(failure) = replay.failure {
            return Err(failure);
        }
        let Replay { mut node, noted, count: replayed, .. } = replay;
        node.is_silent = false;
        let (inputs, questions) = (Inputs::new(journal), Questions::new());
        let mut durable = Self { node, inputs, questions, noted, replayed };
        durable.note_steps();
        Ok(durable)
    }

    /// Takes a message, when it is durable. One that changes nothing leaves nothing in the log, and
    /// one for which the log has no room before the next commit is lost as on a network.
    pub fn receive(&mut self, bytes: &[u8]) {
        let Some(message) = Message::decode(bytes) else {
            return;
        };
        match self.node.let_in(&message) {
            Consequence::Nothing => {}
            Consequence::Answer(party) => self.questions.put(party, message),
            Consequence::Change => {
                // One message may come in several forms of bytes, since a number of variable length
                // has more than one. The log has the shortest.
                let bytes = message.encode();
                let hash = digest("input", &[&bytes]);
                self.inputs.put(hash, &encode(&Record::Message(bytes)), Input::Message(message));
            }
        }
    }

    /// Time passes ([`Node::tick`]).
    pub fn tick(&mut self) {
        self.questions.tick();
        // The log does not grow while nothing happens but questions.
        match self.inputs.is_empty() && self.node.is_idle() {
            true => self.inputs.put_without_record(Input::Tick),
            false => self.inputs.put_again(&encode(&Record::Tick), Input::Tick),
        }
    }

    /// Makes the inputs durable, has the node take them, and returns what is to be done.
    ///
    /// # Errors
    /// [`DurableError`]. The node must end: what it would say is not durable, or it has stopped.
    pub fn commit(&mut self) -> Result<Vec<Output>, DurableError> {
        let inputs = self.inputs.commit()?;
        self.work(inputs)
    }

    fn work(&mut self, inputs: Vec<Input>) -> Result<Vec<Output>, DurableError> {
        for input in inputs {
            match input {
                Input::Tick => self.node.tick()?,
                Input::Message(message) => self.node.take(message)?,
            }
        }
        self.note_steps();
        for (_, question) in self.questions.due() {
            self.node.answer(&question);
        }
        Ok(self.node.outputs())
    }

    /// Writes which steps there are, with the next commit: until then they may be lost.
    fn note_steps(&mut self) {
        if self.noted != self.node.made {
            self.noted = self.node.made;
            self.inputs.note(&encode(&Record::Made(self.noted)));
        }
    }

    /// The node, to look at.
    pub fn node(&self) -> &Node<P> {
        &self.node
    }

    /// How many inputs the log had when it was opened.
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Bytes of the log.
    pub fn log_length(&self) -> u64 {
        self.inputs.journal().length()
    }
}

#[cfg(feature = "sim")]
impl<P: Protocol> Durable<P, smt_journal::ModelDisk> {
    /// All that is to be done, though it is not durable.
    pub(crate) fn outputs_before_commit(&mut self) -> Result<Vec<Output>, DurableError> {
        let inputs = self.inputs.take_before_commit();
        self.work(inputs)
    }

    /// The next commit writes, and the disk fails before it is durable.
    pub(crate) fn fail_next_sync(&mut self) {
        self.inputs.journal_mut().disk_mut().fails_after = Some(0);
    }

    pub(crate) fn into_disk(self) -> smt_journal::ModelDisk {
        self.inputs.into_disk()
    }
}

/// A node that takes the records of its log.
struct Replay<P> {
    node: Node<P>,
    noted: Made,
    count: u64,
    failure: Option<DurableError>,
}

impl<P: Protocol> Replay<P> {
    fn take(&mut self, record: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.step(record).err();
        }
    }

    fn step(&mut self, record: &[u8]) -> Result<(), DurableError> {
        match decode(record) {
            Some(Record::Made(made)) if made == self.node.made => {
                self.noted = made;
                return Ok(());
            }
            Some(Record::Made(made)) => return Err(DurableError::OtherSteps(made.counter)),
            Some(Record::Tick) => self.node.tick()?,
            Some(Record::Message(bytes)) => {
                let message = Message::decode(&bytes).ok_or(JournalError::OtherOwner)?;
                self.node.take(message)?;
            }
            None => return Err(JournalError::OtherOwner.into()),
        }
        self.count += 1;
        // The others ask for what they lack.
        drop(self.node.outputs());
        Ok(())
    }
}

/// All that the node depends on beside its inputs and its protocol.
fn owner(group: &Group, node: u32) -> Vec<u8> {
    let members = encode(&(&group.nodes, &group.clients, group.stream));
    let sizes = encode(&group.options.operation);
    let configuration = digest("configuration", &[&members, &sizes]);
    encode(&(LOG, VERSION, node, EPOCH, configuration))
}

#[cfg(all(test, feature = "sim"))]
mod tests;
