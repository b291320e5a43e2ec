// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network in virtual time: hosts, cables, switches and faults.
//!
//! 1. A [`Topology`] says how hosts are wired, and makes a [`Network`] of ports and switches.
//! 2. A [`World`] is the loop that gives [`Host`]s packets and time, and takes what they send.
//! 3. [`LinkRule`]s act upon packets: [`FaultyLinks`], and an [`Adversary`] on the path.
//! 4. [`Tap`]s look on: a [`CaptureTap`] writes what it sees to a file.
//!
//! Not here: what hosts do beside their protocol (an [`Application`] is given to an [`SmtHost`]).

pub(crate) mod adversary;
mod capture;
pub(crate) mod chunk;
mod clock;
pub(crate) mod event_queue;
pub(crate) mod fault;
pub(crate) mod link;
mod machine;
pub(crate) mod network;
pub(crate) mod nic_port;
pub(crate) mod packet;
mod packet_pool;
pub(crate) mod port_queues;
pub(crate) mod smt_host;
mod socket;
pub(crate) mod switch;
pub(crate) mod topology;
pub(crate) mod watched_engine;
pub(crate) mod world;

pub use adversary::{Adversary, Move, Spoofed};
pub use capture::{CAPTURE_BYTES_MAX, Capture, CaptureTap, Captured, View};
pub use clock::Clock;
pub use fault::{FaultKind, FaultyLinks, LinkFault, Strikes};
pub use link::{Link, PortStatistics};
pub use machine::Machine;
pub use network::{Counts, LinkRule, Network, Occurrence, Tap};
pub use nic_port::{NicChoices, NicPort};
pub use packet::{FRAME_OVERHEAD, HostId, Packet, Protocol, wire_len};
pub use port_queues::Scheduler;
pub use smt_host::{Application, SmtHost};
pub use socket::Socket;
pub use switch::{Spreading, SwitchPolicy};
pub use topology::Topology;
pub use watched_engine::{WatchedContext, WatchedEngine};
pub use world::{Burst, Host, World};
