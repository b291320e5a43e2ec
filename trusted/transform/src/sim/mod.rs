// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seeded simulator of the crash-tolerant counter in which nodes and clients lie.

mod correct;
pub(crate) mod group;
mod liar;
pub mod observe;
mod report;
mod scenario;
mod world;

pub use liar::Attack;
pub use report::Report;
pub use scenario::Scenario;
pub use world::{Outcome, Violation, run};
