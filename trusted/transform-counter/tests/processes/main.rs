// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The counter as a user runs it: nodes and clients as processes on loopback.
//!
//!     SMT_KILLS=200 SMT_TRANSFORM_SEED=1 cargo test -p smt-transform-counter
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clients;
mod cluster;
mod files;
mod kills;
mod liar;
