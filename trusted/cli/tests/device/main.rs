// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device as a process: what it does for its host, what it keeps from it, and how it ends.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bootstrap;
mod certification;
mod epochs;
mod event_log;
mod interface;
mod memory;
mod process;
mod rights;
mod service;
