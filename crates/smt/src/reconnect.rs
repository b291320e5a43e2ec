// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server that a client is for: the live session with it, or the way to the next one.
//!
//! A client connects anew when its session has ended. All callers that wait share one attempt, and
//! all of them learn how it ended.

use std::task::Waker;
use std::time::Duration;

use smt_carrier::Path;
use smt_proto::{ConnectError, ConnectId, Endpoint, Time};
use smt_wire::SessionIndex;

/// A client's server.
#[derive(Debug)]
pub(crate) struct Reconnect {
    path: Path,
    server_name: String,
    deadline: Duration,
    /// The deadline of the first attempt, if the server may have other addresses that are to be
    /// tried too.
    first_deadline: Option<Duration>,
    session: Option<SessionIndex>,
    connect: Option<ConnectId>,
    /// How the last attempt that failed did.
    failure: Option<(ConnectId, ConnectError)>,
    waiting: Vec<Waker>,
}

impl Reconnect {
    pub(crate) fn new(
        path: Path,
        server_name: String,
        (first_deadline, deadline): (Duration, Duration),
    ) -> Self {
        Self {
            path,
            server_name,
            deadline,
            first_deadline: Some(first_deadline),
            session: None,
            connect: None,
            failure: None,
            waiting: Vec::new(),
        }
    }

    /// The live session; `None` while the caller must wait. `attempt` is what this caller waits
    /// for.
    pub(crate) fn poll_session(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        attempt: &mut Option<ConnectId>,
        waker: &Waker,
    ) -> Option<Result<SessionIndex, ConnectError>> {
        if let Some(session) = self
            .session
            .filter(|session| endpoint.session(*session).is_some())
        {
            return Some(Ok(session));
        }
        if let Some((id, error)) = &self.failure
            && *attempt == Some(*id)
        {
            return Some(Err(error.clone()));
        }
        if self.connect.is_none() {
            let deadline = self.first_deadline.take().unwrap_or(self.deadline);
            match endpoint.connect(now, self.path, &self.server_name, deadline) {
                Ok(id) => self.connect = Some(id),
                Err(error) => return Some(Err(error)),
            }
        }
        *attempt = self.connect;
        if self.waiting.iter().all(|other| !other.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
        None
    }

    /// This session has no more ids: calls in progress end in it, new ones need another.
    pub(crate) fn retire(&mut self, session: SessionIndex) {
        if self.session == Some(session) {
            self.session = None;
        }
    }

    /// Takes in that an attempt has ended. Returns the wakers that wait for that.
    pub(crate) fn finish(
        &mut self,
        connect: ConnectId,
        result: Result<SessionIndex, ConnectError>,
    ) -> Vec<Waker> {
        if self.connect != Some(connect) {
            return Vec::new();
        }
        self.connect = None;
        match result {
            Ok(session) => self.session = Some(session),
            Err(error) => self.failure = Some((connect, error)),
        }
        self.take_waiting()
    }

    /// The wakers of those who wait, and are to look again.
    pub(crate) fn take_waiting(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting)
    }
}
