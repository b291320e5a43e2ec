// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state behind an endpoint's lock: the protocol, and the wakers that wait for it.
//!
//! Every change ends with [`EndpointState::tell_all`]: events fill the slots of those who wait, and
//! their wakers are collected ([`EndpointState::take_woken`]). Waiting is by `Waker`, so that
//! threads and tasks wait alike. Not here: receiving, sending and waking, which are done without
//! the lock (`driver`).

mod accepting;
mod answering;
mod cancellation;
mod connecting;
mod distrusting;
mod ending;
mod parts;
mod peers;
mod refusing;
mod timing;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use smt_carrier::{Carrier, SendError};
use smt_io::UdpCarrier;
use smt_proto::key_exchange::PeerIdentity;
use smt_proto::{
    CallError, CallOptions, ConnectError, Endpoint, Event, OneWayOutcome, OutgoingMessage, Refused,
    RpcId, SessionEnd, Time,
};
use smt_wire::SessionIndex;

use crate::accept_queue::AcceptQueue;
use crate::acceptors::Acceptors;
use crate::authorization::{Authorization, MessageAuthorization};
use crate::builder::endpoint_parts::OpenedEndpoint;
use crate::clock::WallTimeTold;
use crate::completion::{Completion, Completions};
use crate::cork::Cork;
use crate::distrust::Distrusted;
use crate::driver::Driver;
use crate::peer::Peer;
use crate::peer_log::PeerLog;
use crate::pump::{Outbox, OutgoingBatch};
use crate::reply::Reply;
use crate::servers::Servers;
use crate::state_lock::StateLock;
use crate::turn::Turn;

use cancellation::CancelWaiters;
use distrusting::NewcomersJudge;
#[cfg(feature = "async")]
use ending::Releases;
pub(crate) use ending::SENT_WITHIN;
use ending::{Closing, Socket};
pub(crate) use parts::OutgoingPart;
use parts::{PartWaiters, PartsLeft};
use peers::Peers;

/// The state of an endpoint that its lock protects.
pub(crate) struct EndpointState {
    pub(crate) endpoint: Endpoint,
    outbox: Outbox,
    /// The carrier, if it is a socket; then what it has counted.
    socket: Socket,
    pub(crate) cork: Cork,
    turn: Arc<Turn>,
    /// Wakers of those who are to be woken once the lock is given back.
    woken: Vec<Waker>,
    calls: Completions<Result<Reply, CallError>>,
    one_ways: Completions<OneWayOutcome>,
    /// Requests that were taken and are not answered yet.
    unanswered: usize,
    /// The servers that it connects to.
    pub(crate) servers: Servers,
    /// Told of names that were resolved.
    driver: Weak<Driver>,
    /// Keeps others from the state file.
    pub(crate) state_lock: Option<Arc<StateLock>>,
    peers: Peers,
    /// Decides which clients are served.
    pub(crate) authorization: Option<Authorization>,
    /// Decides which messages are served.
    pub(crate) message_authorization: Option<MessageAuthorization>,
    pub(crate) messages_refused: u64,
    /// Sessions of clients that are not served, and when they are closed.
    refused: VecDeque<(Time, SessionIndex)>,
    pub(crate) sessions_refused: u64,
    /// How sessions end whose peers are accepted no more.
    pub(crate) distrusted: Distrusted,
    newcomers_judge: Option<NewcomersJudge>,
    pub(crate) sessions_distrusted: u64,
    peer_log: PeerLog,
    /// Callers that wait for ids.
    admission: Vec<Waker>,
    acceptors: Acceptors,
    /// Messages in the accept queue that acceptors were told of, and those that have left it.
    arrivals_told: u64,
    departures_counted: u64,
    /// Those that were taken together; tasks take them without the lock.
    accepted: Arc<AcceptQueue>,
    /// The wakers to be woken at a time although nothing has happened, by time and ticket.
    alarms: BTreeMap<(Time, u64), Waker>,
    next_ticket: u64,
    cancel_waiters: CancelWaiters,
    part_waiters: PartWaiters,
    parts_left: PartsLeft,
    /// Wakers that wait for all that is in progress to be finished.
    finishers: Vec<Waker>,
    /// Wakers that wait for what is in progress with a server.
    finishers_of_servers: Vec<Waker>,
    /// Nothing new is begun.
    is_draining: bool,
    pub(crate) is_closed: bool,
    /// The last of what was told of was just taken, and the driver waits for that.
    pub(crate) ends_turn: bool,
    /// Until then the task that drives sleeps, unless it is woken.
    sleeps_until: Option<Time>,
    /// How its sessions are to be closed, once they are.
    closing: Option<Closing>,
    /// Why nobody could receive an answer any more.
    is_left: Option<ConnectError>,
    /// Wakers that wait until the task that drives has let go of the socket.
    #[cfg(feature = "async")]
    releases: Releases,
    /// When it was last changed.
    changed: Time,
    wall_time_told: WallTimeTold,
}

impl EndpointState {
    pub(crate) fn new(
        opened: OpenedEndpoint,
        carrier: Arc<dyn Carrier>,
        udp: Option<Arc<UdpCarrier>>,
    ) -> Self {
        let mut endpoint = opened.endpoint;
        endpoint.queue_messages();
        Self {
            endpoint,
            outbox: Outbox::new(carrier),
            socket: Socket::of(udp),
            cork: Cork::default(),
            turn: Arc::new(Turn::new()),
            woken: Vec::new(),
            calls: Completions::new(),
            one_ways: Completions::new(),
            unanswered: 0,
            servers: Servers::default(),
            driver: Weak::new(),
            state_lock: None,
            peers: Peers::new(),
            authorization: None,
            message_authorization: None,
            messages_refused: 0,
            refused: VecDeque::new(),
            sessions_refused: 0,
            distrusted: Distrusted::default(),
            newcomers_judge: None,
            sessions_distrusted: 0,
            peer_log: PeerLog::default(),
            admission: Vec::new(),
            acceptors: Acceptors::default(),
            arrivals_told: 0,
            departures_counted: 0,
            accepted: Arc::new(AcceptQueue::new()),
            alarms: BTreeMap::new(),
            next_ticket: 0,
            cancel_waiters: CancelWaiters::default(),
            part_waiters: PartWaiters::default(),
            parts_left: PartsLeft::default(),
            finishers: Vec::new(),
            finishers_of_servers: Vec::new(),
            is_draining: false,
            is_closed: false,
            ends_turn: false,
            sleeps_until: None,
            closing: None,
            is_left: None,
            #[cfg(feature = "async")]
            releases: Releases::default(),
            changed: Time::default(),
            wall_time_told: opened.wall_time_told,
        }
    }

    /// The counts of what was told of and not taken, and of the corked changes.
    pub(crate) fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }

    /// The time of a change for which the clock was read at `now`: another thread may have read it
    /// later and come first, but for the protocol time must not go back.
    pub(crate) fn advance(&mut self, now: Time) -> Time {
        self.changed = self.changed.max(now);
        self.changed
    }

    /// Clients whose handshakes were refused.
    pub(crate) fn clients_refused(&self) -> u64 {
        self.peer_log.clients_refused()
    }

    /// Messages that one acceptor has taken for the next ones.
    pub(crate) fn accepted(&self) -> &Arc<AcceptQueue> {
        &self.accepted
    }

    /// Tells what has happened to those who wait for it: their slots are filled, and their wakers
    /// wait for [`EndpointState::take_woken`].
    pub(crate) fn tell_all(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.tell(event);
        }
        self.tell_arrivals();
        if !self.finishers.is_empty() && self.is_finished() {
            self.woken.append(&mut self.finishers);
        }
        // Each looks again: there are few, and each event may be theirs.
        self.woken.append(&mut self.finishers_of_servers);
    }

    /// Whether requests were taken that are not answered yet.
    pub(crate) fn has_unanswered(&self) -> bool {
        self.unanswered > 0
    }

    /// Whether a waiter is to be woken.
    pub(crate) fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// Wakers of those who are to be woken once the lock is given back.
    pub(crate) fn take_woken(&mut self) -> Woken {
        match self.woken.len() {
            // One alone costs no memory.
            0 | 1 => self.woken.pop().map_or(Woken::Nobody, Woken::One),
            _ => Woken::Many(std::mem::take(&mut self.woken)),
        }
    }

    /// Whether what is to be sent leaves now, and does not wait for what others are about to send.
    pub(crate) fn sends_now(&self, now: Time) -> bool {
        !self.cork.holds(now) || self.is_alone()
    }

    /// Whether nobody else is known who may have something to send soon.
    fn is_alone(&self) -> bool {
        let own = self.calls.len() + self.one_ways.len();
        own <= 1 && self.unanswered == 0 && self.turn.untaken() == 0
    }

    /// Whether something is to be sent.
    pub(crate) fn has_output(&self, now: Time) -> bool {
        self.outbox.has_unsent() || self.endpoint.has_output(now)
    }

    /// The next datagrams to be sent. The caller gives the lock back, sends them, and gives them
    /// back with [`EndpointState::put_back`].
    pub(crate) fn next_batch(&mut self, now: Time) -> Option<OutgoingBatch> {
        if let Some(batch) = self.outbox.take(now, &mut self.endpoint) {
            return Some(batch);
        }
        // CLOSE leaves behind the rest, if sessions are to close.
        let closes = self.close_behind_the_rest(now);
        closes.then(|| self.outbox.take(now, &mut self.endpoint)).flatten()
    }

    /// Takes a batch back that was sent with this outcome. Returns whether there may be room for
    /// the next one.
    pub(crate) fn put_back(
        &mut self,
        now: Time,
        batch: OutgoingBatch,
        outcome: Result<(), SendError>,
    ) -> bool {
        self.outbox.put_back(now, &mut self.endpoint, batch, outcome)
    }

    /// Begins a call; waits while the peer's window is full.
    pub(crate) fn poll_begin_call(
        &mut self,
        now: Time,
        (session, message): (SessionIndex, &OutgoingMessage),
        options: CallOptions,
        waker: &Waker,
    ) -> Poll<Result<(RpcId, CallSlot), Refused>> {
        let begun = self.endpoint.call_in_parts(now, session, message.clone(), options);
        self.cork.add(message.body.len());
        let begun = begun.map(|rpc| (rpc, self.calls.expect(rpc)));
        self.admit(begun, waker)
    }

    /// The caller has gone: the call is cancelled if it is in progress.
    pub(crate) fn forget_call(&mut self, now: Time, rpc: RpcId) {
        self.parts_left.take(rpc);
        match self.calls.forget(rpc) {
            true => drop(self.endpoint.cancel(now, rpc)),
            false => self.untold(),
        }
    }

    /// Begins a one-way message; waits while the peer's window is full.
    pub(crate) fn poll_begin_one_way(
        &mut self,
        now: Time,
        (session, message): (SessionIndex, &OutgoingMessage),
        deadline: Option<Duration>,
        waker: &Waker,
    ) -> Poll<Result<(RpcId, OneWaySlot), Refused>> {
        let begun = self.endpoint.send_one_way(now, session, message.clone(), deadline);
        self.cork.add(message.body.len());
        let begun = begun.map(|rpc| (rpc, self.one_ways.expect(rpc)));
        self.admit(begun, waker)
    }

    pub(crate) fn forget_one_way(&mut self, now: Time, rpc: RpcId) {
        match self.one_ways.forget(rpc) {
            true => drop(self.endpoint.cancel(now, rpc)),
            false => self.untold(),
        }
    }

    /// An outcome was told of that nobody takes any more.
    fn untold(&mut self) {
        self.ends_turn |= self.turn.take(1);
    }

    /// Whether no request is in progress, of either side, and all replies are acknowledged.
    fn is_finished(&self) -> bool {
        self.endpoint.served_len() == 0 && self.calls.len() == 0 && self.one_ways.len() == 0
    }

    /// Ready when nothing is in progress.
    pub(crate) fn poll_finished(&mut self, waker: &Waker) -> Poll<()> {
        if self.is_finished() {
            return Poll::Ready(());
        }
        // A leading thread comes by with every batch that it receives.
        if self.finishers.iter().all(|other| !other.will_wake(waker)) {
            self.finishers.push(waker.clone());
        }
        Poll::Pending
    }

    pub(crate) fn peer(&self, session: SessionIndex) -> Option<Arc<Peer>> {
        self.peers.get(session).cloned()
    }

    pub(super) fn admit<T>(
        &mut self,
        begun: Result<T, Refused>,
        waker: &Waker,
    ) -> Poll<Result<T, Refused>> {
        if matches!(begun, Err(Refused::Blocked)) {
            self.wait_for_ids(waker);
            return Poll::Pending;
        }
        Poll::Ready(begun)
    }

    /// Wakes when the peer has room for more messages.
    fn wait_for_ids(&mut self, waker: &Waker) {
        let is_known = self.admission.last();
        if is_known.is_none_or(|last| !last.will_wake(waker)) {
            self.admission.push(waker.clone());
        }
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Reply { rpc, body, metadata } => {
                let was_early = false;
                self.end_call(rpc, Ok(Reply { body, metadata, was_early }));
            }
            Event::CallFailed { rpc, error } => self.end_call(rpc, Err(error)),
            Event::OneWayDone { rpc, outcome } => {
                self.turn.tell();
                let told = self.one_ways.finish(rpc, outcome);
                self.note_told(told);
            }
            Event::Connected { connect, session, peer } => {
                self.keep_peer(session, peer);
                self.finish_connect(connect, Ok(session));
            }
            Event::EarlyCalls { connect, calls, taken } => {
                self.begin_early_calls(connect, calls, taken)
            }
            Event::ConnectFailed { connect, error } => self.finish_connect(connect, Err(error)),
            Event::Accepted { session, peer, .. } => self.accept_peer(session, peer),
            Event::SessionEnded { session, end } => self.end_session(session, &end),
            Event::Cancelled(rpc) => {
                let is_given_up = self.accepted.remove(rpc);
                self.unanswered = self.unanswered.saturating_sub(usize::from(is_given_up));
                self.tell_cancelled(rpc);
                self.woken.extend(self.part_waiters.call_is_over(rpc));
            }
            // A caller that is gone wants none.
            Event::PartsLeft { rpc, parts } if self.calls.is_in_progress(rpc) => {
                self.parts_left.keep(rpc, parts);
            }
            Event::PartReady(rpc) => self.woken.extend(self.part_waiters.part_is_ready(rpc)),
            Event::PartWindowRaised(rpc) => {
                self.woken.extend(self.part_waiters.window_is_raised(rpc));
            }
            Event::ClientRefused { path, reason } => {
                self.peer_log.refused(self.changed, path.remote, reason);
            }
            Event::Unblocked(_) => self.woken.append(&mut self.admission),
            _ => {}
        }
    }

    fn end_call(&mut self, rpc: RpcId, outcome: Result<Reply, CallError>) {
        // Before it is in its slot: a waiter that looks there just now takes it at once, without
        // the endpoint's lock.
        self.turn.tell();
        let told = self.calls.finish(rpc, outcome);
        self.woken.extend(self.part_waiters.call_is_over(rpc));
        self.note_told(told);
    }

    /// An outcome is in its slot, if there is one, and a waiter may wait for it.
    fn note_told(&mut self, told: Option<Option<Waker>>) {
        match told {
            Some(waker) => self.woken.extend(waker),
            None => self.untold(),
        }
    }

    fn keep_peer(&mut self, session: SessionIndex, identity: PeerIdentity) {
        if let Some(peer) = self.peer_of(session, identity) {
            PeerLog::began(session, &peer);
            self.peers.insert(session, peer);
            self.judge_newcomer(session);
        }
    }

    fn peer_of(&self, session: SessionIndex, identity: PeerIdentity) -> Option<Peer> {
        let facts = self.endpoint.session(session)?;
        Some(Peer::new(facts.path.remote, identity, facts.message_max))
    }

    fn end_session(&mut self, session: SessionIndex, end: &SessionEnd) {
        PeerLog::ended(session, self.peers.get(session).map(|peer| &**peer), end);
        self.peers.end(session, self.endpoint.arrived());
        self.peers.forget(self.departures_counted);
        self.tell_session_cancelled(session);
        // Callers that waited for ids of this session find out by asking again.
        self.woken.append(&mut self.admission);
    }
}

/// The slot that a call's outcome comes to.
pub(crate) type CallSlot = Arc<Completion<Result<Reply, CallError>>>;
/// The slot that a one-way message's outcome comes to.
pub(crate) type OneWaySlot = Arc<Completion<OneWayOutcome>>;

/// Those who are to be woken without the lock, since they will want it.
pub(crate) enum Woken {
    Nobody,
    One(Waker),
    Many(Vec<Waker>),
}

/// A full socket is tried again after this time.
pub(crate) const SEND_AGAIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
