// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client's trust in TLS servers and its identity, to be replaced while it runs.
//!
//! All shards and all clients of an endpoint share it: sessions that begin after a change go by it.

use std::sync::Arc;

use smt_handshake::{
    ClientTls, Identity, PeerJudge, TicketClient, TlsConfigError, TlsProvider, Trust,
};

use crate::distrust::Sharers;
use crate::sync::{Mutex, PoisonError};

/// The TLS side of a client, and what it was made of.
pub(crate) struct ClientCredentials {
    provider: Arc<TlsProvider>,
    tickets: Option<Arc<TicketClient>>,
    present: Mutex<ClientTls>,
    /// The endpoints that call servers by them.
    pub(crate) sharers: Sharers,
}

impl ClientCredentials {
    /// Those of the client that `provider` and `tickets` call as.
    pub(crate) fn new(
        provider: Arc<TlsProvider>,
        tickets: Option<Arc<TicketClient>>,
        present: ClientTls,
    ) -> Arc<Self> {
        Arc::new(Self {
            provider,
            tickets,
            present: Mutex::new(present),
            sharers: Sharers::default(),
        })
    }

    pub(crate) fn set_trust(&self, trust: Trust) -> Result<(), TlsConfigError> {
        self.replace(|present| present.with_trust(trust))?;
        if let Some(tickets) = &self.tickets {
            // They were verified by the trust before.
            tickets.store().clear();
        }
        self.sharers.judge(self.provider.peer_judge());
        Ok(())
    }

    /// Judges what the peer of a live session has proved by the trust of today.
    pub(crate) fn judge(&self) -> PeerJudge {
        self.provider.peer_judge()
    }

    pub(crate) fn set_identity(&self, identity: Option<Identity>) -> Result<(), TlsConfigError> {
        self.replace(|present| match &identity {
            Some(identity) => present.with_identity(identity.clone()),
            None => present.without_identity(),
        })?;
        if let Some(tickets) = &self.tickets {
            tickets.set_identity(identity.as_ref());
        }
        Ok(())
    }

    fn replace(&self, change: impl FnOnce(ClientTls) -> ClientTls) -> Result<(), TlsConfigError> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let next = change(present.clone());
        self.provider.set_client(next.clone())?;
        *present = next;
        Ok(())
    }
}
