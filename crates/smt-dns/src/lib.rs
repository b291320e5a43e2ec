// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tickets of SMT servers in DNS (SPEC §6.7, §6.9): a server publishes its ticket, and clients look
//! it up before they connect.
//!
//! ```text
//!   TicketPublisher ── zone file, dynamic update ──▶ name servers
//!        │ key, before                                    │ SVCB, _17379._smt.db7.example
//!   TicketKeys (smt::server)                         TicketResolver
//!                                                         │ FoundRecord
//!   TicketStore (smt::client) ◀── verified ticket ── TicketLookup ◀── TicketWatch: when
//! ```
//! DNS need not be trusted: a ticket is verified as a server's certificate is in TLS. All that goes
//! wrong here costs speed, since a server without a ticket is reached by TLS.
//!
//! ```no_run
//! use smt_dns::{KnownChains, ResolverPlan, Server, TicketLookup, TicketResolver, TicketWatch};
//! use smt_handshake::{TicketStore, TicketVerifier, Trust};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = TicketStore::new(); // also for `smt::client(trust).tickets(store.clone())`
//! let lookup = TicketLookup {
//!     resolver: TicketResolver::new(&ResolverPlan::default())?,
//!     verifier: TicketVerifier::new(Trust::roots_from_pem_files(&["ca.pem"])?)?,
//!     store: store.clone(),
//!     chains: KnownChains::new(),
//! };
//! let watch = TicketWatch::spawn(lookup, [Server::new("db7.example", 17379)?]);
//! # drop(watch);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod chains;
mod error;
pub mod limits;
mod lookup;
mod publish;
mod record;
mod refresh;
mod resolver;
mod server;
mod told;
mod ttl;
mod watch;

pub use chains::KnownChains;
pub use error::{LookupError, PublishError};
pub use lookup::{FoundTicket, TicketLookup};
pub use publish::{
    Destination, DynamicUpdate, PublisherIdentity, TicketPublisher, TsigKey, ZoneFile,
};
pub use record::{RecordError, TicketRecord};
pub use resolver::{Dnssec, FoundRecord, ResolverPlan, TicketResolver};
pub use server::{NoServer, Server};
pub use ttl::{kept_for, published_ttl};
pub use watch::{TicketWatch, wall_now};
