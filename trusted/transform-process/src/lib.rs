// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes and clients of a transformed protocol as processes over SMT.
//!
//! A user writes a crash-tolerant protocol (`smt_transform::Protocol`) and a `main` that has these
//! arguments. The counter of `trusted/transform-counter` is such a program.
//!
//! 1. [`InitArguments`] make keys, certificates and configuration files of a group.
//! 2. [`NodeArguments`] run a node until SIGTERM or SIGINT. One that was killed goes on where its
//!    log ends.
//! 3. [`ClientArguments`] make a request, and have the answer that f + 1 nodes endorse.
//! 4. [`exit_code`] tells an error, and whose fault it is.
#![forbid(unsafe_code)]

mod client;
mod config;
mod error;
mod init;
mod node;

pub use client::ClientArguments;
pub use error::{ProgramError, exit_code};
pub use init::InitArguments;
pub use node::NodeArguments;
