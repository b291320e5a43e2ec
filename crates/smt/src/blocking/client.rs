// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client of a server, for threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smt_handshake::{Identity, Trust};
use smt_proto::{CloseCode, IntoMessage, OutgoingMessage};

use super::accept::{accept, accept_request};
use super::call::{CallBuilder, SendBuilder};
use super::close::{close, close_server};
use crate::error::{Error, OpenError};
use crate::message::{Incoming, Request};
use crate::operation::{CallDefaults, Destination, Operation};
use crate::server_handle::ServerHandle;
use crate::session::Session;
use crate::statistics::Statistics;

/// A client of one server, or of a pool, cheap to clone. It connects when it needs a session, and
/// anew when its session has ended. While the server is not to be reached, calls fail at once, and
/// attempts to reach it keep a distance of up to a second.
#[derive(Clone, Debug)]
pub struct Client {
    server: Arc<ServerHandle>,
    defaults: CallDefaults,
}

impl Client {
    pub(crate) fn new(server: Arc<ServerHandle>, defaults: CallDefaults) -> Self {
        Self { server, defaults }
    }

    /// Waits until a session with the server is live.
    ///
    /// # Errors
    /// No session came about; the error says why.
    pub fn connect(&self) -> Result<Session, Error> {
        let mut attempt = None;
        let connecting = self.server.poll_connect(&mut attempt);
        self.server.guard().driver().block_on(connecting)
    }

    /// Waits until a message would begin at once: a session is live, and the peer has room for
    /// another message. Calls wait for that too; this is for those who make messages only when they
    /// can leave. Nothing is reserved: another caller may come first.
    ///
    /// # Errors
    /// No session came about; the error says why.
    pub fn ready(&self) -> Result<(), Error> {
        let mut attempt = None;
        let ready = self.server.poll_ready(&mut attempt);
        self.server.guard().driver().block_on(ready)
    }

    /// Calls the server: `client.call(request).deadline(limit).wait()`.
    /// The memory of the body must not change until the message has ended.
    pub fn call(&self, message: impl IntoMessage) -> CallBuilder {
        CallBuilder::new(self.operation(message.into_message(), false))
    }

    /// Sends a one-way message: `client.send(message).wait()`.
    /// The memory of the body must not change until the message has ended.
    pub fn send(&self, message: impl IntoMessage) -> SendBuilder {
        SendBuilder::new(self.operation(message.into_message(), true))
    }

    /// The next message that a peer of this client's endpoint has started; `None` once it is
    /// closed. Until the first call of `accept`, 64 KiB of such messages wait here, and the server
    /// sends those beyond again until then.
    #[must_use]
    pub fn accept(&self) -> Option<Incoming> {
        accept(self.server.guard())
    }

    /// The same for requests alone: a one-way message that comes is dropped.
    #[must_use]
    pub fn accept_request(&self) -> Option<Request> {
        accept_request(self.server.guard())
    }

    /// Accepts servers by another trust from now on, revocation lists included, for all clients of
    /// the endpoint. Live sessions with servers that it does not accept end, as
    /// [`Builder::distrusted`](crate::Builder::distrusted) says. Tickets that were verified by the
    /// trust before are forgotten; give their [`crate::TicketVerifier`] the new one before.
    ///
    /// # Errors
    /// The endpoint calls no servers by TLS, or the trust cannot be used; then nothing has changed.
    pub fn set_trust(&self, trust: Trust) -> Result<(), OpenError> {
        Ok(self.server.guard().driver().credentials().client()?.set_trust(trust)?)
    }

    /// Shows this identity from now on to servers that ask for one, or none, for all clients of the
    /// endpoint. Sessions and handshakes in progress go on with what they began with.
    ///
    /// # Errors
    /// The endpoint calls no servers by TLS.
    pub fn set_client_identity(&self, identity: Option<Identity>) -> Result<(), OpenError> {
        Ok(self.server.guard().driver().credentials().client()?.set_identity(identity)?)
    }

    /// Closes the client, for all of its clones. Further calls fail with
    /// [`crate::ConnectError::ShutDown`]. Messages in progress, of both sides, have until `limit`
    /// to end; then the session closes. An endpoint that is for this client alone closes with it:
    /// new requests of the server are refused, `accept` returns `None`, and a full socket is given
    /// 100 ms more to take what is left to be sent.
    pub fn close(&self, limit: Duration) {
        if self.server.is_only() {
            close(&[self.server.guard()], limit, CloseCode::Done);
        } else {
            close_server(&self.server, limit);
        }
    }

    /// This side's address.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.server.guard().driver().local_address()
    }

    /// Returns the counts since the endpoint was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.server.guard().driver().statistics()
    }

    fn operation(&self, message: OutgoingMessage, is_one_way: bool) -> Operation {
        let to = Destination::Server(Arc::clone(&self.server));
        let mut operation = Operation::new(to, message, is_one_way);
        operation.deadline = self.defaults.deadline;
        operation.attempts.retry = self.defaults.retry;
        operation
    }
}
