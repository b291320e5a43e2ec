// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways in which a node lies.

/// A way to lie.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Attack {
    /// Stops for good.
    Stop,
    /// Says nothing to all nodes but one.
    Silence,
    /// Sends half of what it should.
    Omit,
    /// Sends old messages again.
    Replay,
    /// Sends messages in another order.
    Reorder,
    /// Says what another node has not said.
    Forge,
    /// As the head tells two nodes two stories.
    Equivocate,
    /// Gives clients wrong answers.
    WrongReply,
    /// Answers in the names of others.
    ForgedReply,
    /// Proves outputs that do not follow from the log.
    WrongOutput,
    /// Proves without the proof before.
    WrongLink,
    /// Proves in a configuration after it has frozen it.
    BreakPromise,
    /// As the head orders requests that no client has made.
    ForgedRequest,
    /// As the head orders a request twice.
    Twice,
    /// Orders without being the head.
    NotHead,
    /// Opens configurations that nobody has made, or on its own FREEZE alone.
    BadQuorum,
    /// Accuses all the time.
    FalseAccuser,
}

impl Attack {
    /// All ways.
    pub const ALL: [Self; 17] = [
        Self::Stop,
        Self::Silence,
        Self::Omit,
        Self::Replay,
        Self::Reorder,
        Self::Forge,
        Self::Equivocate,
        Self::WrongReply,
        Self::ForgedReply,
        Self::WrongOutput,
        Self::WrongLink,
        Self::BreakPromise,
        Self::ForgedRequest,
        Self::Twice,
        Self::NotHead,
        Self::BadQuorum,
        Self::FalseAccuser,
    ];

    /// Whether only a head can lie in this way.
    pub(super) fn is_of_head(self) -> bool {
        matches!(self, Self::Equivocate | Self::ForgedRequest | Self::Twice)
    }

    /// Whether the lie is in the liar's stream, for all to see.
    pub(super) fn leaves_proof(self) -> bool {
        matches!(
            self,
            Self::WrongOutput
                | Self::WrongLink
                | Self::BreakPromise
                | Self::ForgedRequest
                | Self::Twice
                | Self::NotHead
        )
    }
}
