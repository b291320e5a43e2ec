// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways in which a node lies.

/// A way to lie.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Attack {
    /// Says nothing to some nodes.
    Silence,
    /// Sends half of what it should.
    Omit,
    /// Sends old messages again.
    Replay,
    /// Sends messages in another order.
    Reorder,
    /// Says what another node has not said.
    Forge,
    /// Tells two nodes two stories.
    Equivocate,
    /// States effects that the protocol does not have: a wrong answer.
    WrongEffects,
    /// Takes a message that nobody has sent: that another node has the whole log.
    InventMessage,
    /// Leaves a message out, and takes the next.
    SkipMessage,
    /// Runs out a timer that is armed, long before its time.
    EarlyTimeout,
    /// Runs out a timer that is not armed.
    WrongTimeout,
    /// Takes a request that no client has made.
    ForgedRequest,
    /// Endorses wrong answers.
    WrongEndorsement,
    /// Endorses in the names of others.
    ForgedEndorsement,
}

impl Attack {
    /// All ways.
    pub const ALL: [Self; 14] = [
        Self::Silence,
        Self::Omit,
        Self::Replay,
        Self::Reorder,
        Self::Forge,
        Self::Equivocate,
        Self::WrongEffects,
        Self::InventMessage,
        Self::SkipMessage,
        Self::EarlyTimeout,
        Self::WrongTimeout,
        Self::ForgedRequest,
        Self::WrongEndorsement,
        Self::ForgedEndorsement,
    ];

    /// Whether a node that lies like this leaves proof in its stream, at its first lie.
    pub(super) fn is_found(self) -> bool {
        matches!(self, Self::WrongEffects | Self::WrongTimeout | Self::ForgedRequest)
    }

    /// Whether the host makes the steps itself.
    pub(super) fn makes_steps(self) -> bool {
        matches!(
            self,
            Self::Equivocate
                | Self::WrongEffects
                | Self::InventMessage
                | Self::SkipMessage
                | Self::WrongTimeout
                | Self::ForgedRequest
        )
    }
}
