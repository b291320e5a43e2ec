// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The work that a NIC saves a host by message size, beside the rows of the SMT paper.
//!
//! 1. [`work`] lets the production driver and the model of a NIC send messages, and counts
//!    descriptors, bytes over PCIe, packets, resyncs and uses of contexts.
//! 2. [`machine`] measures what sealing, opening and copying cost here.
//! 3. [`model`] makes cycles of both. It has two constants that nobody here can measure; it is
//!    fitted to two rows of the paper and predicts the others ([`paper`]).
//! 4. [`transport_device`] puts the production core behind rings that only messages cross, and
//!    [`host_work`] measures what is left of the host's work then.
//! 5. [`figures`] makes tables and plots of it all.
//!
//! `cargo run --release -p smt-nic-cost -- DIR` prints the tables and writes the plots into DIR.
#![forbid(unsafe_code)]

pub mod figures;
pub mod host_work;
pub mod machine;
mod message_host;
pub mod model;
pub mod paper;
mod staged_exchange;
mod stopwatch;
pub mod transport_device;
pub mod work;
