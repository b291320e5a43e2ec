// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT in a deterministic network.
//!
//! The code under test is what users run: `smt-proto`, `smt-record` and `smt-handshake`, with real keys. Around it
//! is virtual time: hosts, cables, switches, faults and checkers, all of which repeat from a seed.
#![forbid(unsafe_code)]

mod adversary;
mod capture;
pub mod check;
mod chunk;
mod clock;
pub mod crypto;
pub mod datacenter;
mod event_queue;
mod fault;
pub mod hostile;
mod link;
mod machine;
mod network;
mod packet;
mod packets;
mod pairs;
mod random;
mod smt_host;
mod socket;
mod stream;
pub mod swarm;
mod switch;
mod topology;
mod workload;
mod world;

pub use adversary::{Adversary, Move, Spoofed};
pub use capture::{CAPTURE_BYTES_MAX, Capture, CaptureTap, Captured, View};
pub use clock::Clock;
pub use fault::{FaultKind, FaultyLinks, LinkFault, Strikes};
pub use link::{Link, PortStatistics};
pub use machine::Machine;
pub use network::{Counts, LinkRule, Network, Occurrence, Tap};
pub use packet::{FRAME_OVERHEAD, HostId, Packet, wire_len};
pub use pairs::Pairs;
pub use random::Random;
pub use smt_host::{Application, SmtHost};
pub use socket::Socket;
pub use stream::{Delivered, Pooling, StreamCounts, StreamHost, StreamOptions};
pub use switch::{Spreading, SwitchPolicy, TRIMMED_LEN};
pub use topology::Topology;
pub use workload::{UnknownWorkload, Workload};
pub use world::{Burst, Host, World};
