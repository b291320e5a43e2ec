// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The role of an endpoint that both takes clients and connects to servers.

use std::sync::Arc;

use smt_proto::WallTime;
use smt_proto::key_exchange::{Attempt, ClientRequest, HandshakeFailure, KeyExchangeProvider};

use super::sealed::Sealed;
use super::{ClientRole, ServerRole};
use crate::credentials::{Credentials, KeyExchanges};
use crate::error::OpenError;

/// A server that connects to other servers by the same socket.
#[derive(Clone, Debug)]
#[must_use = "a role opens nothing by itself"]
pub struct Both<S, C> {
    pub(crate) server: S,
    pub(crate) client: C,
}

impl<S: ServerRole, C: ClientRole> ServerRole for Both<S, C> {}

impl<S: ServerRole, C: ClientRole> ClientRole for Both<S, C> {}

impl<S: ServerRole, C: ClientRole> Sealed for Both<S, C> {
    const ACCEPTS: bool = true;

    fn key_exchanges(&self) -> Result<KeyExchanges, OpenError> {
        let server = self.server.key_exchanges()?;
        let client = self.client.key_exchanges()?;
        let both = BothSides { server: server.provider, client: client.provider };
        Ok(KeyExchanges {
            provider: Arc::new(both),
            credentials: Credentials {
                server: server.credentials.server,
                client: client.credentials.client,
            },
        })
    }

    fn server_name(&self) -> Option<&str> {
        self.client.server_name()
    }
}

/// Answers clients by one provider, and calls servers by the other.
struct BothSides {
    server: Arc<dyn KeyExchangeProvider>,
    client: Arc<dyn KeyExchangeProvider>,
}

impl KeyExchangeProvider for BothSides {
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        self.client.client(request)
    }

    fn server(&self, params: &[u8], wall: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
        self.server.server(params, wall)
    }
}
