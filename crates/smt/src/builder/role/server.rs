// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The roles that take clients.

use std::sync::Arc;

use smt_handshake::{
    Algorithms, ClientAuth, Group, Identity, RegisteredKey, RegisteredKeyError, RegisteredProvider,
    ServerTls, SeveralKinds, TicketKeys, TicketServer, TlsProvider,
};
use smt_proto::key_exchange::KeyExchangeProvider;
use smt_record::Suite;
use smt_wire::KeyExchange;

use super::ServerRole;
use super::sealed::{Sealed, WithAlgorithms};
use crate::credentials::{Credentials, KeyExchanges};
use crate::error::OpenError;
use crate::server_credentials::ServerCredentials;

/// A server by TLS 1.3, and by registered keys too if it is given some: each client comes by its
/// own kind.
#[derive(Clone, Debug)]
#[must_use = "a role opens nothing by itself"]
pub struct TlsServer {
    identity: Identity,
    client_auth: ClientAuth,
    keys: Vec<RegisteredKey>,
    tickets: Option<TicketKeys>,
    algorithms: Algorithms,
    sessions_memory: usize,
}

impl TlsServer {
    /// A server that shows this identity to TLS clients.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            client_auth: ClientAuth::None,
            keys: Vec::new(),
            tickets: None,
            algorithms: Algorithms::default(),
            sessions_memory: 0,
        }
    }

    /// Sets in how many bytes sessions by TLS are remembered, for clients to resume them within an
    /// hour (SPEC §6.10). By default 0: nothing is resumed.
    pub fn sessions_memory(mut self, bytes: usize) -> Self {
        self.sessions_memory = bytes;
        self
    }

    /// Sets the TLS clients that are let in; by default any, without a certificate.
    pub fn client_auth(mut self, client_auth: ClientAuth) -> Self {
        self.client_auth = client_auth;
        self
    }

    /// Lets clients in by this key too (SPEC §7.2).
    pub fn registered_key(mut self, key: RegisteredKey) -> Self {
        self.keys.push(key);
        self
    }

    /// Lets clients in by tickets of these keys too (SPEC §6.7).
    pub fn tickets(mut self, keys: TicketKeys) -> Self {
        self.tickets = Some(keys);
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

impl ServerRole for TlsServer {}

impl WithAlgorithms for TlsServer {
    fn algorithms(&mut self) -> &mut Algorithms {
        &mut self.algorithms
    }
}

impl Sealed for TlsServer {
    const ACCEPTS: bool = true;

    fn key_exchanges(&self) -> Result<KeyExchanges, OpenError> {
        let present = ServerTls::new(self.identity.clone());
        let present = present
            .with_client_auth(self.client_auth.clone())
            .with_sessions_memory(self.sessions_memory);
        let tls = TlsProvider::new(None, Some(present.clone()), &self.algorithms)?;
        let tls = Arc::new(tls);
        let tickets = self.tickets.clone().map(|keys| {
            let server = TicketServer::new(keys, self.client_auth.clone())?;
            Ok::<_, OpenError>(Arc::new(server))
        });
        let tickets = tickets.transpose()?;
        let credentials = ServerCredentials::new(Arc::clone(&tls), tickets.clone(), present);
        Ok(KeyExchanges {
            provider: self.with_others(tls, tickets)?,
            credentials: Credentials { server: Some(credentials), client: None },
        })
    }
}

impl TlsServer {
    /// The exchanges of TLS, and those by registered keys and tickets if there are some.
    fn with_others(
        &self,
        tls: Arc<TlsProvider>,
        tickets: Option<Arc<TicketServer>>,
    ) -> Result<Arc<dyn KeyExchangeProvider>, RegisteredKeyError> {
        if self.keys.is_empty() && tickets.is_none() {
            return Ok(tls);
        }
        let mut kinds = SeveralKinds::new().answers_by(KeyExchange::Tls13, tls);
        if !self.keys.is_empty() {
            let keys = RegisteredProvider::server(self.keys.clone())?;
            kinds = kinds.answers_by(KeyExchange::Registered, Arc::new(keys));
        }
        if let Some(tickets) = tickets {
            kinds = kinds.answers_by(KeyExchange::Ticket, tickets);
        }
        Ok(Arc::new(kinds))
    }
}

/// A server of clients with registered keys alone (SPEC §7.2).
#[derive(Clone, Debug)]
#[must_use = "a role opens nothing by itself"]
pub struct KeyServer {
    keys: Vec<RegisteredKey>,
}

impl KeyServer {
    /// A server that takes clients with these keys. There is one key for each client identity, told
    /// apart by name, and all keys give the server the same own identity.
    pub fn new(keys: impl IntoIterator<Item = RegisteredKey>) -> Self {
        let keys = keys.into_iter().collect();
        Self { keys }
    }
}

impl ServerRole for KeyServer {}

impl Sealed for KeyServer {
    const ACCEPTS: bool = true;

    fn key_exchanges(&self) -> Result<KeyExchanges, OpenError> {
        if self.keys.is_empty() {
            return Err(OpenError::Options("a server by registered keys needs at least one key"));
        }
        Ok(RegisteredProvider::server(self.keys.clone())?.into())
    }
}
