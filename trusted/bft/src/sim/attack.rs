// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways in which a replica lies.

/// A way to lie.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Attack {
    /// Says nothing to some replicas.
    Silence,
    /// Sends half of what it should.
    Omit,
    /// Sends old messages again.
    Replay,
    /// Sends messages in another order.
    Reorder,
    /// Says what another replica has not said.
    Forge,
    /// As the leader tells two replicas two stories.
    Equivocate,
    /// Gives wrong answers.
    WrongOutput,
    /// Commits to what the leader has not ordered.
    EarlyCommit,
    /// Commits in a view after it has wanted a later one.
    BreakPromise,
    /// Gives wrong states to others.
    WrongState,
    /// States false checkpoints.
    FalseCheckpoint,
    /// Restarts its device, and hides what it has said before.
    OldState,
    /// As the leader orders requests that no client has made.
    ForgedRequest,
    /// As the leader orders requests twice.
    Twice,
    /// As the leader orders two batches at one place.
    SecondPrepare,
    /// Orders without being the leader.
    NotLeader,
    /// Answers in the names of others.
    ForgedReply,
    /// Opens views on its own vote alone.
    BadQuorum,
    /// Opens views again, and wants views that are over.
    StaleView,
}

impl Attack {
    /// All ways.
    pub const ALL: [Self; 19] = [
        Self::Silence,
        Self::Omit,
        Self::Replay,
        Self::Reorder,
        Self::Forge,
        Self::Equivocate,
        Self::WrongOutput,
        Self::EarlyCommit,
        Self::BreakPromise,
        Self::WrongState,
        Self::FalseCheckpoint,
        Self::OldState,
        Self::ForgedRequest,
        Self::Twice,
        Self::SecondPrepare,
        Self::NotLeader,
        Self::ForgedReply,
        Self::BadQuorum,
        Self::StaleView,
    ];

    /// Whether only a leader can lie in this way.
    pub(crate) fn is_of_leader(self) -> bool {
        matches!(self, Self::Equivocate | Self::ForgedRequest | Self::Twice | Self::SecondPrepare)
    }
}
