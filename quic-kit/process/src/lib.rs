// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parts that the measured processes have in common.
//!
//! Each stack is a program with the commands `server` and `client` ([`Command`]). The two speak one
//! small request format over a stream ([`request`]). A measuring process talks to them by lines on
//! their standard input and output ([`lines`]):
//!
//! 1. A server prints `listening ADDRESS`, a client `ready`.
//! 2. On `go` a client connects, transfers, prints a `connection` line for each connection, and
//!    `done`.
//! 3. On `report` both print their CPU time since the first line, and what the stack counts.
//! 4. At the end of their input both end.
//!
//! `kit-aioquic` has the same commands and lines in Python.
#![forbid(unsafe_code)]

mod failure;
pub mod lines;
mod options;
pub mod request;
pub mod socket;
pub mod tls;
mod usage;

pub use failure::{Doing, Failure};
pub use options::{Cipher, ClientOptions, Command, ServerOptions, StackOptions, Switch, parse};
pub use usage::{Counts, Usage};

/// The protocol that both sides name in their handshake.
pub const ALPN: &[u8] = b"kit";
/// The name in the server's certificate.
pub const SERVER_NAME: &str = "kit.test";
/// Bytes of flow control windows, of a stream and of a connection.
pub const WINDOW_BYTES: u32 = 16 << 20;
/// Bytes that are asked of the kernel for each direction of a socket.
pub const SOCKET_BYTES: usize = 8 << 20;
/// A connection that hears nothing for so long has failed.
pub const IDLE: std::time::Duration = std::time::Duration::from_secs(60);
