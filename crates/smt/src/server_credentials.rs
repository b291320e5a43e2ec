// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server's identity and its trust in TLS clients, to be replaced while it runs.
//!
//! All shards of a server share it: handshakes that begin after a change go by it, at every shard.

use std::sync::Arc;

use smt_handshake::{ClientAuth, Identity, ServerTls, TicketServer, TlsConfigError, TlsProvider};

use crate::sync::{Mutex, PoisonError};

/// The TLS side of a server, and what it was made of.
pub(crate) struct ServerCredentials {
    provider: Arc<TlsProvider>,
    tickets: Option<Arc<TicketServer>>,
    present: Mutex<ServerTls>,
}

impl ServerCredentials {
    /// Those of the server that `provider` and `tickets` answer as.
    pub(crate) fn new(
        provider: Arc<TlsProvider>,
        tickets: Option<Arc<TicketServer>>,
        present: ServerTls,
    ) -> Arc<Self> {
        Arc::new(Self { provider, tickets, present: Mutex::new(present) })
    }

    pub(crate) fn set_identity(&self, identity: Identity) -> Result<(), TlsConfigError> {
        self.replace(|present| present.with_identity(identity))
    }

    pub(crate) fn set_client_auth(&self, client_auth: ClientAuth) -> Result<(), TlsConfigError> {
        self.replace(|present| present.with_client_auth(client_auth.clone()))?;
        let tickets = self.tickets.as_ref();
        tickets.map_or(Ok(()), |tickets| tickets.set_client_auth(client_auth))
    }

    fn replace(&self, change: impl FnOnce(ServerTls) -> ServerTls) -> Result<(), TlsConfigError> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let next = change(present.clone());
        self.provider.set_server(next.clone())?;
        *present = next;
        Ok(())
    }
}
