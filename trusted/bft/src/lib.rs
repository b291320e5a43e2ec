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
mod client;
mod effect;
mod follow;
mod late;
mod ledger;
mod message;
mod node;
mod recovery;
mod replica;
#[cfg(all(test, feature = "sim"))]
mod schedules;
#[cfg(feature = "sim")]
pub mod sim;
mod snapshot;
mod state_transfer;
mod stream_checkpoint;
mod track;
mod view;
mod view_change;

pub use client::Client;
pub use message::{Batch, Checkpoint, Message, Opening, Reference, State, Statement, Status};
pub use replica::{Identity, Metrics, Output, Replica};
pub use stream_checkpoint::{StreamCheckpoint, StreamState};
