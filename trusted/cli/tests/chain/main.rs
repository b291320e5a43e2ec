// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted chain` as a user runs it: searches, and nodes and clients as processes on loopback,
//! with an etcd of their own, killed under load.
//!
//!     SMT_KILLS=200 SMT_CHAIN_SEED=1 cargo test -p smt-trusted --test chain
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../devices/mod.rs"]
mod devices;
mod etcd;
mod files;
mod load;
mod nodes;
mod processes;
mod search;
mod with_devices;
