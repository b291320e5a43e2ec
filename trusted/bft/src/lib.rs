// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Byzantine-tolerant replication over attested messages: 2f + 1 replicas, f of which may lie.
//!
//! [`Replica`] and [`Client`] are state machines without input and output of their own: bytes and
//! ticks go in, bytes come out ([`Output`]). The caller moves the bytes, in any order, with loss
//! and repetition.
//!
//! 1. A client signs a request, and sends it to the leader ([`Client::submit`]).
//! 2. The leader orders a batch by an attested PREPARE. Each replica commits by an attested COMMIT.
//! 3. f + 1 COMMITs, the leader's PREPARE among them, decide. All execute, and reply.
//! 4. A replica that waits too long says VIEW-CHANGE. On f + 1 of them the next leader says
//!    NEW-VIEW, and whoever follows says ENTER.
//!
//! Each replica takes the streams of all others without a gap. All therefore conclude the same from
//! a stream up to a counter: VIEW-CHANGEs refer to streams, and repeat nothing of them. The crate's
//! README says where each rule comes from.
#![forbid(unsafe_code)]

mod act;
mod any_service;
mod change;
mod client;
mod digest;
mod durable;
mod effect;
mod follow;
mod group;
mod ledger;
mod message;
mod recover;
mod replica;
mod request;
mod rule;
#[cfg(all(test, feature = "broken"))]
mod schedules;
mod service;
#[cfg(feature = "sim")]
pub mod sim;
mod snapshot;
mod state_transfer;
mod stream_checkpoint;
mod track;
mod view;

pub use any_service::{AnyService, ServiceKind};
pub use client::Client;
pub use digest::Digest;
pub use durable::{Durable, DurableError};
pub use ed25519_dalek::SigningKey;
pub use group::{Group, Options, PublicKey};
pub use message::{Batch, Checkpoint, Message, Opening, Reference, State, Statement, Status};
pub use replica::{Identity, Metrics, Output, Replica};
pub use request::{Reply, Request, SignatureBytes, sign, verifies};
pub use rule::Rule;
pub use service::{Counter, KeyValue, KeyValueOperation, Service};
pub use smt_attestor::{Attested, AttestorError, OwnDevice};
pub use stream_checkpoint::{StreamCheckpoint, StreamState};
