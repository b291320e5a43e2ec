// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key exchanges of an endpoint, as chosen: TLS, registered keys, or both at a server.

use std::sync::Arc;

use smt_handshake::{
    ClientAuth, ClientTls, PlaintextProvider, RegisteredProvider, ServerTls, SeveralKinds,
    TlsProvider,
};
use smt_proto::key_exchange::KeyExchangeProvider;
use smt_wire::KeyExchange;

use super::Builder;
use crate::error::OpenError;

impl Builder {
    /// Returns the key exchange of a server (`accept`) or of a client, whose choices were checked.
    pub(super) fn provider(&self, accept: bool) -> Result<Arc<dyn KeyExchangeProvider>, OpenError> {
        match accept {
            _ if self.is_plaintext() => Ok(Arc::new(PlaintextProvider)),
            true => self.server_provider(),
            false => self.client_provider(),
        }
    }

    fn client_provider(&self) -> Result<Arc<dyn KeyExchangeProvider>, OpenError> {
        if let Some(key) = self.registered.first() {
            return Ok(Arc::new(RegisteredProvider::client(key.clone())));
        }
        let trust = self.trust.clone().ok_or(OpenError::Options(
            "a client needs `trust`: whose certificates it accepts",
        ))?;
        let tls = ClientTls::new(trust);
        let tls = match &self.identity {
            Some(identity) => tls.with_identity(identity.clone()),
            None => tls,
        };
        Ok(Arc::new(TlsProvider::new(
            Some(tls),
            None,
            &self.algorithms,
        )?))
    }

    fn server_provider(&self) -> Result<Arc<dyn KeyExchangeProvider>, OpenError> {
        let Some(identity) = &self.identity else {
            if self.registered.is_empty() {
                return Err(OpenError::Options(
                    "a server needs an `identity`: certificate and key",
                ));
            }
            return Ok(Arc::new(self.answers_to_keys()?));
        };
        let auth = self.client_auth.clone().unwrap_or(ClientAuth::None);
        let tls = ServerTls::new(identity.clone()).with_client_auth(auth);
        let tls = Arc::new(TlsProvider::new(None, Some(tls), &self.algorithms)?);
        if self.registered.is_empty() {
            return Ok(tls);
        }
        let keys = Arc::new(self.answers_to_keys()?);
        let both = SeveralKinds::new()
            .answers_by(KeyExchange::Tls13, tls)
            .answers_by(KeyExchange::Registered, keys);
        Ok(Arc::new(both))
    }

    fn answers_to_keys(&self) -> Result<RegisteredProvider, OpenError> {
        Ok(RegisteredProvider::server(self.registered.clone())?)
    }
}
