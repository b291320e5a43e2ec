// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A manufacturer that certifies a device from afar, and what is wrong at each step.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod activation;
mod authority;
mod claims;
mod endorsement;
mod quoting_key;
mod world;
