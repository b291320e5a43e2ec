// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways in which a node lies.

use crate::tree::Tree;

/// A way to lie.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Attack {
    /// Stops for good.
    Stop,
    /// Answers no audit.
    Mute,
    /// Answers audits with an old end of its log.
    Stale,
    /// Sends children nothing of what its log sends.
    Selfish,
    /// Sends children nothing, and tells its own witnesses alone.
    TellOwn,
    /// Sends half of what it should.
    Omit,
    /// Sends old messages again.
    Replay,
    /// Sends messages in another order.
    Reorder,
    /// Sends messages and receipts in the names of others.
    Forge,
    /// Sends two children two messages under one entry.
    Equivocate,
    /// Sends and logs other content than it has received.
    WrongOutput,
    /// Leaves a child out of what it logs and sends.
    SkipForward,
    /// Sends other content, and shows witnesses the log of a correct node.
    Rewrite,
    /// Logs messages that nobody has sent.
    Invent,
    /// Logs a message twice.
    Twice,
    /// Logs a message before the one that comes first.
    Skip,
    /// Logs a checkpoint of another state.
    WrongCheckpoint,
    /// Logs no checkpoints.
    NoCheckpoint,
    /// Restarts with an old log.
    OldState,
    /// Takes no messages.
    Hide,
    /// Takes one message of each sender, and gives no receipt for it.
    HideLater,
    /// Answers no audit, and shows logged nonces that were never asked for.
    Defer,
    /// Gives receipts for messages that it does not log.
    FalseReceipt,
    /// Tells witnesses that a receiver owes receipts for messages that it could not take.
    Frame,
    /// Makes evidence and challenges up, and alters true ones.
    FalseAccuser,
    /// Audits without end.
    Flood,
    /// As a witness sees and says nothing.
    Blind,
}

/// The knowledge of correct witnesses on a liar in the end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Found {
    /// All have evidence.
    Exposed,
    /// They suspect it, or have evidence.
    Suspected,
    /// One at least suspects it now and then while the network is honest.
    AtTimes,
    /// The lie harms none, or cannot be told from the network's faults.
    Open,
}

impl Attack {
    /// All ways.
    pub const ALL: [Self; 27] = [
        Self::Stop,
        Self::Mute,
        Self::Stale,
        Self::Selfish,
        Self::TellOwn,
        Self::Omit,
        Self::Replay,
        Self::Reorder,
        Self::Forge,
        Self::Equivocate,
        Self::WrongOutput,
        Self::SkipForward,
        Self::Rewrite,
        Self::Invent,
        Self::Twice,
        Self::Skip,
        Self::WrongCheckpoint,
        Self::NoCheckpoint,
        Self::OldState,
        Self::Hide,
        Self::HideLater,
        Self::Defer,
        Self::FalseReceipt,
        Self::Frame,
        Self::FalseAccuser,
        Self::Flood,
        Self::Blind,
    ];

    /// Whether a node at this place of a tree can lie in this way.
    pub(super) fn is_possible(self, node: u32, tree: &Tree) -> bool {
        let has_children = tree.children(node).next().is_some();
        (has_children || !self.is_of_parent()) && (node > 0 || !self.is_of_child())
    }

    /// Whether only a node that forwards can lie in this way.
    fn is_of_parent(self) -> bool {
        matches!(
            self,
            Self::Selfish
                | Self::TellOwn
                | Self::Equivocate
                | Self::WrongOutput
                | Self::SkipForward
                | Self::Rewrite
                | Self::Frame
        )
    }

    /// Whether only a node that receives can lie in this way.
    pub(super) fn is_of_child(self) -> bool {
        matches!(self, Self::Twice | Self::Skip | Self::Hide | Self::HideLater | Self::FalseReceipt)
    }

    /// The end that it has.
    pub(super) fn found(self) -> Found {
        match self {
            Self::WrongOutput
            | Self::SkipForward
            | Self::Invent
            | Self::Twice
            | Self::Skip
            | Self::WrongCheckpoint
            | Self::NoCheckpoint => Found::Exposed,
            Self::Stop
            | Self::Mute
            | Self::Stale
            | Self::Rewrite
            | Self::OldState
            | Self::Hide
            | Self::HideLater
            | Self::Defer
            | Self::FalseReceipt => Found::Suspected,
            Self::Selfish => Found::AtTimes,
            Self::TellOwn
            | Self::Omit
            | Self::Replay
            | Self::Reorder
            | Self::Forge
            | Self::Equivocate
            | Self::Frame
            | Self::FalseAccuser
            | Self::Flood
            | Self::Blind => Found::Open,
        }
    }

    /// Whether the stream comes through such a node, if need be by its witnesses.
    pub(super) fn streams(self) -> bool {
        matches!(
            self,
            Self::Mute
                | Self::Stale
                | Self::Defer
                | Self::Selfish
                | Self::TellOwn
                | Self::Omit
                | Self::Replay
                | Self::Reorder
                | Self::Forge
                | Self::Equivocate
                | Self::Frame
                | Self::FalseAccuser
                | Self::Flood
                | Self::Blind
        )
    }
}
