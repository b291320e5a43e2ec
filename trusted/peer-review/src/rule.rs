// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The checks that a control run takes out, one by one.

/// A check. Only builds with the feature `broken` can leave one out.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Rule {
    /// A message has the signature of its sender's device, at its receiver and in logs.
    Signature,
    /// An entry sends what the application sends.
    Outputs,
    /// Messages of one sender are taken in order, each once.
    Order,
    /// A checkpoint has the state that the log gives.
    Checkpoint,
    /// Checkpoints are where they must be.
    Schedule,
    /// The log that a node shows to a witness is the one that its device has signed.
    Chain,
    /// An audit is answered by a log that has its nonce.
    Nonce,
    /// A receipt is signed by the receiver's device, over the entry that takes the message.
    Receipt,
    /// A sender without a receipt tells the witnesses.
    Complaint,
    /// A witness suspects a node whose messages have no receipts, and which does not tell.
    Forwarding,
    /// Evidence is verified.
    Evidence,
    /// A challenge has a message that its sender has sent.
    Challenge,
    /// A node owes no receipt for a message that is not the next of its sender.
    Due,
    /// An audit ends with the nonce of an audit that is open.
    Asked,
    /// A witness gives the sender the receipt that the receiver's log has.
    Logged,
    /// A witness delivers what waits too long, also if the node tells of it.
    Delivery,
    /// A node records the audits of one witness no closer than at half of their interval.
    AuditRate,
}

impl Rule {
    /// All checks.
    pub const ALL: [Self; 17] = [
        Self::Signature,
        Self::Outputs,
        Self::Order,
        Self::Checkpoint,
        Self::Schedule,
        Self::Chain,
        Self::Nonce,
        Self::Receipt,
        Self::Complaint,
        Self::Forwarding,
        Self::Evidence,
        Self::Challenge,
        Self::Due,
        Self::Asked,
        Self::Logged,
        Self::Delivery,
        Self::AuditRate,
    ];
}

/// The check that a node leaves out: none, but in control runs.
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
