// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server's identity and its trust in TLS clients, to be replaced while it runs.
//!
//! All shards of a server share it: handshakes that begin after a change go by it, at every shard.

use std::sync::Arc;

use smt_handshake::{
    ClientAuth, Identity, PeerJudge, ServerTls, TicketServer, TlsConfigError, TlsProvider,
};

use crate::distrust::Sharers;
use crate::sync::{Mutex, PoisonError};

/// The TLS side of a server, and what it was made of.
pub(crate) struct ServerCredentials {
    provider: Arc<TlsProvider>,
    tickets: Option<Arc<TicketServer>>,
    present: Mutex<ServerTls>,
    /// The endpoints that take clients by them.
    pub(crate) sharers: Sharers,
}

impl ServerCredentials {
    /// Those of the server that `provider` and `tickets` answer as.
    pub(crate) fn new(
        provider: Arc<TlsProvider>,
        tickets: Option<Arc<TicketServer>>,
        present: ServerTls,
    ) -> Arc<Self> {
        Arc::new(Self {
            provider,
            tickets,
            present: Mutex::new(present),
            sharers: Sharers::default(),
        })
    }

    pub(crate) fn set_identity(&self, identity: Identity) -> Result<(), TlsConfigError> {
        self.replace(|present| present.with_identity(identity))
    }

    pub(crate) fn set_client_auth(&self, client_auth: ClientAuth) -> Result<(), TlsConfigError> {
        // Tickets refuse all that TLS does, and public keys alone.
        if let Some(tickets) = &self.tickets {
            tickets.set_client_auth(client_auth.clone())?;
        }
        self.replace(|present| present.with_client_auth(client_auth))?;
        self.sharers.judge(self.provider.peer_judge());
        Ok(())
    }

    /// Judges what the peer of a live session has proved by the trust of today.
    pub(crate) fn judge(&self) -> PeerJudge {
        self.provider.peer_judge()
    }

    fn replace(&self, change: impl FnOnce(ServerTls) -> ServerTls) -> Result<(), TlsConfigError> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let next = change(present.clone());
        self.provider.set_server(next.clone())?;
        *present = next;
        Ok(())
    }
}
