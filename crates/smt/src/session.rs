// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A handle to one session: how a server calls its client back.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smt_handshake::{EXPORTED_LEN, HANDOVER_LABEL, Handover, HandoverError, HandoverTerms};
use smt_proto::{CloseCode, IntoMessage, OutgoingMessage, SessionFacts};
use smt_record::Side;
use smt_wire::SessionIndex;
use zeroize::Zeroizing;

use crate::driver::Guard;
use crate::error::{Error, Phase};
use crate::operation::{Destination, Operation};
use crate::peer::Peer;
use crate::server_handle::ServerHandle;

/// One session with a peer, cheap to clone. A session does not connect anew: once it has ended, its
/// calls fail.
#[derive(Clone, Debug)]
pub struct Session {
    guard: Arc<Guard>,
    index: SessionIndex,
    peer: Arc<Peer>,
    /// The server of this session, which is used as long as the session is.
    _server: Option<Arc<ServerHandle>>,
}

impl Session {
    pub(crate) fn new(guard: Arc<Guard>, index: SessionIndex, peer: Arc<Peer>) -> Self {
        Self { guard, index, peer, _server: None }
    }

    /// The session with a server.
    pub(crate) fn with(server: &Arc<ServerHandle>, index: SessionIndex, peer: Arc<Peer>) -> Self {
        Self { guard: Arc::clone(server.guard()), index, peer, _server: Some(Arc::clone(server)) }
    }

    /// Calls the peer. On a blocking endpoint the call proceeds while a thread waits there, in
    /// `accept` or in a blocking call. Without such a thread the call is looked after every 20 to
    /// 250 ms only: use [`Self::call_blocking`] there. The memory of the body must not change until
    /// the message has ended.
    #[cfg(feature = "async")]
    pub fn call(&self, message: impl IntoMessage) -> crate::CallBuilder {
        crate::CallBuilder::new(self.operation(message.into_message(), false))
    }

    /// Sends a one-way message; see [`Self::call`] on blocking endpoints.
    /// The memory of the body must not change until the message has ended.
    #[cfg(feature = "async")]
    pub fn send(&self, message: impl IntoMessage) -> crate::SendBuilder {
        crate::SendBuilder::new(self.operation(message.into_message(), true))
    }

    /// Calls the peer; waits in this thread.
    /// The memory of the body must not change until the message has ended.
    pub fn call_blocking(&self, message: impl IntoMessage) -> crate::blocking::CallBuilder {
        crate::blocking::CallBuilder::new(self.operation(message.into_message(), false))
    }

    /// Sends a one-way message; waits in this thread.
    /// The memory of the body must not change until the message has ended.
    pub fn send_blocking(&self, message: impl IntoMessage) -> crate::blocking::SendBuilder {
        crate::blocking::SendBuilder::new(self.operation(message.into_message(), true))
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

    /// Makes of this session another one for two other processes: the value for the adopter of
    /// `side`, which gets it by a socket of its own host alone. The process at the other end does
    /// the same with the same terms for the other side; each pair of terms gives one session.
    /// `peer_name` is the name that this session's peer has proved. The new session ends when this
    /// one would: when the peer's certificate does, also one that an earlier handover was by. End
    /// this session soon after: its exporter secret, with the terms, is the value (SPEC §7.5).
    ///
    /// # Errors
    /// The session has ended ([`HandoverError::NoSecret`]), or the name cannot be shown.
    pub fn hand_over(
        &self,
        side: Side,
        terms: &HandoverTerms,
        peer_name: &str,
    ) -> Result<Handover, HandoverError> {
        let mut exported = Zeroizing::new([0; EXPORTED_LEN]);
        let done = self.export(HANDOVER_LABEL, &terms.context(), &mut exported[..]);
        done.map_err(|why| HandoverError::NoSecret(why.to_string()))?;
        Handover::new(side, *terms, peer_name, self.peer.expires, &exported)
    }

    /// Closes the session. Calls in progress fail, on both sides.
    pub fn close(&self) {
        self.guard.driver().change(|state, _| state.endpoint.close(self.index, CloseCode::Done));
    }

    /// Returns the number of the session: the index by which this side knows it, which no other
    /// session of this endpoint ever has (SPEC §6.3).
    #[must_use]
    pub fn id(&self) -> u64 {
        self.index.0
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

    fn operation(&self, message: OutgoingMessage, is_one_way: bool) -> Operation {
        let to = Destination::Session {
            guard: Arc::clone(&self.guard),
            index: self.index,
            address: self.peer.address,
        };
        Operation::new(to, message, is_one_way)
    }
}

/// Two handles are equal if they are of the same session of the same endpoint.
impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.guard, &other.guard)
    }
}

impl Eq for Session {}

impl Hash for Session {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}
