// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seeded simulator in which nodes and clients lie, and the search for a violation.
//!
//! A run is a function of its [`Scenario`]. The network loses, repeats, delays and reorders, and
//! cuts pairs of nodes off, up to a moment after which it is honest; the liars lie to the end.
//! Correct nodes may have logs ([`Scenario::with_logs`]); then they are killed, one or all at once.

mod attack;
mod correct;
pub(crate) mod group;
mod history;
mod liar;
pub mod observe;
mod report;
mod scenario;
#[cfg(test)]
pub(crate) mod together;
mod world;

pub use attack::Attack;
pub use history::Violation;
pub use report::Report;
pub use scenario::Scenario;
pub use world::{Outcome, run};
