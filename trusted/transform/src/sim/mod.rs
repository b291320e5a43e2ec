// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of the crash-tolerant counter and clients that lie, in the simulator of all systems
//! ([`smt_replica::sim`]).

mod attack;
pub(crate) mod group;
mod liar;
pub mod observe;
mod plan;
mod scenario;
mod system;

pub use attack::Attack;
pub use plan::{Plan, Step, StepName};
pub use scenario::Scenario;
pub use smt_replica::sim::{Outcome, Report, Violation};
pub use system::{report, run};
