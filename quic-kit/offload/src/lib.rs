// SPDX-License-Identifier: Apache-2.0 OR MIT
//! quinn-proto on the QUIC engine of smt-nic: the engine opens and seals the packets of offloaded
//! connections, and quinn keeps handshakes, streams, congestion control and packet numbers.
//!
//! quinn's keys are opaque, and its crypto traits get no flag for a packet. These seams are used:
//!
//! 1. [`capture`]: a `rustls::quic::Algorithm` that keeps the bytes of each key. A key hands them
//!    over when it is asked in a way that no other code asks.
//! 2. [`session`] wraps quinn's TLS sessions, and gives quinn keys that leave out the AEAD and the
//!    header protection where the engine does them ([`keys`]). A packet's 16 bytes of tag room say
//!    which: they hold a secret of the connection with the packet's number ([`mark`]).
//! 3. [`device`] has the engine and keeps its table in step. The keys tell it by [`link`]s what
//!    quinn opens and seals itself, and which ids peers use.
//!
//! Two things turn it: [`driver`] with quinn-proto, without sockets or a clock, and [`socket`], a
//! socket of quinn's own endpoints, clients and servers alike.
//!
//! A packet that the engine has not opened goes to quinn as it came, and quinn opens it: software
//! and engine may take turns at any packet.
#![forbid(unsafe_code)]

mod built;
pub mod capture;
pub mod client;
pub mod device;
pub mod driver;
mod entry;
pub mod issued_ids;
pub mod keys;
pub mod link;
pub mod mark;
mod notes;
mod sealing;
pub mod server;
pub mod session;
pub mod socket;

pub use device::{Device, DeviceConfig, OffloadCounts};
pub use driver::{Driver, DriverConfig};
pub use socket::{OffloadedSocket, SharedDevice};
