// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts that replicated systems over attested messages share.
//!
//! 1. A [`Group`] is what all nodes and clients start with: members, keys, sizes and timeouts.
//! 2. A [`Client`] signs a [`Request`], nodes a [`Reply`]; a [`Service`] executes operations, each
//!    once ([`ClientTable`]).
//! 3. A system is a [`Node`]: a state machine that takes messages and ticks.
//! 4. [`Logged`] gives a node a log on a disk: its inputs are durable before anything that follows
//!    from them leaves, and a node that was killed takes them again.
//!
//! A system brings the rules by which a node judges, orders and commits.
#![forbid(unsafe_code)]

mod any_service;
mod client;
mod client_table;
mod digest;
mod encoding;
mod followed;
mod group;
mod logged;
mod node;
mod output;
mod pending;
mod reply;
mod request;
mod service;
mod signed_together;
#[cfg(feature = "sim")]
pub mod sim;

pub use any_service::{AnyService, ServiceKind};
pub use client::{Ask, Client, Completion};
pub use client_table::{
    ClientTable, IN_PROGRESS_MAX, Refusal, RefusalPlace, RefusalReason, SESSIONS_MAX, Standing,
    first_number, is_last_of_session, session_of,
};
pub use digest::{Digest, digest};
pub use ed25519_dalek::SigningKey;
pub use encoding::{decode, encode};
pub use followed::{AHEAD_MAX, Followed};
pub use group::{Group, Options, PublicKey, STREAM_INTERVALS};
pub use logged::{Logged, LoggedError, Owner};
pub use node::{Asker, Effect, Node, Statements};
pub use output::Output;
pub use pending::{Pending, PendingRequests};
pub use reply::Reply;
pub use request::{REQUEST_WAY_MAX, Request, SignatureBytes, sign, verifies};
pub use service::{Counter, KeyValue, KeyValueOperation, Service};
pub use signed_together::{KnownRoots, Proof};
pub use smt_attestor::{Attested, AttestorError, OwnDevice};
