// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One call or one-way message, from its beginning to its end: the state that a thread or a task
//! polls.
//!
//! 1. An operation of a client finds the live session, and connects if there is none.
//! 2. The message begins, after waiting while the peer's window is full. Its deadline counts from
//!    here on.
//! 3. The operation waits for the reply, or for the acknowledgement.
//!
//! Dropping an operation before its end gives the message up. Only beginning and giving up need the
//! endpoint's lock: the outcome comes to a slot of the message's own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{CallError, CallFailure, ConnectId, Execution, Refused, RpcId, Time};
use smt_wire::SessionIndex;

use crate::driver::{Driver, Guard};
use crate::endpoint_state::{CallSlot, EndpointState, OneWaySlot};
use crate::error::{Error, ErrorKind, Phase};

/// A message on its way, and the waker that waits for its end.
#[derive(Debug)]
pub(crate) struct Operation {
    guard: Arc<Guard>,
    peer: SocketAddr,
    /// `None`: the client's server, by whichever session is live.
    session: Option<SessionIndex>,
    attempt: Option<ConnectId>,
    body: Bytes,
    pub(crate) deadline: Option<Duration>,
    /// When it gives up, once it has been polled.
    due: Option<Time>,
    alarm: Option<u64>,
    is_one_way: bool,
    begun: Option<Begun>,
    /// Its end was told.
    has_ended: bool,
}

impl Operation {
    pub(crate) fn new(
        guard: Arc<Guard>,
        peer: SocketAddr,
        session: Option<SessionIndex>,
        body: Bytes,
        is_one_way: bool,
    ) -> Self {
        Self {
            guard,
            peer,
            session,
            attempt: None,
            body,
            deadline: None,
            due: None,
            alarm: None,
            is_one_way,
            begun: None,
            has_ended: false,
        }
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        self.guard.driver()
    }

    /// The reply; empty for a one-way message. Only a message that has not begun needs the
    /// endpoint's lock.
    ///
    /// # Panics
    /// After its end, as futures do: it would send the message again.
    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Result<Bytes, Error>> {
        if self.begun.is_some() {
            return self.poll_slot(waker);
        }
        let guard = Arc::clone(&self.guard);
        guard
            .driver()
            .change(|state, now| self.poll_in(state, now, waker))
    }

    /// The same with the endpoint's lock held.
    pub(crate) fn poll_in(
        &mut self,
        state: &mut EndpointState,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<Bytes, Error>> {
        assert!(!self.has_ended, "a message was polled after its end");
        if self.begun.is_none() {
            let begun = ready!(self.poll_in_time(state, now, waker));
            match begun {
                Ok(begun) => self.begun = Some(begun),
                Err(error) => {
                    self.has_ended = true;
                    return Poll::Ready(Err(error));
                }
            }
        }
        self.poll_slot(waker)
    }

    /// The outcome of a message that has begun.
    fn poll_slot(&mut self, waker: &Waker) -> Poll<Result<Bytes, Error>> {
        let end = match &self.begun {
            Some(Begun::Call(_, slot)) => {
                ready!(slot.poll(waker)).map_err(|error| Error::new(Phase::Call, self.peer, error))
            }
            Some(Begun::OneWay(_, slot)) => {
                Error::of_outcome(self.peer, ready!(slot.poll(waker))).map(|()| Bytes::new())
            }
            None => return Poll::Pending,
        };
        self.begun = None;
        self.has_ended = true;
        self.driver().taken();
        Poll::Ready(end)
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
            let session = match self.session {
                Some(session) => match state.why_shut_down() {
                    Some(why) => {
                        return Poll::Ready(Err(Error::new(Phase::Connect, self.peer, why)));
                    }
                    None => session,
                },
                None => ready!(state.poll_session(now, &mut self.attempt, waker))
                    .map_err(|error| Error::new(Phase::Connect, self.peer, error))?,
            };
            let message = (session, &self.body);
            let begun = if self.is_one_way {
                state
                    .poll_begin_one_way(now, message, deadline, waker)
                    .map_ok(|(rpc, slot)| Begun::OneWay(rpc, slot))
            } else {
                state
                    .poll_begin_call(now, message, deadline, waker)
                    .map_ok(|(rpc, slot)| Begun::Call(rpc, slot))
            };
            match ready!(begun) {
                Err(Refused::UsedUp) if self.session.is_none() => state.retire_session(session),
                begun => {
                    let phase = self.phase();
                    return Poll::Ready(
                        begun.map_err(|refused| Error::new(phase, self.peer, refused)),
                    );
                }
            }
        }
    }

    fn phase(&self) -> Phase {
        if self.is_one_way {
            Phase::Send
        } else {
            Phase::Call
        }
    }

    /// The deadline passed before anything was sent.
    fn too_late(&self) -> Error {
        let reason = CallFailure::DeadlineExceeded;
        let kind = if self.is_one_way {
            ErrorKind::NotDelivered(reason)
        } else {
            ErrorKind::Call(CallError {
                reason,
                execution: Execution::DidNotRun,
            })
        };
        Error::new(self.phase(), self.peer, kind)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let (Some(due), Some(_)) = (self.due, self.alarm) {
            let driver = self.guard.driver();
            driver.look(|state| state.clear_alarm(due, &mut self.alarm));
        }
        let Some(begun) = self.begun.take() else {
            return;
        };
        self.guard.driver().change(|state, now| match begun {
            Begun::Call(rpc, _) => state.forget_call(now, rpc),
            Begun::OneWay(rpc, _) => state.forget_one_way(now, rpc),
        });
    }
}

/// A message that has begun, and where its end comes to.
#[derive(Debug)]
enum Begun {
    Call(RpcId, CallSlot),
    OneWay(RpcId, OneWaySlot),
}
