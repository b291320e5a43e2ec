// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The checks that a control run takes out, one by one.

/// A check. Only builds with the feature `broken` can leave one out.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Rule {
    /// A statement has a MAC of the group.
    Mac,
    /// Streams are taken without a gap.
    Gap,
    /// A batch is executed on f + 1 COMMITs; without, on the leader's PREPARE alone (the paper's).
    CommitQuorum,
    /// Requests are signed.
    ClientSignature,
    /// A request is executed once.
    ExactlyOnce,
    /// A view is opened on f + 1 VIEW-CHANGEs.
    ChangeQuorum,
    /// These are of distinct members.
    DistinctVotes,
    /// After VIEW-CHANGE a replica says nothing in lower views.
    Promise,
    /// A PREPARE is for the next place.
    PrepareOrder,
    /// Only the leader orders.
    Leader,
    /// A new view begins with the longest log of the latest view among its VIEW-CHANGEs.
    LongestLog,
    /// A state is taken on f + 1 CHECKPOINTs.
    CheckpointQuorum,
    /// A state is what its CHECKPOINTs say.
    StateDigest,
    /// A view is taken with a state on f + 1 ENTERs.
    EnterQuorum,
    /// A device in a new epoch counts only after f + 1 others have admitted it.
    Admission,
    /// A VIEW-CHANGE of an epoch does not count beside one that follows a vote to replace it.
    Replaced,
}

impl Rule {
    /// All checks.
    pub const ALL: [Self; 16] = [
        Self::Mac,
        Self::Gap,
        Self::CommitQuorum,
        Self::ClientSignature,
        Self::ExactlyOnce,
        Self::ChangeQuorum,
        Self::DistinctVotes,
        Self::Promise,
        Self::PrepareOrder,
        Self::Leader,
        Self::LongestLog,
        Self::CheckpointQuorum,
        Self::StateDigest,
        Self::EnterQuorum,
        Self::Admission,
        Self::Replaced,
    ];
}

/// The check that a replica or a client leaves out: none, but in control runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Broken {
    #[cfg(feature = "broken")]
    pub(crate) rule: Option<Rule>,
}

impl Broken {
    /// Whether this check is left out.
    #[cfg_attr(not(feature = "broken"), expect(clippy::unused_self, reason = "never broken"))]
    pub(crate) fn lacks(self, _rule: Rule) -> bool {
        #[cfg(feature = "broken")]
        return self.rule == Some(_rule);
        #[cfg(not(feature = "broken"))]
        false
    }
}
