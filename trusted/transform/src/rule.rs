// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The checks that a control run takes out, one by one.

/// A check. Only builds with the feature `broken` can leave one out.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Rule {
    /// A step has a MAC of the group.
    Mac,
    /// Steps of a device are taken without a gap.
    Gap,
    /// A message that a step takes was sent to its node by another one's step.
    Sent,
    /// A step takes the messages of each sender in order, and none is left out (the prefix rule).
    Prefix,
    /// A timer that a step has run out was armed.
    Armed,
    /// The effects of a step are those that the protocol has.
    Effects,
    /// Requests are signed.
    RequestSignature,
    /// Endorsements are signed.
    EndorsementSignature,
    /// A client takes a reply on f + 1 endorsements.
    EndorsementQuorum,
}

/// The check that a node or a client leaves out: none, but in control runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Broken {
    #[cfg(feature = "broken")]
    pub(crate) rule: Option<Rule>,
}

impl Broken {
    /// The check that is left out, which only builds with the feature `broken` heed.
    #[cfg(feature = "sim")]
    pub(crate) fn without(_rule: Option<Rule>) -> Self {
        #[cfg(feature = "broken")]
        return Self { rule: _rule };
        #[cfg(not(feature = "broken"))]
        Self {}
    }

    /// Whether this check is left out.
    #[cfg_attr(not(feature = "broken"), expect(clippy::unused_self, reason = "never broken"))]
    pub(crate) fn lacks(self, _rule: Rule) -> bool {
        #[cfg(feature = "broken")]
        return self.rule == Some(_rule);
        #[cfg(not(feature = "broken"))]
        false
    }
}
