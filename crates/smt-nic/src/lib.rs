// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network interface card, as a model that real packets pass through.
//!
//! The model shows what a NIC's segmentation and cryptographic engines do for a protocol that is
//! not TCP, what goes wrong, and what it costs (SMT paper §2.3, §3.2, §4.4.2). It has no I/O, clock
//! or randomness: a test, a simulator or a process behind a TAP device turns it.
//!
//! ```text
//!   host memory         transmit queue 0..n                      engine             wire
//!   ring of descriptors ─▶ fetch ─▶ execute: read the segment ─▶ seal records ─▶ cut to packets
//!                                   context: create, resync, destroy
//!   completion ring     ◀─ one entry a descriptor, in the order of its queue
//! ```
//!
//! 1. [`Nic::step`] takes one step of one queue: it fetches a descriptor, or executes the one that
//!    was fetched. The caller chooses the queue of each step: as with hardware, no order across
//!    queues is promised.
//! 2. [`descriptor`] has what the host writes into its rings, [`completion`] what it reads there.
//! 3. [`segmentation`] cuts a segment of up to 64 KiB into packets, as TSO does.
//! 4. [`engine`] is the seam for what protects packets inline. [`tls`] seals TLS 1.3 records by
//!    flow contexts whose record number counts by itself (autonomous offload).
//! 5. [`esp`] seals packets after they were cut, and opens them before they are merged.
//! 6. [`receive`] is the other direction: packets go to queues by their flow, those of one message
//!    or stream are merged, and records in them are opened ([`tls::receive`]).
//! 7. [`psp`] seals whole packets after they were cut, and opens them before their queue is chosen,
//!    by keys that the receiving device derives.
//! 8. [`context_memory`] bounds the contexts, and counts what a cache of them would miss.
//!
//! The crate reads SMT's formats by the offsets of the specification, with a cipher library of its
//! own, and uses no other crate of the workspace: its tests compare the two readings.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod big_endian;
mod checksum;
pub mod completion;
pub mod context_memory;
mod counters;
pub mod descriptor;
pub mod engine;
pub mod esp;
mod executor;
pub mod headers;
mod host_memory;
mod nic;
mod packet_numbers;
pub mod psp;
pub mod quic;
pub mod receive;
mod segment_place;
pub mod segmentation;
pub mod tls;
mod transmit_queue;

pub use counters::Counters;
pub use host_memory::{DmaFault, HostMemory};
pub use nic::{Nic, NicConfig, QueueError, Step};
pub use transmit_queue::Ring;
