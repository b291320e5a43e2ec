// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server's ticket, looked up in DNS before a call connects.
//!
//! Whatever goes wrong costs a short time, and is told once: the session begins by TLS.

use std::time::Duration;

use clap::Args;
use smt::{TicketStore, TicketVerifier};
use smt_dns::{KnownChains, LookupError, Server, TicketLookup, wall_now};

use crate::credentials::ClientCredentials;
use crate::failure::Failure;
use crate::host_and_port::host_and_port;
use crate::resolver::{ResolverArguments, block_on};

/// Whether and where tickets are looked up.
#[derive(Args, Debug)]
pub(super) struct TicketArguments {
    /// Look the server's ticket up in DNS, for a second at most, and begin the session by it; if
    /// there is none the session begins by TLS, and one line says why
    #[arg(long)]
    tickets: bool,
    #[command(flatten)]
    resolver: ResolverArguments,
}

/// A ticket that was found, until it is known what came of it.
#[derive(Debug)]
pub(super) struct FoundTickets {
    store: TicketStore,
    server: String,
}

impl TicketArguments {
    /// Looks the ticket up, if that is wanted, and says why there is none.
    ///
    /// # Errors
    /// The options themselves are wrong.
    pub(super) fn look_up(
        &self,
        address: &str,
        credentials: &ClientCredentials,
    ) -> Result<Option<FoundTickets>, Failure> {
        if !self.tickets {
            return match self.resolver.is_given() {
                true => Err(Failure::usage("--resolver and --dnssec go with --tickets")),
                false => Ok(None),
            };
        }
        if credentials.server_id.is_some() {
            return Err(Failure::usage(
                "--tickets finds servers by a DNS name: it does not go with --server-id",
            ));
        }
        let (host, port) = host_and_port(address)?;
        let name = credentials.name.as_deref().unwrap_or(host);
        let verifier = TicketVerifier::new(credentials.trust()?)?;
        let store = TicketStore::new();
        let looked_up = block_on(async {
            let lookup = TicketLookup {
                resolver: self.resolver.resolver(LOOKUP_TIME)?,
                verifier,
                store: store.clone(),
                chains: KnownChains::new(),
            };
            let server = Server::new(name, port).map_err(LookupError::from);
            Ok::<_, Failure>(match server {
                Ok(server) => lookup.look_up(&server, wall_now).await,
                Err(error) => Err(error),
            })
        })?;
        match looked_up? {
            Ok(found) => {
                tracing::info!(server = name, ends = found.ends, "a ticket was found");
                Ok(Some(FoundTickets { store, server: name.to_owned() }))
            }
            Err(error) => {
                tracing::warn!("no ticket of {name}, the session begins by TLS: {error}");
                Ok(None)
            }
        }
    }
}

impl FoundTickets {
    /// For the client's builder.
    pub(super) fn store(&self) -> TicketStore {
        self.store.clone()
    }

    /// Tells how the first session began.
    pub(super) fn tell(&self) {
        let server = &self.server;
        match self.store.handshakes() {
            0 => tracing::warn!(
                "peer: {server} did not take its ticket, or wants what goes with none: the session began by TLS"
            ),
            _ => tracing::info!("the session began by a ticket of {server}"),
        }
    }
}

/// A call must not wait much longer for a resolver than TLS would take.
const LOOKUP_TIME: Duration = Duration::from_secs(1);
