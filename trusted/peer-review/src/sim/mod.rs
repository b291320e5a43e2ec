// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seeded simulator in which nodes of a multicast tree lie, and the search for a violation.
//!
//! A run is a function of its [`Scenario`]. The network loses, repeats, delays and reorders, and
//! cuts pairs of nodes off, up to a moment after which it is honest; the liars lie to the end.

mod attack;
mod group;
mod judge;
mod liar;
mod lie;
pub mod observe;
mod scenario;
mod world;

pub use attack::Attack;
pub use judge::Violation;
pub(crate) use lie::Lie;
pub use scenario::Scenario;
pub use smt_replica::sim::{Outcome, Report};
pub use world::{report, run};
