// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The roles whose sessions another process has agreed on (SPEC §7.5).

use smt_handshake::Adopter;

use super::sealed::Sealed;
use super::{ClientRole, ServerRole};
use crate::credentials::KeyExchanges;
use crate::error::OpenError;

/// A client of one server by sessions that are handed over to it.
#[derive(Clone, Debug)]
#[must_use = "a role opens nothing by itself"]
pub struct HandoverClient {
    adopter: Adopter,
    peer_name: String,
}

impl HandoverClient {
    /// A client of the server that has proved this name to the process which hands over.
    pub fn new(adopter: Adopter, peer_name: impl Into<String>) -> Self {
        Self { adopter, peer_name: peer_name.into() }
    }
}

impl ClientRole for HandoverClient {}

impl Sealed for HandoverClient {
    const ACCEPTS: bool = false;

    fn key_exchanges(&self) -> Result<KeyExchanges, OpenError> {
        Ok(self.adopter.clone().into())
    }

    fn server_name(&self) -> Option<&str> {
        Some(&self.peer_name)
    }
}

/// A server of clients whose sessions are handed over to it.
#[derive(Clone, Debug)]
#[must_use = "a role opens nothing by itself"]
pub struct HandoverServer {
    adopter: Adopter,
}

impl HandoverServer {
    /// A server of the sessions that are given to this adopter.
    pub fn new(adopter: Adopter) -> Self {
        Self { adopter }
    }
}

impl ServerRole for HandoverServer {}

impl Sealed for HandoverServer {
    const ACCEPTS: bool = true;

    fn key_exchanges(&self) -> Result<KeyExchanges, OpenError> {
        Ok(self.adopter.clone().into())
    }
}
