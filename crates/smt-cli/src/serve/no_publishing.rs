// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A build without the feature `dns` publishes no tickets.

use std::net::SocketAddr;

use clap::Args;
use smt::{Identity, TicketKeys};

use crate::credentials::ServerCredentials;
use crate::failure::Failure;

/// No options.
#[derive(Args, Debug)]
pub(super) struct TicketArguments {}

/// A server's tickets before it is open: there is no value of this type.
pub(super) enum Publishing {}

/// A thread that publishes: there is no value of this type.
pub(super) enum Publisher {}

/// The identity of tickets: there is no value of this type.
pub(super) enum PublisherIdentity {}

impl TicketArguments {
    /// No tickets.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with DNS")]
    pub(super) fn publishing(&self, _: &ServerCredentials) -> Result<Option<Publishing>, Failure> {
        Ok(None)
    }
}

impl Publishing {
    /// For the server's builder.
    pub(super) fn keys(&self) -> TicketKeys {
        match *self {}
    }

    /// Begins to publish for the server that listens there.
    pub(super) fn start(
        self,
        _: &ServerCredentials,
        _: SocketAddr,
    ) -> Result<(Publisher, PublisherIdentity), Failure> {
        match self {}
    }
}

impl Publisher {
    /// Withdraws what is published.
    pub(super) fn finish(self) {
        match self {}
    }
}

impl PublisherIdentity {
    /// Replaces the identity.
    pub(super) fn set(&self, _: &Identity) -> Result<(), Failure> {
        match *self {}
    }
}
