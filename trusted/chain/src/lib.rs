// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chain replication over attested messages: 2f + 1 nodes, f of which may lie.
//!
//! [`Node`] and [`Client`] are state machines without input and output of their own: bytes, ticks
//! and configurations go in, bytes and accusations come out ([`Output`]).
//!
//! 1. A client signs a request, a read too, and sends it to the head of the chain.
//! 2. The head gives it a place, executes it, and says ORDER with its output.
//! 3. Each node executes it, compares the outputs before, and says PROOF: its own output, and the
//!    MAC of the proof before. Proofs travel down the chain.
//! 4. f + 1 proofs commit a place. Nodes that know of them reply, and a client takes an answer that
//!    f + 1 nodes sign alike.
//! 5. A node that waits too long signs an [`Accusation`]. Those of f + 1 nodes make the next
//!    [`Configuration`] ([`Made`]); nodes say FREEZE, and the new head opens it with the longest
//!    log among f + 1.
//!
//! The crate's README says where each rule comes from.
#![forbid(unsafe_code)]

mod accusation;
mod act;
mod client;
mod configuration;
mod digest;
mod effect;
mod judge;
mod late;
mod log;
mod logged;
mod message;
mod node;
mod reconfigure;
mod requests;
mod shared;
#[cfg(feature = "sim")]
pub mod sim;
mod snapshot;
mod state;
mod track;

pub use accusation::{Accusation, Made};
pub use client::Client;
pub use configuration::Configuration;
pub use message::{Message, Reference, Statement, Status};
pub use node::{Accuse, Identity, Metrics, Node, Output};
