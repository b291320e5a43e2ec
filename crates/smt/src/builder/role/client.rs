// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The roles that connect to servers.

use std::sync::Arc;

use smt_handshake::limits::CLIENT_SESSIONS_MEMORY;
use smt_handshake::{
    Algorithms, ClientTls, Group, Identity, RegisteredKey, RegisteredProvider, SpiffeId,
    TicketClient, TicketStore, TlsProvider, Trust,
};
use smt_record::Suite;

use super::ClientRole;
use super::sealed::{Sealed, WithAlgorithms};
use crate::client_credentials::ClientCredentials;
use crate::credentials::{Credentials, KeyExchanges};
use crate::error::OpenError;

/// A client by TLS 1.3: whom it believes, and who it is if a server asks.
#[derive(Clone, Debug)]
#[must_use = "a role opens nothing by itself"]
pub struct TlsClient {
    trust: Trust,
    identity: Option<Identity>,
    server_name: Option<String>,
    algorithms: Algorithms,
    tickets: Option<TicketStore>,
    forward_secrecy: bool,
    sessions_memory: usize,
}

impl TlsClient {
    /// A client that accepts the servers that `trust` says.
    pub fn new(trust: Trust) -> Self {
        Self {
            trust,
            identity: None,
            server_name: None,
            algorithms: Algorithms::default(),
            tickets: None,
            forward_secrecy: true,
            sessions_memory: CLIENT_SESSIONS_MEMORY,
        }
    }

    /// Begins sessions by the tickets of this store, where it has one of the server (SPEC §6.7).
    pub fn tickets(mut self, store: TicketStore) -> Self {
        self.tickets = Some(store);
        self
    }

    /// Whether sessions by ticket have forward secrecy; by default they have.
    pub fn forward_secrecy(mut self, has_forward_secrecy: bool) -> Self {
        self.forward_secrecy = has_forward_secrecy;
        self
    }

    /// Sets in how many bytes sessions by TLS are remembered, to resume them within an hour (SPEC
    /// §6.10). By default 1 MiB; 0 resumes nothing.
    pub fn sessions_memory(mut self, bytes: usize) -> Self {
        self.sessions_memory = bytes;
        self
    }

    /// Sets the certificate chain and key that this side shows to servers that ask for one.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Accepts only servers whose certificate proves this SPIFFE ID, whatever other names it has:
    /// in the place of [`Self::server_name`]. Tickets are not used then.
    pub fn server_id(self, id: &SpiffeId) -> Self {
        self.server_name(id.as_str())
    }

    /// Sets the name that every server's certificate must have, a DNS name or an IP address; by
    /// default the host part of its address. A SPIFFE ID is taken too, as by [`Self::server_id`].
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Sets the cipher suites, preferred first.
    pub fn suites(mut self, suites: impl IntoIterator<Item = Suite>) -> Self {
        self.algorithms.suites = suites.into_iter().collect();
        self
    }

    /// Sets the key exchange groups, preferred first.
    pub fn groups(mut self, groups: impl IntoIterator<Item = Group>) -> Self {
        self.algorithms.groups = groups.into_iter().collect();
        self
    }
}

impl ClientRole for TlsClient {}

impl WithAlgorithms for TlsClient {
    fn algorithms(&mut self) -> &mut Algorithms {
        &mut self.algorithms
    }
}

impl Sealed for TlsClient {
    const ACCEPTS: bool = false;

    fn key_exchanges(&self) -> Result<KeyExchanges, OpenError> {
        let tls = ClientTls::new(self.trust.clone()).with_sessions_memory(self.sessions_memory);
        let tls = match &self.identity {
            Some(identity) => tls.with_identity(identity.clone()),
            None => tls,
        };
        let provider = TlsProvider::new(Some(tls.clone()), None, &self.algorithms)?;
        let provider = Arc::new(provider);
        let tickets = self.tickets.as_ref();
        let tickets = tickets.map(|store| Arc::new(self.ticket_client(&provider, store)));
        let client = ClientCredentials::new(Arc::clone(&provider), tickets.clone(), tls);
        Ok(KeyExchanges {
            provider: tickets.map_or(provider, |tickets| tickets as _),
            credentials: Credentials { server: None, client: Some(client) },
        })
    }

    fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }
}

impl TlsClient {
    /// The client by the tickets of `store`, and by TLS where it has none.
    fn ticket_client(&self, provider: &Arc<TlsProvider>, store: &TicketStore) -> TicketClient {
        let suites = self.algorithms.suites.clone();
        let mut by_ticket = TicketClient::new(Arc::clone(provider), store.clone());
        by_ticket = by_ticket.with_suites(suites);
        if let Some(identity) = &self.identity {
            by_ticket = by_ticket.with_identity(identity);
        }
        if !self.forward_secrecy {
            by_ticket = by_ticket.without_forward_secrecy();
        }
        if self.algorithms.groups == [Group::X25519MlKem768] {
            by_ticket = by_ticket.requiring_post_quantum();
        }
        by_ticket
    }
}

/// A client by a key that the application negotiated itself (SPEC §7.2).
#[derive(Clone, Debug)]
#[must_use = "a role opens nothing by itself"]
pub struct KeyClient {
    key: RegisteredKey,
}

impl KeyClient {
    /// A client with this key: for one server, or for several that share an identity.
    pub fn new(key: RegisteredKey) -> Self {
        Self { key }
    }
}

impl ClientRole for KeyClient {}

impl Sealed for KeyClient {
    const ACCEPTS: bool = false;

    fn key_exchanges(&self) -> Result<KeyExchanges, OpenError> {
        Ok(RegisteredProvider::client(self.key.clone()).into())
    }
}
