// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seeded simulator in which nodes of a multicast tree lie, and the search for a violation.
//!
//! A run is a function of its [`Scenario`]. The network loses, repeats, delays and reorders, and
//! cuts pairs of nodes off, up to a moment after which it is honest; the liars lie to the end, each
//! in one way, or several together by a [`Plan`]. Nodes with journals are killed, on disks that
//! lose and tear.

mod attack;
mod coalition;
mod group;
mod host;
mod judge;
mod kill;
mod liar;
mod lie;
pub mod observe;
mod plan;
mod scenario;
mod step;
mod together;
mod watch;
mod world;

pub use attack::Attack;
pub use judge::Violation;
pub(crate) use lie::Lie;
pub use plan::Plan;
pub use scenario::{Course, Scenario};
pub use smt_replica::sim::{Outcome, Report};
pub use step::{Audience, Step, StepName};
pub use watch::report;
pub use world::run;
