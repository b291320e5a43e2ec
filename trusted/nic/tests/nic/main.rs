// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages from one host to another, through the NICs of both.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod arrivals;
mod engine;
mod fault;
mod machine;
