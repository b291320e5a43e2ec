// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose inputs are on a disk before anything that follows from them leaves.
//!
//! A node is a function of its inputs, its device included: a kernel in the process gives the same
//! attestations for the same statements. A node that was killed takes the inputs of its log again,
//! and is in the state and counter that the others know: to them it was slow. Inputs that the crash
//! lost have had no consequence outside.
//!
//! The log is the device's counter. A node whose log is lost or restored from a copy says two
//! things under one counter, and is one of the f that lie.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestation::Misuse;
use smt_bft::{Digest, Group, Service};
use smt_journal::{Disk, Journal, JournalError};

use crate::accusation::Made;
use crate::digest::digest;
use crate::effect::{Asker, Effect};
use crate::message::{Message, decode, encode};
use crate::node::{Identity, Metrics, Node, Output};

/// The version of what a node makes of its inputs. A log of another version is refused.
const VERSION: u32 = 3;
/// The beginning of a log's owner. The version follows.
const LOG: &str = "SMT chain log";

/// A record of the log.
#[derive(Deserialize, Serialize)]
enum Record {
    /// Time passes.
    Tick,
    /// A message.
    Message(Vec<u8>),
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
}

/// A node with a log.
pub struct Durable<S, D> {
    node: Node<S>,
    journal: Journal<D>,
    /// Inputs that the node takes when they are durable.
    waiting: Vec<Input>,
    /// The hashes of the messages among them: a copy that comes meanwhile is not in the log again.
    hashes: BTreeSet<Digest>,
    /// The last question of each that asks. Questions change nothing, and are not in the log.
    questions: BTreeMap<Asker, Message>,
    /// Those that had an answer since the last tick: the next one waits for the next tick, since an
    /// answer is longer than its question.
    answered: BTreeSet<Asker>,
    /// Whether time has passed that changes nothing: the node asks the others, and no more.
    asks: bool,
    replayed: u64,
}

impl<S: Service + Clone, D: Disk> Durable<S, D> {
    /// Starts a node with an empty log, or goes on where the log ends. A log of another node, group
    /// or service is refused.
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
        let owner = owner(&group, identity.node, &empty);
        let mut node = Node::new(group, identity, empty).map_err(DurableError::Device)?;
        let (mut replayed, mut is_readable) = (0, true);
        let journal = Journal::open(disk, &owner, |record| {
            // The outputs of the last input leave again; earlier ones are asked for.
            drop(node.outputs());
            replayed += 1;
            match decode(record) {
                Some(Record::Tick) => node.tick(),
                Some(Record::Message(bytes)) => node.receive(&bytes),
                None => is_readable = false,
            }
        })?;
        if !is_readable {
            return Err(JournalError::OtherOwner.into());
        }
        Ok(Self {
            node,
            journal,
            waiting: Vec::new(),
            hashes: BTreeSet::new(),
            questions: BTreeMap::new(),
            answered: BTreeSet::new(),
            asks: false,
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
        match self.node.effect_of(&message) {
            Effect::Nothing => {}
            Effect::Answer(asker) => {
                self.questions.insert(asker, message);
            }
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
        if self.node.is_news(made) {
            self.receive(&Message::Made(made.clone()).encode());
        }
    }

    /// Time passes ([`Node::tick`]).
    pub fn tick(&mut self) {
        self.answered.clear();
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
    /// [`DurableError`]. The node must end: what it would say is not durable.
    pub fn commit(&mut self) -> Result<Vec<Output>, DurableError> {
        self.journal.commit()?;
        Ok(self.work())
    }

    fn work(&mut self) -> Vec<Output> {
        self.hashes.clear();
        for input in std::mem::take(&mut self.waiting) {
            match input {
                Input::Tick => self.node.tick(),
                Input::Message(message) => self.node.take(message),
            }
        }
        let mut outputs = self.node.outputs();
        if std::mem::take(&mut self.asks) {
            outputs.push(self.node.question());
        }
        for (asker, question) in std::mem::take(&mut self.questions) {
            match self.answered.insert(asker) {
                true => outputs.extend(self.node.answer(&question)),
                false => drop(self.questions.insert(asker, question)),
            }
        }
        outputs
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

#[cfg(feature = "sim")]
impl<S: Service + Clone> Durable<S, smt_journal::ModelDisk> {
    /// All that is to be done, though it is not durable.
    pub(crate) fn outputs_before_commit(&mut self) -> Vec<Output> {
        self.work()
    }

    /// The next commit writes, and the disk fails before it is durable.
    pub(crate) fn fail_next_sync(&mut self) {
        self.journal.disk_mut().fails_after = Some(0);
    }

    pub(crate) fn into_disk(self) -> smt_journal::ModelDisk {
        self.journal.into_disk()
    }
}

/// All that the node depends on beside its inputs.
fn owner(group: &Group, node: u32, empty: &impl Service) -> Vec<u8> {
    let members = encode(&(&group.clients, &group.reply_keys, group.stream));
    let options = group.options;
    let sizes = encode(&(options.operation, options.window, options.retained, options.timeout));
    let configuration = digest("configuration", &[&members, &sizes, &empty.snapshot()]);
    encode(&(LOG, VERSION, node, configuration))
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::accusation::Accusation;
    use crate::message::{Attested, Statement, Status};
    use crate::sim::group::{client_key, group, identity, reply_key};
    use smt_bft::{KeyValue, Request};
    use smt_journal::ModelDisk;

    type Core = Durable<KeyValue, ModelDisk>;

    fn open(node: u32, disk: ModelDisk) -> Result<Core, DurableError> {
        Durable::open(Arc::new(group(3)), identity(node), KeyValue::default(), disk)
    }

    /// Bytes by which the log has grown.
    fn growth(durable: &mut Core, act: impl FnOnce(&mut Core)) -> u64 {
        let length = durable.log_length();
        act(durable);
        durable.commit().unwrap();
        durable.log_length() - length
    }

    /// All that follows, of which `to` gets what is for single nodes.
    fn deliver(from: &mut Core, to: &mut Core) {
        for output in from.commit().unwrap() {
            if let Output::Node(_, bytes) = output {
                to.receive(&bytes);
            }
        }
    }

    fn request(client: u32, number: u64, bytes: usize) -> Vec<u8> {
        let body = ([0; 16], vec![0; bytes]);
        Message::Request(Request::sign(&client_key(1), client, number, body)).encode()
    }

    #[test]
    fn messages_that_change_nothing_let_no_log_grow() {
        let mut durable = open(0, ModelDisk::default()).unwrap();
        let body = encode(&Statement::Freeze { configuration: 1 });
        let forged = Message::Statement(Attested { attestation: [[0; 32]; 2], body }).encode();
        let status = Message::Status(Status { from: 1, counters: Vec::new(), newest: 0 }).encode();
        let unsigned = request(2, 1, 8);
        let too_long = request(1, 1, 65);
        for bytes in [&forged, &status, &unsigned, &too_long, &vec![255; 9]] {
            assert_eq!(growth(&mut durable, |it| it.receive(bytes)), 0);
        }
        assert_eq!(growth(&mut durable, Durable::tick), 0);
        assert!(growth(&mut durable, |it| it.receive(&request(1, 1, 8))) > 0);
        assert_eq!(growth(&mut durable, |it| it.receive(&request(1, 1, 8))), 0, "it waits");
        assert!(growth(&mut durable, Durable::tick) > 0, "the request gets older");
    }

    #[test]
    fn many_questions_of_a_node_have_one_answer_in_each_tick() {
        let mut head = open(0, ModelDisk::default()).unwrap();
        head.receive(&request(1, 1, 8));
        head.commit().unwrap();
        let status = Message::Status(Status { from: 1, counters: Vec::new(), newest: 0 }).encode();
        let mut answers = |time_passes: bool| {
            if time_passes {
                head.tick();
            }
            (0..9).for_each(|_| head.receive(&status));
            let outputs = head.commit().unwrap();
            outputs.iter().filter(|it| matches!(it, Output::Node(1, _))).count()
        };
        assert_eq!([answers(false), answers(false), answers(true), answers(false)], [1, 0, 1, 0]);
    }

    #[test]
    fn a_request_that_was_answered_is_answered_once_in_each_tick_however_often_it_comes() {
        let mut head = open(0, ModelDisk::default()).unwrap();
        let mut next = open(1, ModelDisk::default()).unwrap();
        head.receive(&request(1, 1, 8));
        deliver(&mut head, &mut next);
        deliver(&mut next, &mut head);
        head.commit().unwrap();
        assert_eq!(head.metrics().committed, 1);
        let mut replies = |bytes: usize| {
            (0..9).for_each(|_| head.receive(&request(1, 1, bytes)));
            let outputs = head.commit().unwrap();
            head.tick();
            outputs.iter().filter(|it| matches!(it, Output::Client(1, _))).count()
        };
        // Another request under its number, which no correct client makes, has no answer.
        assert_eq!([replies(8), replies(8), replies(9)], [1, 1, 0]);
    }

    #[test]
    fn a_statement_is_in_the_log_once() {
        let mut head = open(0, ModelDisk::default()).unwrap();
        head.receive(&request(1, 1, 8));
        let said = head.commit().unwrap().into_iter().find_map(|it| match it {
            Output::Node(1, bytes) => Some(bytes),
            _ => None,
        });
        let said = said.unwrap();
        let mut next = open(1, ModelDisk::default()).unwrap();
        assert!(growth(&mut next, |it| it.receive(&said)) > 0);
        assert_eq!(growth(&mut next, |it| it.receive(&said)), 0);
        assert_eq!(growth(&mut head, |it| it.receive(&said)), 0, "it is the head's own");
    }

    #[test]
    fn copies_of_a_message_that_come_before_one_commit_are_in_the_log_once() {
        let [once, often] = [1, 5].map(|copies| {
            let mut durable = open(0, ModelDisk::default()).unwrap();
            growth(&mut durable, |it| {
                (0..copies).for_each(|_| it.receive(&request(1, 1, 8)));
            })
        });
        assert!(once > 0 && once == often, "{once} {often}");
    }

    // One more byte, and a device that lies fills the memory and the disks of all others.
    #[test]
    fn a_statement_that_is_longer_than_the_longest_order_is_neither_kept_nor_logged() {
        let mut liar = open(1, ModelDisk::default()).unwrap();
        let mut said = |operation: usize| {
            let body = ([0; 16], vec![0; operation]);
            let request = Request::sign(&client_key(1), 1, 1, body);
            let (configuration, place, output) = (0, 1, [0; 32]);
            let order = Statement::Order { configuration, place, request, output };
            let said = liar.node.attest(&order).unwrap();
            (said.body.len(), Message::Statement(said).encode())
        };
        let (length, bytes) = said(64 + 1024);
        assert!(length > 64 + 1024);
        let mut durable = open(0, ModelDisk::default()).unwrap();
        assert_eq!(growth(&mut durable, |it| it.receive(&bytes)), 0);
        durable.node.receive(&bytes);
        assert!(durable.node.streams[1].lacks(1, 1), "it was not kept");
        let (length, bytes) = said(64);
        assert!(length < 64 + 1024);
        assert!(growth(&mut durable, |it| it.receive(&bytes)) > 0);
    }

    // Numbers of variable length have more than one form. Once, each form of a message was in the
    // log, up to the next commit.
    #[test]
    fn copies_of_a_message_in_other_bytes_are_in_the_log_once() {
        let bytes = request(1, 1, 8);
        let other = [&[0x80, 0x00], &bytes[1..]].concat();
        assert_eq!(Message::decode(&other), Message::decode(&bytes));
        let both = [&[&bytes, &bytes], &[&bytes, &other], &[&other, &bytes]].map(|copies| {
            let mut durable = open(0, ModelDisk::default()).unwrap();
            growth(&mut durable, |it| copies.iter().for_each(|bytes| it.receive(bytes)))
        });
        assert!(both[0] == both[1] && both[0] == both[2], "{both:?}");
    }

    #[test]
    fn a_configuration_is_taken_with_its_proof_and_kept() {
        let mut durable = open(2, ModelDisk::default()).unwrap();
        let group = group(3);
        let by = [0, 1].map(|it| Accusation::sign(&group, it, 4, &reply_key(it)));
        let mut made = Made { number: 5, accusations: by.to_vec() };
        made.accusations.pop();
        assert_eq!(growth(&mut durable, |it| it.configure(&made)), 0);
        assert_eq!(durable.node().made(), None);
        made.accusations.push(by[1]);
        assert!(growth(&mut durable, |it| it.configure(&made)) > 0);
        assert_eq!(growth(&mut durable, |it| it.configure(&made)), 0);
        let again = open(2, durable.into_disk()).unwrap();
        assert_eq!(again.node().made(), Some(&made));
        assert_eq!(again.node().newest(), 5);
    }

    #[test]
    fn a_log_of_an_older_version_is_refused_as_such() {
        let owner = encode(&(LOG, VERSION - 1, 0_u32, [0_u8; 32]));
        let disk = Journal::open(ModelDisk::default(), &owner, |_| ()).unwrap().into_disk();
        let error = open(0, disk).err().unwrap();
        assert!(matches!(error, DurableError::Journal(JournalError::OlderFormat)));
    }

    #[test]
    fn a_log_of_another_node_is_refused() {
        let disk = open(0, ModelDisk::default()).unwrap().into_disk();
        let error = open(1, disk).err().unwrap();
        assert!(matches!(error, DurableError::Journal(JournalError::OtherOwner)));
    }
}
