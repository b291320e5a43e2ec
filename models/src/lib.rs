// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Message ids, record numbers and key epochs of one session, explored in all their states
//! (SPEC §4.2, §4.3, §5.5, §7.3, §9.6).
//!
//! A client sends messages to a server through a network that loses, repeats and reorders. Windows,
//! allocators, epochs, key schedule, sealing and opening are the product's own, `smt-record`; what
//! the sessions of `smt-proto` add to them is written down here once more, rule by rule, so that a
//! rule can be left out. [`explore`] tries all executions within [`Bounds`] and looks for each
//! [`Violation`]; what it must have [`Reached`] shows that it was not about nothing; and each
//! [`Broken`] variant shows that a property can fail.

mod bounds;
mod broken;
mod client;
mod crypto;
mod explored;
mod packet;
mod reached;
mod server;
mod session;
mod violation;
mod world;

pub use bounds::Bounds;
pub use broken::Broken;
pub use explored::{Explored, explore};
pub use reached::Reached;
pub use violation::Violation;
