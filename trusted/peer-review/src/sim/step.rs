// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The steps of nodes that lie together.

use crate::sim::attack::Attack;

/// Those to whom a liar lies. To others it follows the protocol, but for lies in its own log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Audience {
    /// All.
    All,
    /// One node alone.
    One(u32),
    /// All but one node.
    AllBut(u32),
}

impl Audience {
    /// Whether a node is one of them.
    pub(super) fn has(self, node: u32) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == node,
            Self::AllBut(one) => one != node,
        }
    }
}

/// A step of a plan that only nodes of this system take. Nodes are named by their numbers, and `by`
/// is a liar.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// A liar lies in this way from now on.
    Lie {
        /// The liar.
        by: u32,
        /// The way.
        attack: Attack,
        /// Those to whom it lies.
        to: Audience,
    },
    /// A liar follows the protocol from now on.
    Behave {
        /// The liar.
        by: u32,
    },
    /// A liar is blind to another one as its witness, and gives receipts in its place.
    Cover {
        /// The liar.
        by: u32,
        /// The other one; nothing for all nodes.
        of: Option<u32>,
    },
    /// All that a liar says leaves later.
    Delay {
        /// The liar.
        by: u32,
        /// Ticks between what it says and when that leaves.
        ticks: u64,
    },
    /// Until all correct witnesses of a liar have audited its first checkpoint.
    UntilAudited {
        /// The liar.
        of: u32,
    },
    /// Until a liar has lied in the way in which it lies now.
    UntilLied {
        /// The liar.
        by: u32,
    },
}

/// Something that a liar has done by a plan, as reports name it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum StepName {
    /// It has lied in this way.
    Lie(Attack),
    /// It has lied to some, and not to others.
    Divide,
    /// It has lied after its witnesses had audited a checkpoint.
    Promise,
    /// It has followed the protocol after a lie.
    Behave,
    /// It has ignored what a witness must see of another liar.
    Cover,
    /// It has given receipts in the place of another liar.
    AnswerInPlace,
    /// It has said something late.
    Delay,
}

impl StepName {
    /// All names.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [
            Self::Divide,
            Self::Promise,
            Self::Behave,
            Self::Cover,
            Self::AnswerInPlace,
            Self::Delay,
        ];
        Attack::ALL.into_iter().map(Self::Lie).chain(others)
    }
}
