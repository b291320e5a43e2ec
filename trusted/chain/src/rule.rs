// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The checks that a control run takes out, one by one.

/// A check. Only builds with the feature `broken` can leave one out.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Rule {
    /// A statement has a MAC of the group.
    Mac,
    /// Streams are taken without a gap.
    Gap,
    /// A place is committed by f + 1 proofs.
    ProofQuorum,
    /// A proof has the output that follows from the log.
    Output,
    /// A proof has the MAC of the proof before.
    Link,
    /// Requests are signed.
    ClientSignature,
    /// A request is ordered once.
    ExactlyOnce,
    /// A configuration is opened on f + 1 FREEZEs.
    FreezeQuorum,
    /// These are of distinct nodes.
    DistinctFreezes,
    /// After FREEZE a node says nothing in lower configurations.
    Promise,
    /// Only the head orders.
    Head,
    /// A configuration begins with the longest log of the latest one among its FREEZEs.
    LongestLog,
}

impl Rule {
    /// All checks.
    pub const ALL: [Self; 12] = [
        Self::Mac,
        Self::Gap,
        Self::ProofQuorum,
        Self::Output,
        Self::Link,
        Self::ClientSignature,
        Self::ExactlyOnce,
        Self::FreezeQuorum,
        Self::DistinctFreezes,
        Self::Promise,
        Self::Head,
        Self::LongestLog,
    ];
}

/// The check that a node or a client leaves out: none, but in control runs.
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
