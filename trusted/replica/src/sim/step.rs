// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The steps of liars that work together.

use std::fmt::Debug;

/// A step of a plan, by its name. `X` names the steps of one system alone.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum StepName<X> {
    /// Correct nodes are cut off from each other: the network is as bad as the liars want.
    Part,
    /// All correct nodes hear each other again.
    Join,
    /// Liars follow the protocol with some, and say nothing to the others.
    Follow,
    /// Liars say nothing to anybody, until they come back.
    Hide,
    /// A node gets a request of the client whose key liars have.
    Ask,
    /// Statements that were held back are shown to one node.
    ShowToOne,
    /// Statements that were held back are shown to all.
    ShowToAll,
    /// All but the last statements are shown.
    HoldBack,
    /// All liars give clients the same wrong answers.
    AnswerWrong,
    /// All liars give clients the answers of one correct node.
    AnswerAlike,
    /// A step of this system alone.
    Own(X),
}

impl<X: Copy + Debug> StepName<X> {
    /// All steps, with those of one system alone.
    pub fn all(own: &[X]) -> Vec<Self> {
        let all = [
            Self::Part,
            Self::Join,
            Self::Follow,
            Self::Hide,
            Self::Ask,
            Self::ShowToOne,
            Self::ShowToAll,
            Self::HoldBack,
            Self::AnswerWrong,
            Self::AnswerAlike,
        ];
        all.into_iter().chain(own.iter().copied().map(Self::Own)).collect()
    }

    /// The name.
    pub fn name(&self) -> String {
        match self {
            Self::Own(own) => format!("{own:?}"),
            common => format!("{common:?}"),
        }
    }

    /// The name of what a correct node did because of it. Clients see a wrong answer, and no
    /// correct node does.
    pub fn bit(&self) -> Option<String> {
        let is_answer = matches!(self, Self::AnswerWrong | Self::AnswerAlike);
        (!is_answer).then(|| format!("{} bit", self.name()))
    }
}

/// Liars who take a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum By {
    /// All of them.
    All,
    /// One, by its number.
    One(u32),
}

impl By {
    /// Whether a liar takes the step.
    #[must_use]
    pub fn has(self, node: u32) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == node,
        }
    }
}

/// Something that a correct node does, and liars wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Until {
    /// It wants the view that liars have wanted last.
    Wants,
    /// It knows how that view begins.
    Opens,
    /// It has executed something that it had not.
    Executes,
}

/// A step of a plan. Nodes are named by their numbers. `X` is a step of one system alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step<X> {
    /// The part of each node.
    Part(Vec<u32>),
    /// All hear each other.
    Join,
    /// Liars follow the protocol with these; with nobody they hide.
    Follow(Vec<u32>),
    /// Ticks that pass.
    Wait(u32),
    /// Until a correct node does something.
    Until(u32, Until),
    /// A node gets a request.
    Ask(u32),
    /// Statements are shown.
    Show {
        /// The liars whose statements they are.
        by: By,
        /// The node that sees them, or all.
        to: Option<u32>,
        /// How many of the last ones are held back.
        held: usize,
    },
    /// Clients get the answers of a correct node, or wrong ones.
    Answer {
        /// The node.
        of: Option<u32>,
    },
    /// A step of this system alone.
    Own(X),
}
