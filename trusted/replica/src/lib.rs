// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts that replicated systems over attested messages share.
//!
//! 1. A [`Group`] is what all nodes and clients start with: members, keys, sizes and timeouts.
//! 2. Clients sign a [`Request`], nodes a [`Reply`]; a [`Service`] executes operations.
//! 3. A system is a [`Node`]: a state machine that takes messages and ticks.
//! 4. [`Logged`] gives a node a log on a disk: its inputs are durable before anything that follows
//!    from them leaves, and a node that was killed takes them again.
//!
//! A system brings the rules by which a node judges, orders and commits.
#![forbid(unsafe_code)]

mod any_service;
mod digest;
mod encoding;
mod group;
mod logged;
mod node;
mod reply;
mod request;
mod service;

pub use any_service::{AnyService, ServiceKind};
pub use digest::{Digest, digest};
pub use ed25519_dalek::SigningKey;
pub use encoding::{decode, encode};
pub use group::{Group, Options, PublicKey, STREAM_INTERVALS};
pub use logged::{Logged, LoggedError, Owner};
pub use node::{Asker, Effect, Node};
pub use reply::{Reply, ReplyProof};
pub use request::{Request, SignatureBytes, sign, verifies};
pub use service::{Counter, KeyValue, KeyValueOperation, Service};
pub use smt_attestor::{Attested, AttestorError, OwnDevice};
