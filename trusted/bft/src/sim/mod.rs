// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seeded simulator in which replicas and clients lie, and the search for a violation.
//!
//! A run is a function of its [`Scenario`]. The network loses, repeats, delays and reorders, and
//! cuts pairs of replicas off, up to a moment after which it is honest; the liars lie to the end.

mod attack;
mod closing;
mod coalition;
mod course;
#[cfg(test)]
mod found;
pub(crate) mod group;
mod history;
mod kill;
pub(crate) mod liar;
pub mod observe;
mod plan;
mod report;
mod scenario;
mod step;
mod world;

pub use attack::Attack;
pub use history::Violation;
pub use plan::Plan;
pub use report::{Event, Report};
pub use scenario::Scenario;
pub use step::StepName;
pub use world::{Outcome, run};
