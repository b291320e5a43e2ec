// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint in a foreign event loop: a descriptor to poll, and events to drain.
//!
//! 1. Add [`Endpoint::as_fd`] to epoll (or poll, select, a Redis event loop) as readable,
//!    level-triggered.
//! 2. When it is, call [`Endpoint::process`]; it never blocks, and serves timers too.
//! 3. Drain [`Endpoint::next_event`]. Commands ([`Endpoint::call`], [`Endpoint::reply`] …) may be
//!    given at any time; commands that are given while draining leave together, when `next_event`
//!    has returned `None`.
//!
//! No other thread drives the endpoint: an owner who computes for two seconds while a peer waits is
//! taken for dead (SPEC §9.9).

mod batch_window;
mod trust;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use smt_carrier::{Carrier, Path, Wait};
use smt_io::{PollDescriptor, Process, UdpCarrier};
use smt_proto::{CloseCode, ConnectError, Failure, OutgoingMessage, Refused, Time};
use smt_wire::AbortCode;

use crate::builder::bound_socket::BoundSocket;
use crate::builder::endpoint_parts::EndpointParts;
use crate::clock::{Clock, WallTimeTold};
use crate::credentials::Credentials;
use crate::endpoint_state::{SEND_AGAIN, SENT_WITHIN};
use crate::error::OpenError;
use crate::pump::Pump;
use crate::state_lock::StateLock;

use batch_window::BatchWindow;

use smt_proto::ConnectRequest;
pub use smt_proto::key_exchange::{HandshakeFailure, PeerIdentity};
pub use smt_proto::{ConnectId, EarlyCall, Event, RpcId};
pub use smt_wire::{MessageId, SessionIndex};

/// An endpoint that its owner drives.
pub struct Endpoint {
    endpoint: smt_proto::Endpoint,
    carrier: Arc<dyn Carrier>,
    /// The carrier, if it is a socket.
    udp: Option<Arc<UdpCarrier>>,
    descriptor: PollDescriptor,
    clock: Clock,
    pump: Pump,
    /// The time to which the descriptor's timer is set: when something is due, or earlier. Setting
    /// the timer is a system call, and the time that is due changes with every message; a
    /// superfluous turn every now and then costs less.
    timer: Option<Time>,
    /// Since when commands are corked: while the owner drains events.
    corked_since: Option<Time>,
    batch_window: BatchWindow,
    /// Whether a message is corked. The timer is set, so that no message stays if the owner does
    /// not drain events.
    has_corked: bool,
    /// The address at which the endpoint was opened.
    process: Process,
    wall_time_told: WallTimeTold,
    /// Those that may be replaced.
    credentials: Credentials,
    /// Keeps other endpoints from the state file.
    _state_lock: Option<Arc<StateLock>>,
}

impl Endpoint {
    pub(crate) fn new(
        endpoint_parts: &EndpointParts,
        bound_socket: BoundSocket,
    ) -> Result<Self, OpenError> {
        let BoundSocket { shard, carrier, udp, receive_buffer_bytes } = bound_socket;
        let descriptor = descriptor_of(&*carrier)
            .map_err(|reason| OpenError::System { what: "making a descriptor to poll", reason })?;
        let opened = endpoint_parts.endpoint(shard, &*carrier, receive_buffer_bytes);
        Ok(Self {
            endpoint: opened.endpoint,
            pump: Pump::new(Arc::clone(&carrier)),
            carrier,
            udp,
            descriptor,
            clock: endpoint_parts.clock,
            timer: None,
            corked_since: None,
            batch_window: BatchWindow::default(),
            has_corked: false,
            process: Process::this(),
            wall_time_told: opened.wall_time_told,
            credentials: endpoint_parts.credentials.clone(),
            _state_lock: endpoint_parts.state_lock.clone(),
        })
    }

    /// Begins a session with the server at `remote`, which must prove that it is `server_name`. An
    /// event follows.
    ///
    /// # Errors
    /// `server_name` is not a valid DNS name or IP address, or there are as many sessions as there
    /// may be.
    pub fn connect(
        &mut self,
        remote: SocketAddr,
        server_name: &str,
        deadline: Duration,
    ) -> Result<ConnectId, ConnectError> {
        let now = self.clock.now();
        self.wall_time_told.tell(now, &mut self.endpoint);
        let connect = self.endpoint.connect(now, Path::to(remote), server_name, deadline)?;
        self.settle(now);
        Ok(connect)
    }

    /// The same with calls that begin with the session: behind [`Event::Connected`] comes
    /// [`Event::EarlyCalls`], which has their names. The first of them leave as early data if the
    /// server's ticket permits it (SPEC §6.8): their requests may run twice.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_with_calls(
        &mut self,
        remote: SocketAddr,
        server_name: &str,
        deadline: Duration,
        calls: Vec<EarlyCall>,
    ) -> Result<ConnectId, ConnectError> {
        let now = self.clock.now();
        self.wall_time_told.tell(now, &mut self.endpoint);
        let wanted = ConnectRequest { path: Path::to(remote), server_name, deadline, calls };
        let connect = self.endpoint.connect_with_calls(now, wanted)?;
        self.settle(now);
        Ok(connect)
    }

    /// Receives all datagrams that have come, fires the timers that are due, and sends. Never
    /// blocks.
    ///
    /// # Errors
    /// The descriptor's timer could not be set.
    pub fn process(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        self.wall_time_told.tell(now, &mut self.endpoint);
        let batches = match self.process.is_this() {
            true => BATCHES_PER_TURN,
            // The socket is the original's.
            false => 0,
        };
        for _ in 0..batches {
            // A carrier that fails would mostly fail again.
            let outcome = self.pump.receive(&mut self.endpoint, || now, Wait::Never);
            if !outcome.unwrap_or(false) {
                break;
            }
        }
        self.endpoint.handle_timeout(now);
        self.has_corked = false;
        let before = self.clock.now();
        self.send_all(now);
        self.cork_from_here(before);
        self.set_timer(now)
    }

    /// Corks commands from here on, as while events are drained: for an owner who has several to
    /// give. The commands leave with [`Self::flush`], or with the next [`Self::process`], for which
    /// the descriptor becomes readable within a millisecond.
    pub fn cork(&mut self) {
        self.corked_since = Some(self.clock.now());
    }

    /// Sends the corked messages.
    pub fn flush(&mut self) {
        self.corked_since = None;
        if std::mem::take(&mut self.has_corked) {
            self.settle(self.clock.now());
        }
    }

    /// Returns the next event. Requests of a peer that has many replies to acknowledge are told of
    /// once it has acknowledged them.
    pub fn next_event(&mut self) -> Option<Event> {
        let event = self.endpoint.poll_event();
        if event.is_none() {
            self.flush();
        }
        event
    }

    /// Sends a request. An event follows.
    /// The memory of the body must not change until the message has ended.
    ///
    /// # Errors
    /// See [`Refused`]; nothing was sent.
    pub fn call(
        &mut self,
        session: SessionIndex,
        message: impl Into<OutgoingMessage>,
        deadline: Option<Duration>,
    ) -> Result<RpcId, Refused> {
        let now = self.clock.now();
        let outcome = self.endpoint.call(now, session, message, deadline);
        self.settle(now);
        outcome
    }

    /// Sends a one-way message. An event follows.
    /// The memory of the body must not change until the message has ended.
    ///
    /// # Errors
    /// See [`Refused`]; nothing was sent.
    pub fn send(
        &mut self,
        session: SessionIndex,
        message: impl Into<OutgoingMessage>,
    ) -> Result<RpcId, Refused> {
        let now = self.clock.now();
        let outcome = self.endpoint.send_one_way(now, session, message, None);
        self.settle(now);
        outcome
    }

    /// Replies to a request.
    /// The memory of the body must not change until the message has ended.
    ///
    /// # Errors
    /// See [`Refused`]. After [`Refused::TooLarge`] its caller learns that the reply is too large
    /// for it.
    pub fn reply(
        &mut self,
        rpc: RpcId,
        message: impl Into<OutgoingMessage>,
    ) -> Result<(), Refused> {
        let now = self.clock.now();
        let outcome = self.endpoint.reply(now, rpc, message);
        self.settle(now);
        outcome
    }

    /// Ends a request without a reply: its caller learns that it may have run.
    ///
    /// # Errors
    /// It was answered, or its caller has given up.
    pub fn drop_request(&mut self, rpc: RpcId) -> Result<(), Refused> {
        let now = self.clock.now();
        let outcome = self.endpoint.abort(now, rpc, AbortCode::Dropped);
        self.settle(now);
        outcome
    }

    /// Answers that a request has failed or was refused: its caller learns code and text.
    ///
    /// # Errors
    /// It was answered, or its caller has given up.
    pub fn fail(&mut self, rpc: RpcId, failure: Failure) -> Result<(), Refused> {
        let now = self.clock.now();
        let outcome = self.endpoint.fail(now, rpc, failure);
        self.settle(now);
        outcome
    }

    /// Gives a call up. Returns whether it was in progress.
    pub fn cancel(&mut self, rpc: RpcId) -> bool {
        let now = self.clock.now();
        let was_live = self.endpoint.cancel(now, rpc);
        self.settle(now);
        was_live
    }

    /// Fills `out` with a secret of the session for a use of the owner's own; see
    /// [`crate::Session::export`].
    ///
    /// # Errors
    /// See [`Refused`]; `out` is as it was.
    pub fn export(
        &self,
        session: SessionIndex,
        label: &str,
        context: &[u8],
        out: &mut [u8],
    ) -> Result<(), Refused> {
        self.endpoint.export(session, label, context, out)
    }

    /// Closes a session.
    pub fn close(&mut self, session: SessionIndex) {
        self.close_as(session, CloseCode::Done);
    }

    /// This side's address.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.carrier.local_address()
    }

    /// Returns the counts since the endpoint was opened.
    #[must_use]
    pub fn statistics(&self) -> crate::Statistics {
        crate::Statistics {
            protocol: self.endpoint.statistics(),
            socket: self.udp.as_ref().map(|udp| udp.statistics()),
            sessions: self.endpoint.sessions_len(),
            memory: self.endpoint.memory(),
            messages_dropped: 0,
            messages_refused: 0,
            clients_refused: 0,
            sessions_refused: 0,
            sessions_distrusted: 0,
        }
    }

    fn close_as(&mut self, session: SessionIndex, code: CloseCode) {
        let now = self.clock.now();
        self.endpoint.close(session, code);
        self.settle(now);
    }

    /// Sends the messages that a command has made ready, or corks them.
    fn settle(&mut self, now: Time) {
        if let Some(since) = self.corked_since {
            if now.since(since) < self.batch_window.time() {
                let is_first = !std::mem::replace(&mut self.has_corked, true);
                if is_first {
                    self.set_timer_or_warn(now);
                }
                return;
            }
            self.has_corked = false;
            self.send_all(now);
            self.cork_from_here(now);
        } else {
            self.send_all(now);
        }
        self.set_timer_or_warn(now);
    }

    /// Corks commands again, after the earlier ones were sent, which took from `before` until now.
    fn cork_from_here(&mut self, before: Time) {
        let now = self.clock.now();
        self.corked_since = Some(now);
        self.batch_window = BatchWindow::after(now.since(before));
    }

    /// A timer that cannot be set is found out by the next `process`.
    fn set_timer_or_warn(&mut self, now: Time) {
        if let Err(error) = self.set_timer(now) {
            tracing::warn!(%error, "the timer could not be set");
        }
    }

    fn send_all(&mut self, now: Time) {
        if !self.process.is_this() {
            self.pump.forget_unsent();
            self.endpoint.leave_to_original();
            return;
        }
        self.pump.flush(&mut self.endpoint, now);
    }

    /// Sends all, and waits until `end` at most for the socket to have room.
    fn send_until(&mut self, end: Time) {
        loop {
            let now = self.clock.now();
            self.send_all(now);
            if !self.pump.has_unsent() || now >= end {
                return;
            }
            std::thread::sleep(SEND_AGAIN);
        }
    }

    fn set_timer(&mut self, now: Time) -> io::Result<()> {
        if !self.process.is_this() {
            // The timer is the original's too.
            return Ok(());
        }
        let due = self.pump.next_wake(&self.endpoint, now);
        let corked = self.has_corked.then(|| now + CORKED_MAX);
        // A command outside of a drain may leave events: of a call that was cancelled, or of the
        // calls of a session that was closed.
        let is_drained = self.corked_since.is_none();
        let told = (is_drained && self.endpoint.has_events()).then_some(now);
        let due = [due, corked, told].into_iter().flatten().min();
        let is_early_enough = match (self.timer, due) {
            (Some(timer), Some(due)) => timer > now && timer <= due,
            (timer, due) => timer == due,
        };
        if is_early_enough {
            return Ok(());
        }
        // This also makes the descriptor unreadable if the timer has gone off.
        self.descriptor.set_timeout(due.map(|due| due.since(now)))?;
        self.timer = due;
        Ok(())
    }
}

fn descriptor_of(carrier: &dyn Carrier) -> io::Result<PollDescriptor> {
    let mut descriptors = carrier.readiness().descriptors();
    // A carrier that has descriptors may have none left.
    let first = descriptors.next().ok_or(io::ErrorKind::Unsupported)?;
    let descriptor = PollDescriptor::new(first)?;
    for other in descriptors {
        descriptor.watch(other)?;
    }
    Ok(descriptor)
}

/// Dropping the endpoint sends the corked messages, as far as they may leave, and then closes all
/// sessions. A socket that is full is waited for, 100 ms at most.
impl Drop for Endpoint {
    fn drop(&mut self) {
        let end = self.clock.now() + SENT_WITHIN;
        self.send_until(end);
        self.endpoint.close_all(CloseCode::Done);
        self.send_until(end);
    }
}

/// Readable when [`Endpoint::process`] has something to do.
impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("local_address", &self.local_address())
            .finish_non_exhaustive()
    }
}

/// Corked messages leave after this time even if the owner does not drain events.
const CORKED_MAX: Duration = Duration::from_millis(1);
/// Batches received in one turn: the rest keeps the descriptor readable.
const BATCHES_PER_TURN: usize = 64;
