// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The attestation kernel inside a NIC, as in the paper (§4): messages pass through it.
//!
//! ```text
//!   host ─▶ transmit queue ─▶ AttestationEngine ─▶ cut to packets ─▶ wire
//!   host ◀─ receive queue  ◀─ Receiver: merge, check, put in order ◀─ wire
//! ```
//!
//! 1. [`AttestationEngine`] is an engine of `smt-nic`, by that crate's trait. The host leaves 64
//!    bytes of room behind a message, and the engine writes its attestation there.
//! 2. [`Receiver`] stands before the NIC's receive queues. A message reaches the host only after
//!    the kernel has taken it, once and in order. A later copy of one of the last messages reaches
//!    it too, and has the same counter. No MAC covers the headers of SMT.
//! 3. Both share one [`smt_device_client::Device`], so the kernel in the NIC is the kernel of the
//!    device process and of the library.
//!
//! Keys come by another way than the host's descriptors: groups are opened on the device before,
//! and a context names a stream. The host therefore learns no key and sets no counter.
#![forbid(unsafe_code)]

mod delivered;
mod engine;
mod held;
mod receiver;
mod unmerged;

pub use delivered::AGAIN_MAX;
pub use engine::{AttestationEngine, AttestedFlow, ENGINE, context_block};
pub use held::{HELD_MAX, HELD_OF_SENDER_MAX};
pub use receiver::{NotTaken, Received, Receiver};
