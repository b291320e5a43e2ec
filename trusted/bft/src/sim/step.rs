// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The steps of liars that work together, of replicas alone.

use smt_replica::sim::By;

/// A step of a plan, by its name.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum StepName {
    /// VIEW-CHANGE.
    Want,
    /// NEW-VIEW on VIEW-CHANGEs that one correct replica knows.
    Open,
    /// ENTER of a view that a correct replica knows.
    Enter,
    /// The same after a promise for a later view.
    LateEnter,
    /// PREPARE in a view that a liar leads.
    Order,
    /// COMMIT in the view of a correct replica.
    Commit,
    /// The same after a promise for a later view.
    LateCommit,
    /// A CHECKPOINT that is false.
    FalseCheckpoint,
    /// A place of a stream, as a correct replica has it.
    Place,
    /// A false place of a stream.
    FalsePlace,
    /// Statements that say nothing, until the own stream has a checkpoint.
    Pad,
    /// A state as a correct replica has it, which nobody has asked for.
    TrueState,
    /// A state that is out of date.
    OldState,
    /// A state of a view that a correct replica knows, with ENTERs that liars attest for it.
    StateOfView,
    /// A state of a view that nobody has opened.
    StateOfNoView,
    /// A state without its checkpoint.
    StateWithoutCheckpoint,
    /// A state with places of streams as they were before.
    StateOfOldPlaces,
    /// A state with a false place of a liar's stream.
    StateOfFalsePlace,
    /// A state with false bytes.
    StateOfFalseBytes,
    /// A liar's device restarts.
    Restart,
}

impl StepName {
    /// All steps.
    pub const ALL: [Self; 20] = [
        Self::Want,
        Self::Open,
        Self::Enter,
        Self::LateEnter,
        Self::Order,
        Self::Commit,
        Self::LateCommit,
        Self::FalseCheckpoint,
        Self::Place,
        Self::FalsePlace,
        Self::Pad,
        Self::TrueState,
        Self::OldState,
        Self::StateOfView,
        Self::StateOfNoView,
        Self::StateWithoutCheckpoint,
        Self::StateOfOldPlaces,
        Self::StateOfFalsePlace,
        Self::StateOfFalseBytes,
        Self::Restart,
    ];
}

/// The leader of a view that liars want.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Led {
    /// A liar.
    ByLiar,
    /// This replica.
    By(u32),
    /// Any.
    ByAny,
}

/// The kind of a state that liars make.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Recipe {
    /// The step that it counts as.
    pub name: StepName,
    /// It has the state's streams, or none.
    pub has_streams: bool,
}

/// A step of a plan that only replicas take. Replicas are named by their devices; `of` is a correct
/// one, as whose knowledge the liars choose what they say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// VIEW-CHANGE.
    Want {
        /// The liars.
        by: By,
        /// The replica.
        of: u32,
        /// The leader of the view.
        led: Led,
        /// How many views are skipped.
        ahead: u64,
    },
    /// NEW-VIEW.
    Open {
        /// The replica.
        of: u32,
    },
    /// ENTER.
    Enter {
        /// The liars.
        by: By,
        /// The replica.
        of: u32,
        /// Whether the view is its newest, or any.
        is_newest: bool,
    },
    /// PREPARE.
    Order {
        /// The replica.
        of: u32,
    },
    /// COMMIT.
    Commit {
        /// The liars.
        by: By,
        /// The replica.
        of: u32,
        /// Whether the view is its newest, or any.
        is_newest: bool,
    },
    /// A false CHECKPOINT.
    FalseCheckpoint {
        /// The liars.
        by: By,
    },
    /// A place of a stream.
    Place {
        /// The liars.
        by: By,
        /// The replica.
        of: u32,
        /// Whether it is as the replica has it.
        is_true: bool,
    },
    /// Statements that say nothing, until the own stream has a checkpoint.
    Pad {
        /// The liars.
        by: By,
    },
    /// A state.
    State {
        /// The replica that gets it.
        to: u32,
        /// The replica from whose state it is made.
        of: u32,
        /// How.
        recipe: Recipe,
    },
    /// The device of a liar restarts.
    Restart {
        /// The liar.
        by: u32,
    },
}
