// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seeded simulator of the crash-tolerant counter in which nodes and clients lie.

mod correct;
pub(crate) mod group;
mod liar;
pub mod observe;
mod scenario;
mod world;

pub use liar::Attack;
pub use scenario::Scenario;
pub use smt_replica::sim::{Outcome, Report};
pub use world::{Violation, report, run};
