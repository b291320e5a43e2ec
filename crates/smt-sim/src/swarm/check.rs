// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checkers: they watch a run from outside the code under test, and say what must never happen.
//!
//! [`Ledger`] keeps the books of all messages and of the parts of calls; [`SealBook`] sees every
//! sealing, beneath the code under test; `sealed_packets` sees what NICs have sealed; `repetition`
//! counts how often bytes leave; `bounds` judges the rest by what the swarm's run has counted.

pub(crate) mod bounds;
mod content;
mod extras;
mod ledger;
mod part_stream;
mod parts;
pub(crate) mod repetition;
pub(crate) mod sealed_packets;
mod sealing;

use std::fmt;

pub use content::{Content, TINY};
pub use ledger::{Ledger, Outcome, Received, Report, Sent};
pub(crate) use part_stream::PART_LONGEST;
pub use part_stream::{InParts, PartStream};
pub use parts::PartReport;
pub use sealing::{SealBook, SealWatch};

/// A failure that a checker has found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The checker that found it.
    pub checker: Checker,
    /// The text of the failure.
    pub text: String,
}

/// A property that is checked.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Checker {
    /// A server sends at most three times what an unvalidated address has sent.
    Amplification,
    /// A message is delivered at most once, and never after it was reported as not run.
    AtMostOnce,
    /// A delivered message is exactly the one that was sent.
    Content,
    /// A one-way message is not delivered after its deadline.
    Lateness,
    /// Once the network heals, everything ends, and new calls are answered.
    Liveness,
    /// Memory stays within its bounds, and nothing is left behind.
    Memory,
    /// A reader gets the parts of a call that were sent, in order, each once, and then the end.
    Parts,
    /// A delivered message was sent by the peer that has proved its identity.
    Provenance,
    /// Without messages there are no timers but those of idleness.
    Quiet,
    /// A packet that stays lost is repeated ever more rarely.
    Repetition,
    /// No two plaintexts under one key and number, no control number twice.
    Sealing,
    /// An attacker who drops little ends no session.
    Sessions,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.checker, self.text)
    }
}

impl Failure {
    pub(crate) fn new(checker: Checker, text: String) -> Self {
        Self { checker, text }
    }
}
