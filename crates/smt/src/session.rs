// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A handle to one session: how a server calls its client back.

use std::sync::Arc;

use bytes::Bytes;
use smt_proto::{CloseCode, SessionFacts};
use smt_wire::SessionIndex;

use crate::driver::Guard;
use crate::message::Peer;
use crate::operation::Operation;

/// One session with a peer, cheap to clone. A session does not connect anew: once it has ended, its
/// calls fail.
#[derive(Clone, Debug)]
pub struct Session {
    guard: Arc<Guard>,
    index: SessionIndex,
    peer: Arc<Peer>,
}

impl Session {
    pub(crate) fn new(guard: Arc<Guard>, index: SessionIndex, peer: Arc<Peer>) -> Self {
        Self { guard, index, peer }
    }

    /// Calls the peer. On a blocking endpoint the call proceeds while a thread waits there, in
    /// `accept` or in a blocking call. Without such a thread the call is looked after every 20 to
    /// 250 ms only: use [`Self::call_blocking`] there. The body's memory must not change until the
    /// message has ended.
    #[cfg(feature = "tokio")]
    pub fn call(&self, body: impl Into<Bytes>) -> crate::Call {
        crate::Call::new(self.operation(body.into(), false))
    }

    /// Sends a one-way message; see [`Self::call`] on blocking endpoints.
    /// The body's memory must not change until the message has ended.
    #[cfg(feature = "tokio")]
    pub fn send(&self, body: impl Into<Bytes>) -> crate::Send {
        crate::Send::new(self.operation(body.into(), true))
    }

    /// Calls the peer; waits in this thread.
    /// The body's memory must not change until the message has ended.
    pub fn call_blocking(&self, body: impl Into<Bytes>) -> crate::blocking::Call {
        crate::blocking::Call::new(self.operation(body.into(), false))
    }

    /// Sends a one-way message; waits in this thread.
    /// The body's memory must not change until the message has ended.
    pub fn send_blocking(&self, body: impl Into<Bytes>) -> crate::blocking::Send {
        crate::blocking::Send::new(self.operation(body.into(), true))
    }

    /// Closes the session. Calls in progress fail, on both sides.
    pub fn close(&self) {
        self.guard
            .driver()
            .change(|state, _| state.endpoint.close(self.index, CloseCode::Done));
    }

    /// Returns the peer of the session.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Facts about the session; `None` when it has ended.
    #[must_use]
    pub fn facts(&self) -> Option<SessionFacts> {
        let driver = self.guard.driver();
        driver.look(|state| state.endpoint.session(self.index))
    }

    fn operation(&self, body: Bytes, is_one_way: bool) -> Operation {
        Operation::new(
            Arc::clone(&self.guard),
            self.peer.address,
            Some(self.index),
            body,
            is_one_way,
        )
    }
}
