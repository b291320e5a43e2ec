// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted peer-review` as a user runs it: searches, and a tree of nodes as processes on
//! loopback, which are killed and of which one lies.
//!
//!     SMT_KILLS=200 SMT_REVIEW_SEED=1 cargo test -p smt-trusted --test peer_review
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../devices/mod.rs"]
mod devices;
mod files;
mod liar;
mod processes;
mod search;
mod stream;
mod with_devices;
