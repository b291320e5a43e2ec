// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replicas of the crate `minbft` over the trusted device and over SMT, as a peer of `smt-bft`.
//!
//! 1. [`MinReplica`] is a replica of `minbft` whose USIG is the device ([`smt_usig`]). Requests,
//!    replies and services are those of `smt-bft`, thus its clients serve both.
//! 2. [`Memory`] moves the bytes of a group in memory, [`over_smt`] by sessions: replicas of either
//!    system are a [`smt_loopback::Machine`].
//!
//! `minbft` takes no message twice and asks for none again, so [`MinReplica`] sends again what has
//! not arrived. It does not add what `minbft` lacks: the transfer of states.
#![forbid(unsafe_code)]

mod delivery;
mod device;
mod keys;
mod memory;
mod min_replica;
pub mod over_smt;
mod processes;
mod signed_request;
mod timers;

pub use device::{Devices, InProcess};
pub use keys::GroupKeys;
pub use memory::{IN_ORDER, Memory};
pub use min_replica::{MinReplica, Numbers, StartError, Terms};
pub use processes::Processes;
pub use signed_request::Verification;
