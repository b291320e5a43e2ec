// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A handle to one session: how a server calls its client back.

use std::sync::Arc;

use bytes::Bytes;
use smt_proto::{CloseCode, SessionFacts};
use smt_wire::SessionIndex;

use crate::driver::Guard;
use crate::error::{Error, Phase};
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

    /// Fills `out` with a secret of the session for a use of the application's own, such as
    /// binding an attestation or a token to the session, or keys of another protocol (SPEC §7.4;
    /// TLS's exporter in RFC 8446 §7.5 does the same). Both ends get the same bytes if they give
    /// the same label, context and length. Nothing else gives them: no other session, label,
    /// context or length, and neither do the session's keys. Key updates do not change them.
    ///
    /// The label, 1 to 249 bytes, says what the secret is for, and is the program's own:
    /// `"EXPORTER-my-protocol token"`. The context may be any bytes, and `out` has 1 to 8,160.
    ///
    /// The bytes of a session of TLS depend on the whole handshake but the client's certificate,
    /// which [`Self::peer`] tells; those of a registered key depend on the key, the identities of
    /// both ends and their fresh randoms. A secret of 32 bytes may be registered in turn
    /// ([`crate::RegisteredKey::from_secret`]): endpoints of other processes then connect by it.
    ///
    /// # Errors
    /// The session has ended, label or length are out of bounds, or the session is of the plaintext
    /// measurement version, which has no secrets. `out` is as it was.
    pub fn export(&self, label: &str, context: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let driver = self.guard.driver();
        let exported = driver.look(|state| state.endpoint.export(self.index, label, context, out));
        exported.map_err(|why| Error::new(Phase::Export, self.peer.address, why))
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
