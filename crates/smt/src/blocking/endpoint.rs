// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint with many peers, for threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use smt_handshake::{ClientAuth, Identity, Trust};
use smt_proto::CloseCode;

use super::accept::{accept, accept_request};
use super::client::Client;
use super::close::close;
use crate::builder::Address;
use crate::client_choice::ClientChoice;
use crate::driver::Guard;
use crate::error::OpenError;
use crate::message::{Incoming, Request};
use crate::server_handle::ServerHandle;
use crate::statistics::Statistics;

/// One socket with any number of peers, cheap to clone: it connects to servers, and takes clients
/// too if it was opened as a server.
///
/// ```no_run
/// # use smt::{Identity, Trust};
/// # fn peer(identity: Identity, trust: Trust) -> Result<(), Box<dyn std::error::Error>> {
/// let client = smt::TlsClient::new(trust).identity(identity.clone());
/// let endpoint = smt::server(identity).with_client(client).open_blocking("[::]:17379")?;
/// let neighbour = endpoint.client("node-2")?;
/// let reply = neighbour.call("hello").wait()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    guard: Arc<Guard>,
    choice: Arc<ClientChoice>,
}

impl Endpoint {
    pub(crate) fn new(guard: Arc<Guard>, choice: ClientChoice) -> Self {
        let choice = Arc::new(choice);
        Self { guard, choice }
    }

    /// Returns a client of this server. Nothing is sent before it is used. The session with the
    /// server is the client's and its clones'; it is closed when the last of them has gone.
    ///
    /// # Errors
    /// The address can be that of no host.
    pub fn client(&self, server: impl Into<Address>) -> Result<Client, OpenError> {
        let choice = self.choice.server(server.into())?;
        let server = ServerHandle::new(Arc::clone(&self.guard), choice);
        Ok(Client::new(server, self.choice.defaults))
    }

    /// Returns a client of several servers that serve alike. Each message goes to one that is up:
    /// of two that are drawn, to the one with fewer messages in progress. A server whose session
    /// has ended, or that has not answered for 50 ms, gets no messages while another is up.
    /// Attempts to reach it go on beside, at a distance of up to a second, and no message waits for
    /// them; it gets messages again when a session is live. Sessions begin with the first message.
    ///
    /// Messages in progress with a server that is lost fail, and are not repeated elsewhere:
    /// [`Error::execution`](crate::Error::execution) tells whether that is safe.
    ///
    /// ```no_run
    /// # fn pool(trust: smt::Trust) -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = smt::client(trust).open_blocking("[::]:0")?;
    /// let pool = endpoint.pool(["db1", "db2", "db3"])?;
    /// let reply = pool.call("hello").wait()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An address can be that of no host, or there is none.
    pub fn pool<A: Into<Address>>(
        &self,
        servers: impl IntoIterator<Item = A>,
    ) -> Result<Client, OpenError> {
        let choices = self.choice.servers(servers)?;
        let servers = ServerHandle::pool(Arc::clone(&self.guard), choices);
        Ok(Client::new(servers, self.choice.defaults))
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

    /// The same for requests alone: a one-way message that comes is dropped, and told of in the
    /// log.
    #[must_use]
    pub fn accept_request(&self) -> Option<Request> {
        accept_request(&self.guard)
    }

    /// This side's address.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.guard.driver().local_address()
    }

    /// Returns the counts since the endpoint was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.guard.driver().statistics()
    }

    /// Shows this identity to clients that connect from now on by TLS: a renewed certificate, for
    /// example. Handshakes in progress and sessions go on with what they began with.
    ///
    /// # Errors
    /// The endpoint takes no clients by TLS.
    pub fn set_identity(&self, identity: Identity) -> Result<(), OpenError> {
        let credentials = self.guard.driver().credentials().server()?;
        Ok(credentials.set_identity(identity)?)
    }

    /// Asks TLS clients that connect from now on for other certificates, or for none. Live sessions
    /// of clients that would not be let in any more end, as
    /// [`Builder::distrusted`](crate::Builder::distrusted) says.
    ///
    /// # Errors
    /// The endpoint takes no clients by TLS, or the trust cannot be used; then nothing
    /// has changed.
    pub fn set_client_auth(&self, client_auth: ClientAuth) -> Result<(), OpenError> {
        let credentials = self.guard.driver().credentials().server()?;
        Ok(credentials.set_client_auth(client_auth)?)
    }

    /// Accepts servers by another trust from now on, revocation lists included. Live sessions with
    /// servers that it does not accept end, as
    /// [`Builder::distrusted`](crate::Builder::distrusted) says. Tickets that were verified by the
    /// trust before are forgotten; give their [`crate::TicketVerifier`] the new one before.
    ///
    /// # Errors
    /// The endpoint calls no servers by TLS, or the trust cannot be used; then nothing has changed.
    pub fn set_trust(&self, trust: Trust) -> Result<(), OpenError> {
        Ok(self.guard.driver().credentials().client()?.set_trust(trust)?)
    }

    /// Shows this identity from now on to servers that ask for one, or none.
    /// Sessions and handshakes in progress go on with what they began with.
    ///
    /// # Errors
    /// The endpoint calls no servers by TLS.
    pub fn set_client_identity(&self, identity: Option<Identity>) -> Result<(), OpenError> {
        Ok(self.guard.driver().credentials().client()?.set_identity(identity)?)
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
