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

mod error;
mod questions;
mod reading;
mod record;
mod unverified;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use smt_journal::{Disk, Journal, LogBytes, SNAPSHOT_PART, SnapshotLog};

use questions::Questions;
use reading::{Read, Reading};
use record::Record;
use unverified::Unverified;

use crate::digest::{Digest, digest};
use crate::encoding::encode;
use crate::node::{Asker, Effect, Node, Statements};

pub use error::LoggedError;
pub use record::Owner;

/// Ticks from one long answer for an asker to the next.
const LONG_EVERY: u32 = 8;

/// An input that was not taken yet.
enum Input<M> {
    Tick,
    Message(M),
}

/// A node with a log.
pub struct Logged<N: Node, D> {
    node: N,
    journal: Journal<D>,
    owner: Vec<u8>,
    /// The random bytes of the node's start.
    start: N::Start,
    /// Bytes of the snapshot with which the log begins, and of the log when it began.
    snapshot: u64,
    begun: u64,
    /// Statements whose MACs are not verified yet.
    unverified: Unverified<N::Message>,
    /// Inputs that the node takes when they are durable.
    waiting: Vec<Input<N::Message>>,
    /// The hashes of the messages among them: a copy that comes meanwhile is not in the log again.
    hashes: BTreeSet<Digest>,
    questions: Questions<Asker, N::Message>,
    /// The ticks since an asker had a long answer.
    long_answers: BTreeMap<Asker, u32>,
    /// Whether time has passed that changes nothing: the node asks the others, and no more.
    asks: bool,
    /// The statements of which the log knows.
    noted: Statements,
    outputs: Vec<N::Output>,
    replayed: u64,
}

impl<N: Node, D: Disk> Logged<N, D> {
    /// Starts a node with an empty log, or continues where the log ends. `start` makes the node of
    /// the random bytes of its start: those that the log has, or `bytes` for an empty log. A log of
    /// another owner is refused, and one that is older than a device's counter.
    ///
    /// `again` gets all outputs that the inputs of the log had, in their order. They had left, but
    /// for those of the last inputs: of these leaves again what it does not take out.
    ///
    /// # Errors
    /// Those of the journal, the device, the node and `start`.
    pub fn open(
        owner: Owner,
        bytes: N::Start,
        disk: D,
        start: impl FnOnce(N::Start) -> Result<N, LoggedError<N::Error>>,
        again: impl FnMut(&mut Vec<N::Output>),
    ) -> Result<Self, LoggedError<N::Error>> {
        Journal::refuse_older(&disk, record::older::<N>())?;
        let owner = owner.encode::<N>();
        let mut reading = Reading::new(start, again);
        let mut journal = Journal::open(disk, &owner, |record| reading.take(record))?;
        if reading.is_empty() {
            let record = encode(&Record::Start(bytes));
            journal.append(&record);
            journal.commit()?;
            reading.take(&record);
        }
        let Read { node, start, inputs, snapshot, noted, outputs } =
            reading.finish(&mut journal)?;
        let mut logged = Self {
            node,
            journal,
            owner,
            start,
            snapshot,
            begun: snapshot,
            unverified: Unverified::default(),
            waiting: Vec::new(),
            hashes: BTreeSet::new(),
            questions: Questions::new(),
            long_answers: BTreeMap::new(),
            asks: false,
            noted,
            outputs,
            replayed: inputs,
        };
        logged.note_statements();
        Ok(logged)
    }

    /// Takes a message of the network, when it is durable. One that changes nothing leaves nothing
    /// in the log, and one for which the log has no room before the next commit is lost as on a
    /// network.
    pub fn receive(&mut self, bytes: &[u8]) {
        if let Some(message) = N::decode(bytes) {
            self.receive_message(message);
        }
    }

    /// The same for a message that was read.
    pub fn receive_message(&mut self, message: N::Message) {
        // One message may come in several forms of bytes, since a number of variable length has
        // more than one. The log has the shortest.
        let bytes = encode(&message);
        let hash = digest(N::SYSTEM, "input", &[&bytes]);
        if self.hashes.contains(&hash) {
            return;
        }
        if let Some(statement) = N::statement(&message) {
            // One that is of use waits for the next commit, which verifies all of them together.
            let bytes = self.unverified.bytes_with(statement);
            if self.node.may_take(statement) && self.journal.has_room(bytes) {
                self.hashes.insert(hash);
                self.unverified.push(message, bytes);
            }
            return;
        }
        match self.node.effect_of(&message) {
            Effect::Nothing => {}
            Effect::Answer(asker) => self.ask(asker, message),
            Effect::Change => {
                if self.keep(&bytes, message) {
                    self.hashes.insert(hash);
                }
            }
        }
    }

    /// A question waits, in the place of its asker's last one.
    fn ask(&mut self, asker: Asker, question: N::Message) {
        let question = self.node.shortened(question);
        let waiting = self.questions.waiting(&asker);
        if waiting.is_none_or(|it| N::precedence(it) <= N::precedence(&question)) {
            self.questions.put(asker, question);
        }
    }

    /// Takes an input of the host, when it is durable, also if an equal one waits. False if it
    /// changes nothing, or the log has no room for it before the next commit.
    pub fn local(&mut self, input: N::Message) -> bool {
        let bytes = encode(&input);
        self.node.effect_of(&input) == Effect::Change && self.keep(&bytes, input)
    }

    /// Whether an input of so many bytes has room before the next commit.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.journal.has_room(bytes)
    }

    /// Has a message wait, and its bytes in the log with the next commit, if there is room.
    fn keep(&mut self, bytes: &[u8], message: N::Message) -> bool {
        let has_room = self.has_room(bytes.len());
        if has_room {
            self.journal.append(&encode(&Record::<N::Start>::Message(bytes.to_vec())));
            self.waiting.push(Input::Message(message));
        }
        has_room
    }

    /// Logs the statements that have come, but for those that no device has attested.
    fn verify(&mut self) {
        for message in self.unverified.verify(self.node.device(), N::statement) {
            self.keep(&encode(&message), message);
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
        self.journal.append(&encode(&Record::<N::Start>::Tick));
        self.waiting.push(Input::Tick);
    }

    /// Makes the inputs durable, has the node take them, and returns what is to be done.
    ///
    /// # Errors
    /// [`LoggedError`]. The node must end: what it would say is not durable, or it says nothing
    /// more.
    pub fn commit(&mut self) -> Result<Vec<N::Output>, LoggedError<N::Error>> {
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

    fn work(&mut self) -> Result<(), LoggedError<N::Error>> {
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
        self.note_statements();
        if std::mem::take(&mut self.asks) {
            self.outputs.extend(self.node.idle_tick());
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

    fn take_outputs(&mut self) -> Result<(), LoggedError<N::Error>> {
        if let Some(failure) = self.node.failure() {
            return Err(failure);
        }
        self.outputs.extend(self.node.outputs());
        Ok(())
    }

    /// Writes what the device has given, with the next commit: until then it can be had again.
    fn keep_given(&mut self) {
        let given = self.node.device_mut().take_unlogged();
        if !given.is_empty() {
            self.journal.append(&encode(&Record::<N::Start>::Given(given)));
        }
    }

    /// Writes which statements there are, with the next commit: until then they may be lost.
    fn note_statements(&mut self) {
        let statements = self.node.statements();
        if self.noted != statements {
            self.noted = statements;
            self.journal.append(&encode(&Record::<N::Start>::Statements(statements)));
        }
    }
}

impl<N: Node, D: Disk> SnapshotLog<D> for Logged<N, D> {
    type Error = LoggedError<N::Error>;

    fn log_bytes(&self) -> LogBytes {
        let length = self.journal.length();
        let growth = length.saturating_sub(self.begun);
        LogBytes { length, snapshot: self.snapshot, growth }
    }

    fn move_to(&mut self, disk: D) -> Result<D, LoggedError<N::Error>> {
        let bytes = self.node.snapshot().ok_or(LoggedError::NoSnapshot)?;
        let parts = bytes.chunks(SNAPSHOT_PART).map(|it| Record::Part(it.to_vec()));
        let records = iter::once(Record::Start(self.start));
        let records = records.chain(parts).chain([Record::Whole]).map(|it| encode(&it));
        let mut journal = Journal::begin(disk, &self.owner, records)?;
        for input in &self.waiting {
            let record = match input {
                Input::Tick => Record::<N::Start>::Tick,
                Input::Message(message) => Record::Message(encode(message)),
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
