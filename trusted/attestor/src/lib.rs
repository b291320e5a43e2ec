// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The attestations of a replica that has a log: by a kernel in its process, or by a device that
//! outlives it ([`OwnDevice`]).
//!
//! A replica is a function of its inputs, its device's attestations included. A kernel in the
//! process is killed with the replica, and gives the same attestations when the log is read again.
//! A device that goes on gives no counter twice: what it has given ([`Given`]) is in the log behind
//! the inputs that it was given for, but for the last statements, which it issues again.
//!
//! 1. [`Attestor::open`] opens the group's stream.
//! 2. A replica that was killed takes the inputs of its log again ([`Replay`]), and gets the
//!    attestations of the log.
//! 3. [`Attestor::attest`] gives the next one. The log has what was given
//!    ([`Attestor::take_unlogged`]) with its next block, and the replica stops while the device is
//!    too far ahead ([`Attestor::is_ahead_of_log`]).
#![forbid(unsafe_code)]

mod attested;
mod attestor;
mod changes;
mod error;
mod given;
#[cfg(feature = "model")]
mod outliving;
mod own_device;
mod replay;

pub use attested::Attested;
pub use attestor::{Attestor, AttestorSnapshot, REISSUED_MAX, UNLOGGED_MAX};
pub use changes::WrittenBallot;
pub use error::AttestorError;
pub use given::{Given, SignatureHalves};
#[cfg(feature = "model")]
pub use outliving::OutlivingDevice;
pub use own_device::OwnDevice;
pub use replay::{Machine, Replay};
