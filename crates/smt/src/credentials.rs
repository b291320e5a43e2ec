// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key exchanges of an endpoint, and the credentials among them that may be replaced while it
//! runs.

use std::sync::{Arc, Weak};

use smt_handshake::{PeerJudge, TlsConfigError};
use smt_proto::key_exchange::KeyExchangeProvider;

use crate::client_credentials::ClientCredentials;
use crate::distrust::HasPeers;
use crate::error::OpenError;
use crate::server_credentials::ServerCredentials;

/// The key exchanges of a role, and the credentials among them that may be replaced.
#[expect(unnameable_types, reason = "other crates add no roles")]
pub struct KeyExchanges {
    pub(crate) provider: Arc<dyn KeyExchangeProvider>,
    pub(crate) credentials: Credentials,
}

impl<P: KeyExchangeProvider + 'static> From<P> for KeyExchanges {
    fn from(provider: P) -> Self {
        Self { provider: Arc::new(provider), credentials: Credentials::default() }
    }
}

/// The credentials of an endpoint by TLS, of each role that it has.
#[derive(Clone, Default)]
pub(crate) struct Credentials {
    pub(crate) server: Option<Arc<ServerCredentials>>,
    pub(crate) client: Option<Arc<ClientCredentials>>,
}

impl Credentials {
    /// Takes an endpoint in that was opened with them: its sessions are judged again whenever they
    /// are replaced.
    pub(crate) fn opened(&self, endpoint: &Weak<dyn HasPeers>) {
        if let Some(server) = &self.server {
            server.sharers.add(Weak::clone(endpoint));
        }
        if let Some(client) = &self.client {
            client.sharers.add(Weak::clone(endpoint));
        }
    }

    /// The trust of today, to judge the peers of live sessions by; `None` if no TLS is there.
    pub(crate) fn judge(&self) -> Option<PeerJudge> {
        let server = self.server.as_ref().map(|server| server.judge());
        server.or_else(|| self.client.as_ref().map(|client| client.judge()))
    }

    /// Those by which it takes clients.
    ///
    /// # Errors
    /// The endpoint takes no clients by TLS.
    pub(crate) fn server(&self) -> Result<&ServerCredentials, OpenError> {
        Ok(self.server.as_deref().ok_or(TlsConfigError::NoServer)?)
    }

    /// Those by which it calls servers.
    ///
    /// # Errors
    /// The endpoint calls no servers by TLS.
    pub(crate) fn client(&self) -> Result<&ClientCredentials, OpenError> {
        Ok(self.client.as_deref().ok_or(TlsConfigError::NoClient)?)
    }
}
