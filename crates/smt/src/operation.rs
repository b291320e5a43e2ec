// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One call or one-way message, from its beginning to its end: the state that a thread or a task
//! polls.
//!
//! 1. An operation of a client finds the live session, and connects if there is none.
//! 2. The message begins, after waiting while the peer's window is full. Its deadline counts from
//!    here on.
//! 3. The operation waits for the reply, or for the acknowledgement.
//! 4. If it has failed and may be repeated (`retry`), it begins again after a pause, within the
//!    deadline.
//!
//! Dropping an operation before its end gives the message up. Only beginning and giving up need the
//! endpoint's lock: the outcome comes to a slot of the message's own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use smt_proto::{
    CallError, CallFailure, CallOptions, Execution, OutgoingMessage, PartMarks, Refused, RpcId,
    Time,
};
use smt_wire::SessionIndex;

use crate::driver::{Driver, Guard};
use crate::early_call::EarlyCall;
use crate::endpoint_state::{CallSlot, EndpointState, OneWaySlot};
use crate::error::{Error, ErrorKind, PeerPlace, Phase};
use crate::parts::{PartReader, PartSender, ReplyParts};
use crate::peer::Peer;
use crate::reply::Reply;
use crate::retry::{Attempts, Retry};
use crate::server_handle::ServerHandle;
use crate::servers::Caller;

/// A message on its way, and the waker that waits for its end.
#[derive(Debug)]
pub(crate) struct Operation {
    to: Destination,
    attempt: Option<u64>,
    pub(crate) message: OutgoingMessage,
    pub(crate) deadline: Option<Duration>,
    /// When it gives up, once it has been polled.
    due: Option<Time>,
    alarm: Option<u64>,
    is_one_way: bool,
    pub(crate) attempts: Attempts,
    /// Whether it is a call in parts, and which.
    pub(crate) parts: PartMarks,
    begun: Option<Begun>,
    /// Whether a connect may take it along, and the connect's end of it once one might.
    pub(crate) may_be_early: bool,
    early: Option<EarlyCall>,
    /// Whether the server has taken its request as early data.
    was_early: bool,
    /// Whether it waits for a session with its server.
    has_no_session: bool,
    /// Its end was told.
    has_ended: bool,
}

/// The choices of a client for messages that have none of their own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallDefaults {
    pub(crate) deadline: Option<Duration>,
    pub(crate) retry: Option<Retry>,
}

/// The peer that a message is for.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    /// A server, by whichever session with it is live.
    Server(Arc<ServerHandle>),
    /// The peer of a session.
    Session { guard: Arc<Guard>, index: SessionIndex, address: SocketAddr },
}

impl Destination {
    fn guard(&self) -> &Arc<Guard> {
        match self {
            Self::Server(server) => server.guard(),
            Self::Session { guard, .. } => guard,
        }
    }
}

impl Operation {
    pub(crate) fn new(to: Destination, message: OutgoingMessage, is_one_way: bool) -> Self {
        Self {
            to,
            attempt: None,
            message,
            deadline: None,
            due: None,
            alarm: None,
            is_one_way,
            attempts: Attempts::default(),
            parts: PartMarks::default(),
            begun: None,
            may_be_early: false,
            early: None,
            was_early: false,
            has_no_session: false,
            has_ended: false,
        }
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        self.to.guard().driver()
    }

    /// The reply; empty for a one-way message. Only a message that has not begun needs the
    /// endpoint's lock.
    ///
    /// # Panics
    /// After its end, as futures do: it would send the message again.
    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Result<Reply, Error>> {
        if self.begun.is_some() {
            let ended = match ready!(self.poll_end(waker)) {
                Ok(reply) => return Poll::Ready(Ok(reply)),
                Err(ended) => ended,
            };
            let peer = self.driver().look(|state| state.peer(ended.session));
            let error = self.error(ended, peer);
            if let Some(error) = self.fail(error, self.driver().now()) {
                return Poll::Ready(Err(error));
            }
        }
        let guard = Arc::clone(self.to.guard());
        guard.driver().change(|state, now| self.poll_in(state, now, waker))
    }

    /// The same with the endpoint's lock held.
    pub(crate) fn poll_in(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<Reply, Error>> {
        loop {
            let error = match ready!(self.poll_start_in(state, now, waker)) {
                Err(error) => error,
                Ok(()) => match ready!(self.poll_end(waker)) {
                    Ok(reply) => return Poll::Ready(Ok(reply)),
                    Err(ended) => {
                        let peer = state.peer(ended.session);
                        self.error(ended, peer)
                    }
                },
            };
            if let Some(error) = self.fail(error, now) {
                return Poll::Ready(Err(error));
            }
        }
    }

    /// An attempt has failed: gives the error, unless another attempt follows.
    fn fail(&mut self, error: Error, now: Time) -> Option<Error> {
        // A session that has ended stays so.
        if matches!(self.to, Destination::Session { .. }) {
            return Some(error);
        }
        let failed = self.attempts.fail(error, now, self.due);
        if failed.is_none() {
            self.attempt = None;
            self.was_early = false;
            self.has_ended = false;
        }
        failed
    }

    /// Begins with the endpoint's lock held, unless the message has begun.
    ///
    /// # Panics
    /// After its end.
    pub(crate) fn poll_start_in(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<(), Error>> {
        assert!(!self.has_ended, "a message was polled after its end");
        if self.begun.is_none() {
            match ready!(self.poll_in_time(state, now, waker)) {
                Ok(begun) => self.begun = Some(begun),
                Err(error) => {
                    self.has_ended = true;
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The parts of the reply to a call that has begun: they own the call.
    pub(crate) fn into_reply_parts(self) -> Option<ReplyParts> {
        match &self.begun {
            Some(Begun::Call(rpc, _)) => {
                let rpc = *rpc;
                Some(ReplyParts::new(self, rpc))
            }
            _ => None,
        }
    }

    /// The sender of the parts of a request that has begun.
    pub(crate) fn part_sender(&self, state: &EndpointState) -> Option<PartSender> {
        let Some(Begun::Call(rpc, slot)) = &self.begun else {
            return None;
        };
        let peer = PartReader { place: self.named(), part_max: state.part_max(rpc.session) };
        let guard = Arc::clone(self.to.guard());
        Some(PartSender::of_request(guard, *rpc, peer, Arc::clone(slot)))
    }

    /// The outcome of a message that has begun.
    fn poll_end(&mut self, waker: &Waker) -> Poll<Result<Reply, Ended>> {
        let (session, end) = match &self.begun {
            Some(Begun::Call(rpc, slot)) => {
                let reply = ready!(slot.poll(waker));
                let was_early = self.was_early;
                let reply = reply.map(|reply| Reply { was_early, ..reply });
                (rpc.session, reply.map_err(ErrorKind::from))
            }
            Some(Begun::OneWay(rpc, slot)) => {
                let outcome = ErrorKind::of_outcome(ready!(slot.poll(waker)));
                (rpc.session, outcome.map(|()| Reply::default()))
            }
            None => return Poll::Pending,
        };
        self.begun = None;
        self.has_ended = true;
        self.driver().taken();
        Poll::Ready(end.map_err(|kind| Ended { session, kind }))
    }

    /// The error of a message that has ended so, with the session's peer, if that is still known.
    fn error(&self, ended: Ended, peer: Option<Arc<Peer>>) -> Error {
        let place = peer.map_or_else(|| self.named(), |peer| peer.address.into());
        Error::new(self.phase(), place, ended.kind)
    }

    /// Begins, unless the deadline passes before it can.
    fn poll_in_time(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<Begun, Error>> {
        if self.due.is_none() {
            self.due = self.deadline.map(|deadline| now + deadline);
        }
        self.attempts.begin(now);
        if let Some(next) = self.attempts.next {
            if now < next {
                state.set_alarm(next, &mut self.alarm, waker);
                return Poll::Pending;
            }
            state.clear_alarm(next, &mut self.alarm);
            self.attempts.next = None;
        }
        let begun = match self.due {
            Some(due) if due <= now => Poll::Ready(Err(self.too_late())),
            _ => self.poll_begin(state, now, waker),
        };
        match self.due {
            Some(due) if begun.is_ready() => state.clear_alarm(due, &mut self.alarm),
            Some(due) => state.set_alarm(due, &mut self.alarm, waker),
            None => {}
        }
        begun
    }

    fn poll_begin(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<Begun, Error>> {
        // The deadline of the message is shorter by the time of waiting for the session or for ids.
        let deadline = self.due.map(|due| due.since(now));
        loop {
            let session = match &self.to {
                Destination::Session { index, address, .. } => match state.why_shut_down() {
                    Some(why) => {
                        return Poll::Ready(Err(Error::new(Phase::Connect, *address, why)));
                    }
                    None => *index,
                },
                Destination::Server(server) => {
                    if let Some(call) = self.early.as_ref().and_then(EarlyCall::take_begun) {
                        self.early = None;
                        self.was_early = call.was_early;
                        return Poll::Ready(Ok(Begun::Call(call.rpc, call.slot)));
                    }
                    if self.may_be_early
                        && self.parts == PartMarks::default()
                        && self.early.is_none()
                    {
                        self.early = Some(EarlyCall::new(self.message.clone(), self.due));
                    }
                    let caller = Caller {
                        server: server.id(),
                        attempt: &mut self.attempt,
                        is_urgent: false,
                        early: self.early.as_ref(),
                        waker,
                    };
                    self.has_no_session = true;
                    let polled = ready!(state.poll_session(now, caller));
                    self.has_no_session = false;
                    self.early = None;
                    polled.map_err(|failure| server.error(failure))?
                }
            };
            let message = (session, &self.message);
            let begun = if self.is_one_way {
                state
                    .poll_begin_one_way(now, message, deadline, waker)
                    .map_ok(|(rpc, slot)| Begun::OneWay(rpc, slot))
            } else {
                let parts = self.parts;
                let options = CallOptions { deadline, parts };
                state
                    .poll_begin_call(now, message, options, waker)
                    .map_ok(|(rpc, slot)| Begun::Call(rpc, slot))
            };
            match ready!(begun) {
                Err(Refused::UsedUp | Refused::Expired)
                    if matches!(self.to, Destination::Server(_)) =>
                {
                    state.retire_session(session);
                }
                begun => {
                    return Poll::Ready(begun.map_err(|refused| {
                        let kind = refused.into();
                        self.error(Ended { session, kind }, state.peer(session))
                    }));
                }
            }
        }
    }

    fn phase(&self) -> Phase {
        if self.is_one_way { Phase::Send } else { Phase::Call }
    }

    /// The deadline passed before anything was sent.
    fn too_late(&self) -> Error {
        let reason = CallFailure::DeadlineExceeded;
        let kind = if self.is_one_way {
            ErrorKind::NotDelivered(reason)
        } else {
            ErrorKind::Call(CallError { reason, execution: Execution::DidNotRun })
        };
        let mut error = Error::new(self.phase(), self.named(), kind);
        error.had_no_session = self.has_no_session;
        error
    }

    /// The peer as it was named.
    fn named(&self) -> PeerPlace {
        match &self.to {
            Destination::Server(server) => server.name(),
            Destination::Session { address, .. } => (*address).into(),
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        let due = self.attempts.next.or(self.due);
        if let (Some(due), Some(_)) = (due, self.alarm) {
            let driver = Arc::clone(self.driver());
            driver.look(|state| state.clear_alarm(due, &mut self.alarm));
        }
        // Without the lock the connect could begin the call in between.
        let early = self.early.take();
        if self.begun.is_none() && early.is_none() {
            return;
        }
        let begun = self.begun.take();
        self.driver().change(|state, now| {
            let early = early.and_then(|early| early.take_begun());
            let early = early.map(|call| Begun::Call(call.rpc, call.slot));
            let Some(begun) = begun.or(early) else { return };
            match begun {
                Begun::Call(rpc, _) => state.forget_call(now, rpc),
                Begun::OneWay(rpc, _) => state.forget_one_way(now, rpc),
            }
        });
    }
}

/// The part of a call that it has once it has begun.
///
/// # Panics
/// If the call has not begun.
pub(crate) fn begun<T>(part: Option<T>) -> T {
    part.expect("the call has begun")
}

/// The failure of a message that had begun in this session.
struct Ended {
    session: SessionIndex,
    kind: ErrorKind,
}

/// A message that has begun, and where its end comes to.
#[derive(Debug)]
enum Begun {
    Call(RpcId, CallSlot),
    OneWay(RpcId, OneWaySlot),
}
