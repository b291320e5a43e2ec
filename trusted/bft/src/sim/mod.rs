// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replicas and clients that lie, alone or together, in the simulator of all systems
//! ([`smt_replica::sim`]).

mod attack;
mod coalition;
#[cfg(test)]
mod found;
pub(crate) mod group;
pub(crate) mod liar;
pub mod observe;
mod plan;
mod scenario;
mod step;
mod system;

pub use attack::Attack;
pub use plan::Plan;
pub use scenario::Scenario;
pub use smt_replica::sim::{Outcome, Report, Violation};
pub use step::{Led, Recipe, Step, StepName};
pub use system::{report, run};
