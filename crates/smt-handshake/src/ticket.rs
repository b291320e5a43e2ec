// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key exchange by SMT-tickets (SPEC §6.7): the server's share is known ahead, so that its
//! certificate is verified before the handshake and the handshake needs no signature of the server.
//!
//! ```text
//!   TicketIssuer ── Ticket, chain ──▶ TicketVerifier ── VerifiedTicket ──▶ TicketStore
//!        │ TicketKey                                                           │
//!   TicketServer ◀── flight 1: share, binder, [client certificate] ────── TicketClient
//!                ──── flight 2: random, [share], finished ──────────────▶
//! ```
//! 1. A server issues a ticket for an hour at most: a share whose private key never leaves its
//!    process, signed by its certificate.
//! 2. A client that has fetched and verified the ticket agrees on a secret with that share in its
//!    first flight. Client and server add ephemeral shares if they want forward secrecy.
//! 3. A client without a ticket, or with one that the server does not take, uses TLS.
//!
//! Not here: how tickets are published and found (`smt-dns`).

mod accepted;
mod codec;
mod eraser;
mod exchange;
mod format;
mod hello;
mod issue;
mod keys;
mod provider;
mod replay;
mod schedule;
mod share;
mod signature;
mod store;
#[cfg(test)]
mod vectors;
mod verify;

pub use format::{Ticket, TicketError, chain_hash};
pub use issue::{IssuedTicket, TicketIssuer, TicketPlan};
pub use keys::{TicketKey, TicketKeys};
pub use provider::{TicketClient, TicketServer};
pub use store::TicketStore;
pub use verify::{TicketVerifier, VerifiedTicket};
