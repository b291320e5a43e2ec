// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One call or one-way message, from its beginning to its end: the state that a thread or a task polls.
//!
//! 1. A client's task finds the live session, and connects if there is none.
//! 2. It begins, waiting while the peer's window is full.
//! 3. It waits for the reply, or for the acknowledgement.
//!
//! Dropping it before its end gives the message up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use smt_proto::{ConnectId, Refused, RpcId, Time};
use smt_wire::SessionIndex;

use crate::core::Core;
use crate::error::{Error, Phase};
use crate::hub::Guard;

/// A message on its way, and whoever waits for its end.
#[derive(Debug)]
pub(crate) struct Task {
    guard: Arc<Guard>,
    peer: SocketAddr,
    /// `None`: the client's server, by whichever session is live.
    session: Option<SessionIndex>,
    attempt: Option<ConnectId>,
    body: Bytes,
    pub(crate) deadline: Option<Duration>,
    began: Option<Time>,
    is_one_way: bool,
    rpc: Option<RpcId>,
}

impl Task {
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
            began: None,
            is_one_way,
            rpc: None,
        }
    }

    pub(crate) fn guard(&self) -> Arc<Guard> {
        Arc::clone(&self.guard)
    }

    /// The reply; empty for a one-way message.
    pub(crate) fn poll(
        &mut self,
        core: &mut Core,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<Bytes, Error>> {
        let rpc = match self.rpc {
            Some(rpc) => rpc,
            None => ready!(self.poll_begin(core, now, waker))?,
        };
        self.rpc = Some(rpc);
        if self.is_one_way {
            let outcome = ready!(core.poll_one_way(rpc, waker));
            self.rpc = None;
            return Poll::Ready(Error::of_outcome(self.peer, outcome).map(|()| Bytes::new()));
        }
        let reply = ready!(core.poll_call(rpc, waker));
        self.rpc = None;
        Poll::Ready(reply.map_err(|error| Error::new(Phase::Call, self.peer, error)))
    }

    fn poll_begin(
        &mut self,
        core: &mut Core,
        now: Time,
        waker: &Waker,
    ) -> Poll<Result<RpcId, Error>> {
        let phase = if self.is_one_way {
            Phase::Send
        } else {
            Phase::Call
        };
        let began = *self.began.get_or_insert(now);
        loop {
            let session = match self.session {
                Some(session) => session,
                None => ready!(core.poll_session(now, &mut self.attempt, waker))
                    .map_err(|error| Error::new(Phase::Connect, self.peer, error))?,
            };
            // What waiting for the session or for ids has taken is not given twice.
            let deadline = self
                .deadline
                .map(|deadline| deadline.saturating_sub(now.since(began)));
            let message = (session, &self.body);
            let begun = if self.is_one_way {
                core.poll_begin_one_way(now, message, deadline, waker)
            } else {
                core.poll_begin_call(now, message, deadline, waker)
            };
            match ready!(begun) {
                Err(Refused::UsedUp) if self.session.is_none() => core.retire_session(session),
                begun => {
                    return Poll::Ready(
                        begun.map_err(|refused| Error::new(phase, self.peer, refused)),
                    );
                }
            }
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let Some(rpc) = self.rpc else { return };
        self.guard.hub().change(|core, now| {
            if self.is_one_way {
                core.forget_one_way(now, rpc);
            } else {
                core.forget_call(now, rpc);
            }
        });
    }
}
