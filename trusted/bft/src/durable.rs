// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica whose inputs are on a disk before anything that follows from them leaves.
//!
//! A replica is a function of its inputs, its device's attestations included. A replica that was
//! killed takes the inputs of its log again, and is in the state, epoch and counter that the others
//! know: to them it was slow. Inputs that the crash lost have had no consequence outside.
//!
//! A log that is lost or damaged ends the epoch: the device must begin the next one with an empty
//! log, and gets the state from the others. An older log that is restored rolls the device back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_device_client::DeviceError;
use smt_journal::{Disk, Journal, JournalError};

use crate::attestor::{AttestorError, Given, OwnDevice};
use crate::digest::{Digest, digest};
use crate::effect::{Asker, Effect};
use crate::group::Group;
use crate::message::{Message, decode, encode};
use crate::replica::{Identity, Metrics, Output, Replica};
use crate::service::Service;

/// The version of what a replica makes of its inputs. A log of another version is refused.
const VERSION: u32 = 3;
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
    /// Inputs that the replica takes when they are durable.
    waiting: Vec<Input>,
    /// The hashes of the messages among them: a copy that comes meanwhile is not in the log again.
    hashes: BTreeSet<Digest>,
    /// The last question of each that asks. Questions change nothing, and are not in the log.
    questions: BTreeMap<Asker, Message>,
    /// Those that had an answer since the last tick: the next one waits for the next tick, since an
    /// answer is longer than its question.
    answered: BTreeSet<Asker>,
    /// The ticks since a replica that asks for the state had it.
    states: BTreeMap<Asker, u32>,
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
        let mut replay = Replay::new(group, identity, service);
        // The outputs of the last inputs leave again; earlier ones are asked for.
        let mut journal = Journal::open(disk, &owner, |record| replay.take(record))?;
        if replay.parts.is_some() {
            let start = encode(&Record::Start(nonce));
            journal.append(&start);
            journal.commit()?;
            replay.take(&start);
        }
        let Replayed { mut replica, inputs: replayed, given } = replay.finish()?;
        if !given.is_empty() {
            journal.append(&encode(&Record::Given(given)));
        }
        let outputs = replica.outputs();
        let mut durable = Self {
            replica,
            journal,
            waiting: Vec::new(),
            hashes: BTreeSet::new(),
            questions: BTreeMap::new(),
            answered: BTreeSet::new(),
            states: BTreeMap::new(),
            outputs,
            replayed,
        };
        durable.keep_given();
        durable.journal.commit()?;
        Ok(durable)
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
        match self.replica.effect_of(&message) {
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

    /// Time passes ([`Replica::tick`]).
    pub fn tick(&mut self) {
        self.answered.clear();
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
        for (asker, mut question) in std::mem::take(&mut self.questions) {
            if !self.answered.insert(asker) {
                self.questions.insert(asker, question);
                continue;
            }
            if let Message::Status(status) = &mut question
                && status.wants_state
            {
                status.wants_state = !self.states.contains_key(&asker);
                self.states.entry(asker).or_insert(0);
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

#[cfg(feature = "sim")]
impl<S: Service> Durable<S, smt_journal::ModelDisk> {
    pub(crate) fn replica(&self) -> &Replica<S> {
        &self.replica
    }

    /// All that is to be sent, though it is not durable.
    pub(crate) fn outputs_before_commit(&mut self) -> Vec<Output> {
        // A device that fails sends nothing.
        let _ = self.work();
        std::mem::take(&mut self.outputs)
    }

    /// The next commit writes, and the disk fails before it is durable.
    pub(crate) fn fail_next_sync(&mut self) {
        self.journal.disk_mut().fails_after = Some(0);
    }

    pub(crate) fn into_disk(self) -> smt_journal::ModelDisk {
        self.journal.into_disk()
    }
}

/// The replica as the records come.
struct Replay<S> {
    parts: Option<(Arc<Group>, Identity, S)>,
    replica: Option<Replica<S>>,
    failure: Option<DurableError>,
    /// Inputs whose statements a device has given later in the log.
    held: Vec<Record>,
    /// Whether all that was given for them has come.
    is_given: bool,
    /// The statements that the device has issued again, beyond the log.
    given: Vec<Given>,
    count: u64,
}

/// The replica where its log ends.
struct Replayed<S> {
    replica: Replica<S>,
    /// The inputs of the log.
    inputs: u64,
    /// All that the device has given beyond the log.
    given: Vec<Given>,
}

impl<S: Service> Replay<S> {
    fn new(group: Arc<Group>, identity: Identity, service: S) -> Self {
        let parts = Some((group, identity, service));
        let (held, given) = (Vec::new(), Vec::new());
        Self { parts, replica: None, failure: None, held, is_given: false, given, count: 0 }
    }

    fn take(&mut self, record: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        match (decode(record), &mut self.replica) {
            (Some(Record::Start(nonce)), None) => self.start(nonce),
            (Some(Record::Given(given)), Some(replica)) => {
                self.is_given = true;
                replica.device.replay(given);
            }
            (Some(input @ (Record::Tick | Record::Message(_))), Some(replica)) => {
                self.count += 1;
                if std::mem::take(&mut self.is_given) || !replica.device.outlives() {
                    self.take_held();
                }
                self.held.push(input);
            }
            _ => self.failure = Some(JournalError::OtherOwner.into()),
        }
    }

    fn start(&mut self, nonce: [u8; 16]) {
        let Some((group, mut identity, service)) = self.parts.take() else {
            return;
        };
        match &mut identity.device {
            OwnDevice::Library { start, .. } => start.nonce = nonce,
            OwnDevice::Process { device, .. } if device.own().nonce == nonce => {}
            OwnDevice::Process { .. } => {
                self.failure = Some(AttestorError::Foreign.into());
                return;
            }
        }
        match Replica::silent(group, identity, service) {
            Ok(replica) => {
                self.replica = Some(replica);
                self.held.push(Record::Start(nonce));
            }
            Err(error) => self.failure = Some(error.into()),
        }
    }

    fn take_held(&mut self) {
        let Some(replica) = &mut self.replica else {
            return;
        };
        // The replica has sent this before, or is asked for it again.
        replica.outputs();
        for input in std::mem::take(&mut self.held) {
            match input {
                Record::Start(_) => replica.begin(),
                Record::Tick => replica.tick(),
                Record::Message(bytes) => replica.receive(&bytes),
                Record::Given(_) => {}
            }
            // As it did before: all of an input before the next one.
            while replica.device.is_ahead_of_log() {
                self.given.extend(replica.device.take_unlogged());
                replica.advance();
            }
        }
    }

    fn finish(mut self) -> Result<Replayed<S>, DurableError> {
        self.take_held();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let mut replica = self.replica.ok_or(JournalError::OtherOwner)?;
        replica.device.finish_replay();
        match replica.device.failure() {
            Some(failure) => Err(failure.into()),
            None => Ok(Replayed { replica, inputs: self.count, given: self.given }),
        }
    }
}

/// All that the replica depends on beside its inputs.
fn owner(group: &Group, identity: &Identity) -> Vec<u8> {
    let start = identity.device.start();
    let members = encode(&(&group.clients, &group.reply_keys, &group.epochs));
    let options = group.options;
    let sizes = (options.batch, options.operation, options.interval, options.window);
    let rest = (options.retained, options.timeout, group.replicas, group.stream);
    let configuration = digest("configuration", &[&members, &encode(&sizes), &encode(&rest)]);
    encode(&(LOG, VERSION, start.device.0, start.epoch.0, configuration))
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::message::{Attested, Reference, Statement};
    use crate::replica::Pending;
    use crate::request::Request;
    use crate::sim::group::{client_key, group, identity};
    use crate::{Counter, Status};
    use smt_attestation::{DeviceId, Epoch, Start};
    use smt_journal::ModelDisk;

    type Core = Durable<Counter, ModelDisk>;

    fn open_log(group: Group, device: u32, disk: ModelDisk) -> Result<Core, DurableError> {
        let start = Start { device: DeviceId(device), epoch: Epoch(1), nonce: [0; 16] };
        Durable::open(Arc::new(group), identity(start), Counter::default(), disk)
    }

    fn open(group: Group, device: u32) -> Core {
        let mut durable = open_log(group, device, ModelDisk::default()).unwrap();
        durable.commit().unwrap();
        durable
    }

    fn durable() -> Core {
        open(group(3), 0)
    }

    /// Bytes by which the log has grown.
    fn growth(durable: &mut Core, act: impl FnOnce(&mut Core)) -> u64 {
        let length = durable.log_length();
        act(durable);
        durable.commit().unwrap();
        durable.log_length() - length
    }

    /// A statement of a replica as a message.
    fn said(by: &mut Core, statement: &Statement) -> (Attested, Vec<u8>) {
        let body = encode(statement);
        let attestation = by.replica.device.attest(&body).unwrap();
        let said = Attested::new(&attestation, body);
        (said.clone(), Message::Statement(said).encode())
    }

    /// The leader and a follower that have executed `request(8)`.
    fn executed() -> [Core; 2] {
        let [mut leader, mut follower] = [0, 1].map(|it| open(group(3), it));
        leader.receive(&request(8));
        for _ in 0..3 {
            for output in leader.commit().unwrap() {
                if let Output::Replica(1, bytes) | Output::Replicas(bytes) = output {
                    follower.receive(&bytes);
                }
            }
            for output in follower.commit().unwrap() {
                if let Output::Replica(0, bytes) | Output::Replicas(bytes) = output {
                    leader.receive(&bytes);
                }
            }
        }
        assert_eq!((leader.metrics().executed, follower.metrics().executed), (1, 1));
        [leader, follower]
    }

    fn request(bytes: usize) -> Vec<u8> {
        Message::Request(Request::sign(&client_key(1), 1, 1, ([0; 16], vec![0; bytes]))).encode()
    }

    #[test]
    fn a_request_that_is_too_long_leaves_nothing_in_the_log() {
        let mut durable = durable();
        let length = durable.log_length();
        durable.receive(&request(1025));
        durable.commit().unwrap();
        assert_eq!(durable.log_length(), length);
        durable.receive(&request(1024));
        durable.commit().unwrap();
        assert!(durable.log_length() > length);
    }

    #[test]
    fn messages_for_which_the_log_has_no_room_end_no_replica() {
        let mut group = group(3);
        group.options.operation = 60 << 20;
        let mut other = open(group.clone(), 1);
        let mut durable = open(group, 0);
        let (statement, _) = said(&mut other, &Statement::ViewChange { view: 1 });
        for number in 0..4 {
            let body = vec![number; 50 << 20];
            durable.receive(&Message::Statement(Attested { body, ..statement.clone() }).encode());
        }
        let length = durable.log_length();
        durable.commit().unwrap();
        assert_eq!((durable.log_length() - length) >> 20, 100, "two of them have room");
    }

    // One more byte, and a device that lies fills the memory and the disks of all others.
    #[test]
    fn a_statement_that_is_longer_than_the_longest_batch_is_neither_kept_nor_logged() {
        let mut liar = open(group(3), 1);
        let mut of_operation = |bytes: usize| {
            let request = Request::sign(&client_key(1), 1, 1, ([0; 16], vec![0; bytes]));
            let batch = Arc::new(vec![request]);
            said(&mut liar, &Statement::Prepare { view: 1, sequence: 1, batch }).1
        };
        let (long, short) = (of_operation(140 << 10), of_operation(1024));
        let mut durable = durable();
        assert_eq!(growth(&mut durable, |it| it.receive(&long)), 0);
        durable.replica.receive(&long);
        assert!(durable.replica.streams[&(1, 1)].lacks(1, 1), "it was not kept");
        assert!(growth(&mut durable, |it| it.receive(&short)) > 0);
        assert_eq!(growth(&mut durable, |it| it.receive(&short)), 0, "it is known");
    }

    // It would wait for VIEW-CHANGEs that nobody need say.
    #[test]
    fn a_new_view_with_more_votes_than_a_quorum_is_faulty_at_once() {
        for (count, is_faulty) in [(2, false), (3, true)] {
            let [mut durable, mut liar] = [0, 1].map(|it| open(group(3), it));
            let vote = |device| Reference {
                device,
                epoch: 1,
                counter: 5 - u64::from(device),
                mac: [0; 32],
            };
            let votes = (0..count).map(vote).collect();
            let (_, bytes) = said(&mut liar, &Statement::NewView { view: 1, votes });
            durable.receive(&bytes);
            durable.commit().unwrap();
            assert_eq!(durable.replica.streams[&(1, 1)].track.is_faulty, is_faulty, "{count}");
        }
    }

    // Once, each of them had an answer of all that the replica has, as often as somebody asked.
    #[test]
    fn many_questions_of_a_replica_have_one_answer_in_each_tick() {
        let [mut leader, _] = executed();
        let question = Status { from: 2, positions: Vec::new(), wants_state: true };
        let question = Message::Status(question).encode();
        let mut answers = |time_passes: bool| {
            if time_passes {
                leader.tick();
            }
            (0..9).for_each(|_| leader.receive(&question));
            let outputs = leader.commit().unwrap();
            outputs.iter().filter(|it| matches!(it, Output::Replica(2, _))).count()
        };
        let once = answers(false);
        assert!(once >= 2, "a PREPARE and a COMMIT");
        assert_eq!([answers(false), answers(true), answers(false)], [0, once, 0]);
    }

    #[test]
    fn a_question_of_any_length_is_not_kept() {
        let [mut leader, _] = executed();
        for (count, has_answer) in [(1 << 16, true), ((1 << 16) + 1, false)] {
            let positions = vec![(2, 1, 0); count];
            let question = Status { from: 2, positions, wants_state: false };
            leader.receive(&Message::Status(question).encode());
            assert_eq!(!leader.questions.is_empty(), has_answer, "{count}");
            assert_eq!(!leader.commit().unwrap().is_empty(), has_answer, "{count}");
            leader.tick();
            leader.commit().unwrap();
        }
    }

    #[test]
    fn a_replica_that_asks_for_the_state_in_each_tick_has_it_in_each_eighth_one() {
        let [mut leader, mut follower] = executed();
        let view = leader.replica.views.get_mut(&0).unwrap();
        let (enter, _) = said(&mut follower, &Statement::Enter { view: 0, opening: view.digest });
        view.enters.extend([0, 1].map(|it| (it, enter.clone())));
        let question = Status { from: 2, positions: Vec::new(), wants_state: true };
        let question = Message::Status(question).encode();
        let had: Vec<usize> = (0..17)
            .filter(|_| {
                leader.receive(&question);
                let outputs = leader.commit().unwrap();
                leader.tick();
                outputs.iter().any(|it| match it {
                    Output::Replica(2, bytes) => {
                        matches!(Message::decode(bytes), Some(Message::State(_)))
                    }
                    _ => false,
                })
            })
            .collect();
        assert_eq!(had, [0, 8, 16]);
    }

    #[test]
    fn a_request_that_was_executed_is_answered_once_in_each_tick_and_lets_no_log_grow() {
        let [mut leader, _] = executed();
        let length = leader.log_length();
        let mut replies = |bytes: usize| {
            (0..9).for_each(|_| leader.receive(&request(bytes)));
            let outputs = leader.commit().unwrap();
            leader.tick();
            leader.commit().unwrap();
            outputs.iter().filter(|it| matches!(it, Output::Client(1, _))).count()
        };
        // Another request under its number, which no correct client makes, has no answer.
        assert_eq!([replies(8), replies(8), replies(7)], [1, 1, 0]);
        assert_eq!(leader.log_length(), length);
    }

    #[test]
    fn copies_of_a_message_that_come_before_one_commit_are_in_the_log_once() {
        let bytes = request(8);
        let other = [&[0x80, 0x00], &bytes[1..]].concat();
        assert_eq!(Message::decode(&other), Message::decode(&bytes));
        let all = [vec![&bytes], vec![&bytes, &bytes], vec![&other, &bytes]].map(|copies| {
            growth(&mut durable(), |it| copies.iter().for_each(|bytes| it.receive(bytes)))
        });
        assert!(all[0] > 0 && all[0] == all[1] && all[0] == all[2], "{all:?}");
    }

    // A replica that got the state of others had such a request wait for ever: it wanted one view
    // after the other, and took part in none.
    #[test]
    fn a_request_that_was_executed_and_waits_all_the_same_is_dropped() {
        let [mut leader, _] = executed();
        let Some(Message::Request(request)) = Message::decode(&request(8)) else {
            panic!("it is a request");
        };
        leader.replica.pending.insert(1, Pending { request, age: 0, ordered: None });
        leader.tick();
        leader.commit().unwrap();
        assert!(leader.replica.pending.is_empty());
    }

    #[test]
    fn a_log_of_an_older_version_is_refused_as_such() {
        let owner = encode(&(LOG, VERSION - 1, 0_u32, 1_u64, [0_u8; 32]));
        let disk = Journal::open(ModelDisk::default(), &owner, |_| ()).unwrap().into_disk();
        let error = open_log(group(3), 0, disk).err().unwrap();
        assert!(matches!(error, DurableError::Journal(JournalError::OlderFormat)));
    }

    #[test]
    fn questions_let_no_log_grow() {
        let mut durable = durable();
        // The first tick of a replica that has just begun may have something to do.
        durable.tick();
        durable.commit().unwrap();
        let length = durable.log_length();
        let question = Status { from: 1, positions: Vec::new(), wants_state: false };
        for _ in 0..5 {
            durable.receive(&Message::Status(question.clone()).encode());
            durable.tick();
            durable.commit().unwrap();
        }
        assert_eq!(durable.log_length(), length);
    }
}
