// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server, for threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smt_handshake::{ClientAuth, Identity};
use smt_proto::CloseCode;

use super::accept::{accept, accept_request};
use super::close::close;
use crate::driver::Guard;
use crate::error::OpenError;
use crate::message::{Incoming, Request};
use crate::shards::Shards;
use crate::statistics::Statistics;

/// A server, cheap to clone.
#[derive(Clone, Debug)]
pub struct Server {
    guard: Arc<Guard>,
}

impl Server {
    pub(crate) fn new(guard: Arc<Guard>) -> Self {
        Self { guard }
    }

    /// The next message of a peer; `None` once the endpoint is closed. Requests of a client wait
    /// while its unacknowledged replies take more than a quarter of
    /// [`crate::TransportConfig::memory_max`], or more than the unacknowledged replies of all
    /// clients leave of that memory, if this is less. A client with at most 60,000 bytes of
    /// unacknowledged replies waits only while those of all clients together take five quarters of
    /// the memory, and a client without any while they take six quarters.
    #[must_use]
    pub fn accept(&self) -> Option<Incoming> {
        accept(&self.guard)
    }

    /// The same for requests alone, for servers that know no one-way messages: one that comes is
    /// dropped, and told of in the log.
    #[must_use]
    pub fn accept_request(&self) -> Option<Request> {
        accept_request(&self.guard)
    }

    /// The address that clients call.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.guard.driver().local_address()
    }

    /// Returns the counts since the endpoint was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.guard.driver().statistics()
    }

    /// Shows this identity to clients that connect from now on by TLS, at all shards of the server:
    /// a renewed certificate, for example. Handshakes in progress and sessions go on with what they
    /// began with.
    ///
    /// # Errors
    /// The server takes clients by registered keys alone.
    pub fn set_identity(&self, identity: Identity) -> Result<(), OpenError> {
        let credentials = self.guard.driver().credentials().server()?;
        Ok(credentials.set_identity(identity)?)
    }

    /// Asks TLS clients that connect from now on for other certificates, or for none, at all shards
    /// of the server. Live sessions of clients that would not be let in any more end, as
    /// [`Builder::distrusted`](crate::Builder::distrusted) says.
    ///
    /// # Errors
    /// The server takes clients by registered keys alone, or the trust cannot be used; then nothing
    /// has changed.
    pub fn set_client_auth(&self, client_auth: ClientAuth) -> Result<(), OpenError> {
        let credentials = self.guard.driver().credentials().server()?;
        Ok(credentials.set_client_auth(client_auth)?)
    }

    /// Refuses new requests, waits until those in progress are answered and their replies
    /// acknowledged, and until calls of this side have ended, but at most for `limit`. Then it
    /// closes all sessions and the socket, for all handles of this endpoint. When it returns, the
    /// address may be bound again (the address of several shards when the last of them has been
    /// closed). From then on `accept` returns `None`, and replies and calls fail with
    /// [`crate::ConnectError::ShutDown`]. A full socket is given 100 ms more to take what is left
    /// to be sent.
    pub fn close(&self, limit: Duration) {
        close(&[&self.guard], limit, CloseCode::ShuttingDown);
    }
}

impl Shards<Server> {
    /// Closes all shards together, see [`Server::close`]: each tells new clients that it takes none
    /// until the last of them has finished.
    pub fn close(&self, limit: Duration) {
        let guards: Vec<_> = self.iter().map(|shard| &shard.guard).collect();
        close(&guards, limit, CloseCode::ShuttingDown);
    }
}
