// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A build without the feature `dns` finds no tickets.

use clap::Args;
use smt::TicketStore;

use crate::credentials::ClientCredentials;
use crate::failure::Failure;

/// No options.
#[derive(Args, Debug)]
pub(super) struct TicketArguments {}

/// A ticket that was found: there is no value of this type.
#[derive(Debug)]
pub(super) enum FoundTickets {}

impl TicketArguments {
    /// No ticket.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with DNS")]
    pub(super) fn look_up(
        &self,
        _: &str,
        _: &ClientCredentials,
    ) -> Result<Option<FoundTickets>, Failure> {
        Ok(None)
    }
}

impl FoundTickets {
    /// For the client's builder.
    pub(super) fn store(&self) -> TicketStore {
        match *self {}
    }

    /// Tells how the first session began.
    pub(super) fn tell(&self) {
        match *self {}
    }
}
