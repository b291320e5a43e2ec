// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A seeded simulator of groups in which nodes and clients lie, and the search for a violation.
//!
//! A run is a function of its scenario: of the [`Conditions`] that all systems have, and of the
//! liars of a [`System`]. The network loses, repeats, delays and reorders, and cuts pairs of nodes
//! off, up to a moment after which it is honest; liars lie to the end. Nodes with logs are killed,
//! on disks that lose and tear. A [`History`] judges what clients and correct nodes have seen, and
//! a [`Report`] counts how often the runs of a search had what they search for.

mod client;
mod coalition;
mod conditions;
mod effects;
mod history;
mod host;
mod keys;
mod kill;
mod liar;
mod model;
mod plan;
mod report;
mod step;
mod system;
mod world;

pub use client::{Process, SystemClient, processes};
pub use coalition::{Coalition, Correct, Lie, Member};
pub use conditions::{Conditions, Course, Crash};
pub use history::{Entry, History, Operation, Violation};
pub use host::Host;
pub use keys::{CLIENTS, LIAR_CLIENT, client_key, members, node_key, secret};
pub use kill::{Kill, begin_anew, disk_of_killed};
pub use liar::{Liar, LyingHost, forged, main_of_lies};
pub use plan::{Plan, Writer};
pub use report::{Expected, Least, Outcome, Report};
pub use step::{By, Step, StepName, Until};
pub use system::{Opened, System, To};
pub use world::{Happening, World, run};
