// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The plaintext measurement version (SPEC §14): what does encryption cost? **It protects
//! nothing.**
//!
//! A protocol of its own (version 0xF1) with endpoint types of its own. An encrypted endpoint
//! answers it like any unknown version; nothing can make one send, accept or negotiate it. Use
//! another port.

use std::fmt::Display;
use std::net::SocketAddr;

use crate::blocking::{Call, Client, Server};
use crate::builder::Builder;
use crate::error::OpenError;
use crate::message::Request;
use crate::statistics::Statistics;

/// A server whose messages anyone can read and forge.
#[derive(Clone, Debug)]
pub struct PlaintextServer(Server);

/// A client whose messages anyone can read and forge.
#[derive(Clone, Debug)]
pub struct PlaintextClient(Client);

impl PlaintextServer {
    /// Opens a server without any protection.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn bind_blocking(options: Builder, address: impl Display) -> Result<Self, OpenError> {
        options
            .without_protection()
            .bind_blocking(address)
            .map(Self)
    }

    /// The next request; `None` once the server is shut down.
    #[must_use]
    pub fn accept(&self) -> Option<Request> {
        self.0.accept()
    }

    /// The address that clients call.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.0.local_address()
    }

    /// Returns the counts since the endpoint was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}

impl PlaintextClient {
    /// Opens a client without any protection.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn connect_blocking(options: Builder, address: impl Display) -> Result<Self, OpenError> {
        options
            .without_protection()
            .connect_blocking(address)
            .map(Self)
    }

    /// Calls the server.
    pub fn call(&self, body: impl Into<crate::Bytes>) -> Call {
        self.0.call(body)
    }

    /// Returns the counts since the endpoint was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}
