// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random cases: a seed makes hosts, configurations, messages and faults; checkers watch what comes
//! of it.
//!
//! 1. [`Case::new`] draws everything from the seed.
//! 2. [`run`] plays it: faults, then healing, then a last round in which every call must be
//!    answered, then quiet.
//! 3. [`run_observed`] lets others look on, with the keys or without.
//! 4. The [`Verdict`] has what the checkers found, what was reached, and a hash of every packet.

mod case;
pub mod check;
mod coverage;
mod events;
mod host_maker;
mod host_pairs;
pub mod hostile;
mod player;
mod run;
mod trace;

pub use case::{Action, Case, HostFault, HostFaultKind, Planned, Pulls};
pub use coverage::Coverage;
pub use host_pairs::HostPairs;
pub use run::{Observers, Verdict, run, run_observed};
