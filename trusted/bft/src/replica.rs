// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A replica as a state machine without input and output of its own: bytes and ticks in, bytes out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smt_attestation::{Ballot, Header, Start};
use smt_attestor::{Attestor, OwnDevice};
use smt_device_client::DeviceError;
use smt_replica::{
    Attested, Effect, Group, KnownRoots, PendingRequests, Proof, Refusal, Reply, Request, Service,
    SigningKey,
};

use crate::ledger::Ledger;
use crate::message::{Message, Statement, Status, encode};
use crate::track::{Stream, Track};
use crate::view::View;

pub use smt_replica::Output;

/// After so many ticks the leader hears again of a request that waits.
const FORWARD: u32 = 4;

/// The device and the key of a replica.
pub struct Identity {
    /// The device. Its number is the replica's.
    pub device: OwnDevice,
    /// The key with which the host signs replies.
    pub reply_key: SigningKey,
}

/// Numbers of a replica, for logs and tests.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Metrics {
    /// The view that it has entered.
    pub view: u64,
    /// The number of executed batches.
    pub executed: u64,
    /// The stable checkpoint.
    pub stable: u64,
    /// How many views it has entered.
    pub views: u64,
    /// How many states of others it has taken.
    pub states: u64,
    /// How often it went on in a stream from a checkpoint of it, since statements before were gone.
    pub stream_jumps: u64,
    /// How many statements its device has issued again, since the log did not have them.
    pub reissued: u64,
    /// Whether others can count on it: it is a member of its view, and it has the statements of
    /// f + 1 members, but for the last. A replica that has restarted, or that was cut off from the
    /// others, is not active at first.
    pub is_active: bool,
}

/// One of 2f + 1 replicas.
pub struct Replica<S> {
    pub(crate) group: Arc<Group>,
    pub(crate) own: u32,
    pub(crate) start: Start,
    pub(crate) device: Attestor,
    pub(crate) reply_key: SigningKey,
    pub(crate) streams: BTreeMap<(u32, u64), Stream>,
    pub(crate) views: BTreeMap<u64, View>,
    pub(crate) ledger: Ledger<S>,
    /// Requests that wait to be executed.
    pub(crate) pending: PendingRequests,
    /// The newest ballots for each device, by voter and the member that they state.
    pub(crate) ballots: BTreeMap<u32, BTreeMap<(u32, u32), Ballot>>,
    /// Views that were wanted in vain since the last execution. Each doubles the timeout.
    pub(crate) attempts: u32,
    pub(crate) waited: u32,
    /// The view, and the place in its log, up to which f + 1 have committed.
    pub(crate) decided: (u64, u64),
    /// The view of the last state that was taken from others. Earlier views may be unknown.
    pub(crate) skipped_to: u64,
    /// The newest epochs of others for which the device had no vote, until it has heard of more.
    pub(crate) unvoted: BTreeMap<u32, u64>,
    /// The devices that were voted for, each with the ticks for which its next epoch waits.
    pub(crate) voted: BTreeMap<u32, u32>,
    /// Signatures of clients that were verified.
    known: KnownRoots,
    pub(crate) outputs: Vec<Output>,
    pub(crate) metrics: Metrics,
    /// A liar's host orders itself.
    #[cfg(feature = "sim")]
    pub(crate) holds_orders: bool,
    /// A liar's host does not commit.
    #[cfg(feature = "sim")]
    pub(crate) holds_commits: bool,
    /// All that was executed, for the comparison of replicas, if the group wants it.
    #[cfg(feature = "sim")]
    pub(crate) history: Vec<(u64, crate::message::Batch)>,
}

impl<S: Service> Replica<S> {
    /// Starts a replica without a log, which does not come back in its epoch. In a later epoch than
    /// the group's first it begins with nothing: it asks the others to admit it, and for the state.
    ///
    /// # Errors
    /// Those of [`smt_device_client::Device::open`].
    pub fn new(group: Arc<Group>, identity: Identity, service: S) -> Result<Self, DeviceError> {
        let mut replica = Self::silent(group, identity, service)?;
        replica.device = replica.device.without_log();
        replica.begin();
        Ok(replica)
    }

    /// A replica that has said nothing yet.
    pub(crate) fn silent(
        group: Arc<Group>,
        identity: Identity,
        service: S,
    ) -> Result<Self, DeviceError> {
        let Identity { device, reply_key } = identity;
        let start = device.start();
        let device = group.open(device)?;
        let own = start.device.0;
        let is_first = group.epochs.get(own as usize) == Some(&start.epoch.0);
        let mut replica = Self {
            own,
            start,
            device,
            reply_key,
            streams: BTreeMap::from([((own, start.epoch.0), Stream::default())]),
            views: BTreeMap::new(),
            ledger: Ledger::new(service),
            pending: PendingRequests::default(),
            ballots: BTreeMap::new(),
            attempts: 0,
            waited: 0,
            decided: (0, 0),
            skipped_to: 0,
            unvoted: BTreeMap::new(),
            voted: BTreeMap::new(),
            known: KnownRoots::default(),
            outputs: Vec::new(),
            metrics: Metrics { is_active: is_first, ..Metrics::default() },
            #[cfg(feature = "sim")]
            holds_orders: false,
            #[cfg(feature = "sim")]
            holds_commits: false,
            #[cfg(feature = "sim")]
            history: Vec::new(),
            group,
        };
        if is_first {
            replica.views.insert(0, View::first(replica.group.epochs.clone()));
            for member in (0..).zip(replica.group.epochs.iter().copied()) {
                replica.streams.insert(member, Stream::new(Track::first()));
            }
        }
        Ok(replica)
    }

    /// In a later epoch than the group's first a replica begins with HELLO.
    pub(crate) fn begin(&mut self) {
        if !self.metrics.is_active {
            self.say(Statement::Hello { nonce: self.start.nonce });
        }
    }

    /// Takes a message: from a replica or a client, forwarded or not.
    pub fn receive(&mut self, bytes: &[u8]) {
        let Some(message) = Message::decode(bytes) else {
            return;
        };
        match self.effect_of(&message) {
            Effect::Nothing => {}
            Effect::Answer(_) => {
                let answer = self.answer(&message, true);
                self.outputs.extend(answer);
            }
            Effect::Change => self.take(message),
        }
    }

    /// Takes a message that had [`Effect::Change`] when it came: its signature or MAC was verified
    /// then. A state alone is verified again, since another one may have been taken meanwhile.
    pub(crate) fn take(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.take_request(request),
            Message::Statement(statement) => self.take_statement(statement),
            Message::State(state) => self.take_state(*state),
            Message::Status(_) | Message::Reply(_) => {}
        }
        self.advance();
    }

    /// Time passes. The unit is the caller's; a tick should be a fraction of a second, and longer
    /// than a round trip.
    pub fn tick(&mut self) {
        // A log has no such tick: it changes nothing.
        if self.is_idle() {
            let status = self.status();
            self.outputs.push(status);
            return;
        }
        self.drop_done();
        self.count_voted();
        self.want_next_if_late();
        let old = self.pending.iter().filter(|it| it.age % FORWARD == 0);
        let old: Vec<Request> = old.map(|it| it.request.clone()).collect();
        old.into_iter().for_each(|it| self.forward(it));
        let status = self.status();
        self.outputs.push(status);
        self.advance();
    }

    /// The question for all that is missing.
    pub(crate) fn status(&self) -> Output {
        let positions = self.streams.iter();
        let positions = positions.map(|(key, it)| (key.0, key.1, it.track.counter)).collect();
        let wants_state = !self.metrics.is_active || self.attempts > 0 || self.is_any_blocked();
        let status = Status { from: self.own, positions, wants_state };
        Output::Nodes(Message::Status(status).encode())
    }

    /// Drops requests that came to be executed with the state of others. They would be late for
    /// ever, since no leader orders them again.
    fn drop_done(&mut self) {
        let ledger = &self.ledger;
        self.pending.retain(|it| ledger.is_new(it));
    }

    /// Whether a tick changes nothing: no request waits, no view is wanted, and no epoch waits.
    pub(crate) fn is_idle(&self) -> bool {
        let track = self.own_track();
        let is_settled = track.at.is_some_and(|at| at.0 == track.promised);
        is_settled && self.waited == 0 && self.pending.is_empty() && self.voted.is_empty()
    }

    /// All that is to be sent, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    /// The numbers of this moment.
    pub fn metrics(&self) -> Metrics {
        let (executed, stable) = (self.ledger.executed, self.ledger.stable);
        let reissued = self.device.reissues();
        let is_active = self.metrics.is_active && self.is_up_to_date();
        Metrics { executed, stable, reissued, is_active, ..self.metrics }
    }

    /// Whether a stream is taken no further here, though f + 1 state where it stands later.
    fn is_any_blocked(&self) -> bool {
        let (window, quorum) = (self.group.stream_window(), self.group.quorum());
        self.streams.values().any(|it| {
            let counter = it.track.counter;
            it.is_blocked(window) && it.checkpoints.is_stated_beyond(counter, quorum)
        })
    }

    /// Whether this replica has the statements of f + 1 members of its view, its own among them,
    /// but for the last.
    fn is_up_to_date(&self) -> bool {
        let Some(of_view) = self.own_track().at.and_then(|at| self.views.get(&at.0)) else {
            return false;
        };
        let interval = self.group.stream_interval();
        let is_followed = |device: &u32| {
            let key = of_view.epoch(*device).map(|epoch| (*device, epoch));
            let stream = key.and_then(|key| self.streams.get(&key));
            stream.is_some_and(|it| !it.is_behind(interval))
        };
        (0..self.group.replicas).filter(is_followed).count() >= self.group.quorum()
    }

    /// The device and the epoch of the own stream.
    pub(crate) fn own_key(&self) -> (u32, u64) {
        (self.own, self.start.epoch.0)
    }

    pub(crate) fn own_track(&self) -> &Track {
        // The own stream is there from the start.
        &self.streams[&self.own_key()].track
    }

    /// Has a statement attested, takes it, and sends it to all.
    pub(crate) fn say(&mut self, statement: Statement) {
        let body = encode(&statement);
        // A device that fails ends the replica (`Durable::commit`).
        if let Some(attestation) = self.device.attest(&body) {
            self.publish(Attested::new(&attestation, body));
        }
    }

    /// Takes a statement of this device, and sends it to all.
    pub(crate) fn publish(&mut self, statement: Attested) {
        let Some(header) = statement.attestation().claim() else {
            return;
        };
        let key = self.own_key();
        self.streams.entry(key).or_default().put_own(header.counter, statement.clone());
        self.outputs.push(Output::Nodes(Message::Statement(statement).encode()));
        self.drain();
    }

    /// The header of a statement that a device of the group has attested.
    pub(crate) fn authenticate(&self, it: &Attested) -> Option<Header> {
        // `check`, not `accept`: a forwarded statement of an epoch that this device has voted to
        // replace is still needed where a view refers to it. The order is kept by `Stream`.
        self.device.check(&it.attestation(), &it.body)
    }

    fn take_statement(&mut self, statement: Attested) {
        let Some(header) = statement.attestation().claim() else {
            return;
        };
        let (device, epoch, counter) = (header.device.0, header.epoch.0, header.counter);
        self.hear_vote(&header, &statement);
        let key = (device, epoch);
        if !self.streams.contains_key(&key) && !self.may_follow(key, counter, &statement) {
            return;
        }
        self.streams.entry(key).or_default().put(counter, statement);
        self.forget_epochs(device);
    }

    fn take_request(&mut self, request: Request) {
        // Others may have come since it was found to be new.
        if self.ledger.is_new(&request) && self.is_wanted(&request) {
            self.forward(request.clone());
            self.pending.push(request);
        }
    }

    /// Whether a request does not wait yet, and may.
    pub(crate) fn is_wanted(&self, request: &Request) -> bool {
        self.pending.has_room_for(request)
    }

    /// Sends a request to the leader, who may not have heard of it.
    fn forward(&mut self, request: Request) {
        if let Some(leader) = self.leader().filter(|leader| *leader != self.own) {
            let bytes = Message::Request(request).encode();
            self.outputs.push(Output::Node(leader, bytes));
        }
    }

    /// Whether a client of the group has signed this request.
    pub(crate) fn is_genuine(&self, request: &Request) -> bool {
        if self.pending.has(request) {
            return true;
        }
        let key = self.group.clients.get(&request.client);
        request.operation.len() <= self.group.options.operation
            && key.is_some_and(|key| request.is_signed_by(key, &self.known))
    }

    fn leader(&self) -> Option<u32> {
        let view = self.own_track().at?.0;
        Some(self.group.leader(view))
    }

    /// Executes the log of a view up to a place that f + 1 have committed to.
    pub(crate) fn execute(&mut self, view: u64, to: u64) {
        while self.ledger.executed < to && !self.device.is_ahead_of_log() {
            let next = self.ledger.executed + 1;
            let Some(batch) = self.views.get(&view).and_then(|it| it.batch(next)).cloned() else {
                return;
            };
            let fresh = self.ledger.execute(&batch);
            #[cfg(feature = "sim")]
            if self.group.keeps_history {
                self.history.push((next, batch.clone()));
            }
            let mut replies = Vec::new();
            for (request, answer) in fresh {
                if self.pending.execute(request.client, request.number) {
                    self.attempts = 0;
                }
                replies.push(self.reply_to(&request, Ok(answer)));
            }
            let replies = Reply::sign_all(replies, &self.reply_key);
            self.outputs.extend(replies.into_iter().map(reply_output));
            if next.is_multiple_of(self.group.options.interval.max(1)) {
                self.ledger.take_snapshot();
            }
        }
    }

    /// A reply that is not signed yet.
    pub(crate) fn reply_to(&self, request: &Request, result: Result<Vec<u8>, Refusal>) -> Reply {
        let (replica, view, proof) = (self.own, self.metrics.view, Proof::default());
        let (client, number, request) = (request.client, request.number, request.digest());
        Reply { replica, view, client, number, request, result, proof }
    }

    /// The reply to a request that was executed before, or is not executed.
    pub(crate) fn signed_reply(&self, reply: Reply) -> Output {
        reply_output(reply.sign(&self.reply_key))
    }

    /// A view was entered: all requests get their time again.
    pub(crate) fn entered(&mut self, view: u64) {
        self.metrics.view = view;
        self.metrics.views += 1;
        self.metrics.is_active = true;
        self.waited = 0;
        for pending in self.pending.iter_mut() {
            pending.age = 0;
            pending.ordered = None;
        }
    }

    pub(crate) fn wait_again(&mut self) {
        self.waited = 0;
        self.pending.wait_again();
    }
}

fn reply_output(reply: Reply) -> Output {
    Output::Client(reply.client, Message::Reply(reply).encode())
}
