// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seeded simulator in which replicas and clients lie, and the search for a violation.
//!
//! A run is a function of its [`Scenario`]. The network loses, repeats, delays and reorders, and
//! cuts pairs of replicas off, up to a moment after which it is honest; the liars lie to the end.

mod history;
pub(crate) mod liar;
mod random;
mod report;
mod scenario;
pub(crate) mod world;

pub use history::Violation;
pub use liar::Attack;
pub use report::{Event, Report};
pub use scenario::{Scenario, ServiceKind};
pub use world::{Outcome, run};
