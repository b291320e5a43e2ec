// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A state explorer over the shipped attestation kernel: a hostile host and a hostile network try
//! all that they can, in all orders, up to the bounds of [`Attack`].
//!
//! The properties have the names of the paper's lemmas (appendix B). Each has a twin that says that
//! the situation which tests it is reached, and each rule of the kernel has a copy of the kernel
//! without it ([`broken`]), which the explorer must catch.
#![forbid(unsafe_code)]

mod attack;
mod device;
mod properties;
mod state;

/// The kernel without one of its rules, made by build.rs from the shipped source.
#[allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::collapsible_if,
    reason = "copies of another crate's files"
)]
pub mod broken {
    include!(concat!(env!("OUT_DIR"), "/broken.rs"));
}

pub use attack::{Action, Attack, Counter};
pub use device::{Device, Shipped, Start};
pub use properties::{names, twins};
pub use state::{Entry, Packet, State, View};
