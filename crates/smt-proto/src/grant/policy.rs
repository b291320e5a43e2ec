// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The seam at which a receiver decides which messages may send more, and how much (SPEC §9.2).
//!
//! This module has the view of a message that a policy gets, its decision, and the budget within
//! which it decides. A policy that pulls has a pacer beside ([`PullPolicy`]). Homa's policy is in
//! `srpt`, NDP's in `ndp::pull`.
//!
//! Not here: which messages a policy is shown (`scheduler`).

use crate::event::RpcId;
use crate::grant::ndp::pull::PullOrder;
use crate::limits::OVERCOMMIT;
use crate::time::Time;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A message that needs grants. Offsets count in its record stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grantable {
    /// The message.
    pub rpc: RpcId,
    /// Bytes of the whole record stream.
    pub length: u32,
    /// Bytes that have arrived and opened.
    pub arrived: u32,
    /// End of what may be sent.
    pub granted: u32,
    /// Age: messages that began earlier have a smaller number.
    pub order: u64,
    /// Whether its sender has lately not used a least window (32,812 bytes) in a resend interval,
    /// although it could. Its grants are in no budget while another message wants some.
    pub is_sender_limited: bool,
}

/// A decision to let a message send more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Granted {
    /// The message.
    pub rpc: RpcId,
    /// The new end of what may be sent.
    pub end: u32,
    /// Priority of those bytes, 0..7, 7 most urgent.
    pub priority: u8,
}

/// Bytes that the endpoint has granted, over all messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GrantBudget {
    /// The most that may be granted and not yet arrived ([`crate::TransportConfig::incoming_max`]).
    pub limit: u32,
    /// Bytes that are granted and have not arrived. Messages that a policy no longer looks at count
    /// too; those that are limited by their senders do not.
    pub outstanding: u64,
    /// Bytes that are granted and have not arrived, of the messages that are limited by their
    /// senders.
    pub sender_limited: u64,
}

impl GrantBudget {
    /// Bytes that may still be granted.
    #[must_use]
    pub fn left(&self) -> u32 {
        u64::from(self.limit).saturating_sub(self.outstanding) as u32
    }

    /// The budget for messages that are limited by their senders; the bytes that these hold are
    /// part of it.
    pub(crate) fn of_sender_limited(self) -> Self {
        Self { outstanding: self.outstanding + self.sender_limited, sender_limited: 0, ..self }
    }
}

/// The messages that a policy that pulls wants to be shown (SPEC §9.10).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pulling {
    /// Bytes of a message that are to be on their way.
    pub window: u32,
    /// Which message comes first.
    pub order: PullOrder,
}

impl Pulling {
    /// Whether more of a message is to be on its way.
    #[must_use]
    pub fn wants_pull(&self, message: &Grantable) -> bool {
        let most = message.arrived.saturating_add(self.window.max(1));
        message.granted < message.length.min(most)
    }
}

/// Decides which messages may send more. The core calls it whenever something has changed.
pub trait GrantPolicy: Send {
    /// The number of messages that the policy chooses among. The policy is shown that many of those
    /// with the fewest bytes left; one session has at most half of them while messages of another
    /// wait. Behind them come as many of those that are limited by their senders, chosen likewise,
    /// and last the oldest message, if it is not among them. Each call takes time for each message
    /// shown, however many wait.
    fn candidates(&self) -> usize {
        4 * OVERCOMMIT
    }

    /// Appends decisions. The policy itself must keep within the budget, and may go beyond it where
    /// else a message would wait for one that is slow.
    fn grant(
        &mut self,
        now: Time,
        messages: &[Grantable],
        budget: GrantBudget,
        decisions: &mut Vec<Granted>,
    );
}

/// A policy that pulls: it grants at the pace of a link (SPEC §9.10). The policy is shown the
/// messages of the pull queue only, in the order that it names, and is also asked when the time of
/// [`Self::next_timeout`] has come. Ranges that the network has trimmed are asked for again at its
/// pace.
pub trait PullPolicy: GrantPolicy {
    /// The messages that the policy wants to be shown.
    fn pulling(&self) -> Pulling;

    /// Whether the pacer permits a pull now. If not, [`Self::next_timeout`] says when it will.
    fn may_pull(&mut self, now: Time) -> bool;

    /// Tells that `bytes` bytes were permitted: by a decision, counted to the end of a record, or
    /// by a question for trimmed bytes.
    fn spend(&mut self, now: Time, bytes: u32);

    /// Tells that `bytes` bytes have come that the pacer had not permitted.
    fn came_unscheduled(&mut self, now: Time, bytes: u32);

    /// When a pull that waits may go; `None` if none waits.
    fn next_timeout(&self) -> Option<Time>;
}

/// The policy of an endpoint.
pub(crate) enum ActivePolicy {
    /// Grants follow what arrives; no time is involved.
    Grant(Box<dyn GrantPolicy>),
    Pull(Box<dyn PullPolicy>),
}

impl ActivePolicy {
    /// The part that decides.
    pub(crate) fn decider(&mut self) -> &mut dyn GrantPolicy {
        match self {
            Self::Grant(policy) => policy.as_mut(),
            Self::Pull(policy) => policy.as_mut(),
        }
    }

    /// The policy, if it pulls.
    pub(crate) fn pull(&self) -> Option<&dyn PullPolicy> {
        match self {
            Self::Grant(_) => None,
            Self::Pull(policy) => Some(policy.as_ref()),
        }
    }

    /// The policy, if it pulls, to tell it something.
    pub(crate) fn pull_mut(&mut self) -> Option<&mut dyn PullPolicy> {
        match self {
            Self::Grant(_) => None,
            Self::Pull(policy) => Some(policy.as_mut()),
        }
    }

    /// When a pull that waits may go.
    pub(crate) fn next_pull(&self) -> Option<Time> {
        self.pull()?.next_timeout()
    }
}
