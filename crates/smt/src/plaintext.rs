// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The plaintext measurement version (SPEC §14): what does encryption cost? **It protects
//! nothing.**
//!
//! A protocol of its own (version 0xF1) with endpoint types of its own. An encrypted endpoint
//! answers it like any unknown version; nothing can make one send, accept or negotiate it. Use
//! another port.

use std::net::SocketAddr;

use smt_proto::IntoMessage;

use crate::blocking::{CallBuilder, Client, Server};
use crate::builder::{Address, Builder, Unprotected};
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
    pub fn bind_blocking(address: impl Into<Address>) -> Result<Self, OpenError> {
        let builder = Builder::of(Unprotected::<true>);
        builder.bind_blocking(address).map(Self)
    }

    /// The next request; `None` once the server is shut down.
    #[must_use]
    pub fn accept(&self) -> Option<Request> {
        self.0.accept_request()
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
    pub fn connect_blocking(server: impl Into<Address>) -> Result<Self, OpenError> {
        let builder = Builder::of(Unprotected::<false>);
        builder.connect_blocking(server).map(Self)
    }

    /// Calls the server.
    pub fn call(&self, message: impl IntoMessage) -> CallBuilder {
        self.0.call(message)
    }

    /// Returns the counts since the endpoint was opened.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}
