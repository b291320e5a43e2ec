// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The steps of liars that work together.

/// A step of a plan, by its name.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum StepName {
    /// Correct replicas are cut off from each other: the network is as bad as the liars want.
    Part,
    /// All correct replicas hear each other again.
    Join,
    /// Liars follow the protocol with some, and say nothing to the others.
    Follow,
    /// Liars say nothing to anybody, until they come back.
    Hide,
    /// A replica gets a request of the client whose key liars have.
    Ask,
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
    /// Statements that were held back are shown to one replica.
    ShowToOne,
    /// Statements that were held back are shown to all.
    ShowToAll,
    /// All but the last statements are shown.
    HoldBack,
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
    /// All liars give clients the same wrong answers.
    AnswerWrong,
    /// All liars give clients the answers of one correct replica.
    AnswerAlike,
}

impl StepName {
    /// The name of what a correct replica did because of it.
    pub(crate) fn bit(self) -> String {
        format!("{self:?} bit")
    }

    /// All steps.
    pub const ALL: [Self; 30] = [
        Self::Part,
        Self::Join,
        Self::Follow,
        Self::Hide,
        Self::Ask,
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
        Self::ShowToOne,
        Self::ShowToAll,
        Self::HoldBack,
        Self::TrueState,
        Self::OldState,
        Self::StateOfView,
        Self::StateOfNoView,
        Self::StateWithoutCheckpoint,
        Self::StateOfOldPlaces,
        Self::StateOfFalsePlace,
        Self::StateOfFalseBytes,
        Self::Restart,
        Self::AnswerWrong,
        Self::AnswerAlike,
    ];
}

/// Liars who take a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum By {
    All,
    One(u32),
}

impl By {
    pub(crate) fn has(self, device: u32) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == device,
        }
    }
}

/// The leader of a view that liars want.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Led {
    ByLiar,
    By(u32),
    ByAny,
}

/// Something that a correct replica does, and liars wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Until {
    /// It wants the view that liars have wanted last.
    Wants,
    /// It knows how that view begins.
    Opens,
    /// It has executed something that it had not.
    Executes,
}

/// The kind of a state that liars make.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Recipe {
    /// The step that it counts as.
    pub(crate) name: StepName,
    /// It has the state's streams, or none.
    pub(crate) has_streams: bool,
}

/// A step of a plan. Replicas are named by their devices.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// The part of each device.
    Part(Vec<u32>),
    Join,
    /// With these; with nobody they hide.
    Follow(Vec<u32>),
    /// Ticks that pass.
    Wait(u32),
    Until(u32, Until),
    Ask(u32),
    Want {
        by: By,
        of: u32,
        led: Led,
        ahead: u64,
    },
    Open {
        of: u32,
    },
    Enter {
        by: By,
        of: u32,
        is_newest: bool,
    },
    Order {
        of: u32,
    },
    Commit {
        by: By,
        of: u32,
        is_newest: bool,
    },
    FalseCheckpoint {
        by: By,
    },
    Place {
        by: By,
        of: u32,
        is_true: bool,
    },
    Pad {
        by: By,
    },
    Show {
        by: By,
        to: Option<u32>,
        held: usize,
    },
    State {
        to: u32,
        of: u32,
        recipe: Recipe,
    },
    Restart {
        by: u32,
    },
    Answer {
        of: Option<u32>,
    },
}
