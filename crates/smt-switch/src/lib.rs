// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of switches that work by message, on clear headers alone (SMT paper §7, MTP).
//!
//! A switch has no key, and needs none: the session, the message's id, its length and the place of
//! the payload are in the clear (SPEC §3.3). Nothing that it does can break a message, since
//! endpoints believe no clear header.
//!
//! 1. [`DataHeader`] reads the header of a DATA packet, [`IpPacket`] finds it behind IP.
//! 2. [`Balancer`] chooses one of several paths, the same one for all packets of a message.
//! 3. [`trim`] cuts a DATA packet to its header (SPEC §9.10).
//! 4. [`mark`] sets "congestion experienced" (RFC 3168).
//! 5. [`MessageCounters`] counts packets and bytes of each message, in bounded memory.
//!
//! A packet of another protocol, cut short or malformed passes as it is. The crate reads the
//! formats by the offsets of the specification and uses no other crate of the workspace: it is a
//! second reader, and its tests compare. `kernel/xdp` has the same functions in C, for XDP;
//! `vectors/in_network.json` has packets with what comes out of them, for both.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod balancer;
mod checksum;
mod congestion_mark;
mod counters;
mod data_header;
mod ip_packet;
#[cfg(test)]
mod samples;
mod trimming;

pub use balancer::Balancer;
pub use congestion_mark::{Marking, mark};
pub use counters::{MessageCounters, MessageCounts};
pub use data_header::{DATA_HEADER_BYTES, DataHeader};
pub use ip_packet::{Addresses, IpPacket, IpVersion, MessageName, Recognition, Transport};
pub use trimming::{TRIMMED_CLASS, trim, trimmed_bytes};
