// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The seam at which a receiver decides which messages may send more, and how much (SPEC §9.2).
//!
//! What a policy is shown of a message, what it decides, and the budget it decides within. Homa's
//! is in `shortest_remaining`, NDP's in `pull`.
//!
//! Not here: which messages a policy is shown (`grants`).

use crate::event::RpcId;
use crate::grant::ndp::pull::PullOrder;
use crate::limits::OVERCOMMIT;
use crate::time::Time;
use alloc::vec::Vec;

/// A message that needs grants. Offsets count in its record stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Grantable {
    /// Which.
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
    /// Which.
    pub rpc: RpcId,
    /// The new end of what may be sent.
    pub end: u32,
    /// Priority of those bytes, 0..7, 7 most urgent.
    pub priority: u8,
}

/// Bytes that the endpoint has granted, over all messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GrantBudget {
    /// The most that may be granted and not yet arrived ([`crate::Config::incoming_max`]).
    pub limit: u32,
    /// What is granted and has not arrived; of messages that a policy no longer looks at, too, but
    /// not of those that are limited by their senders.
    pub outstanding: u64,
    /// The same of those that are limited by their senders.
    pub sender_limited: u64,
}

impl GrantBudget {
    /// What may still be granted.
    #[must_use]
    pub fn left(&self) -> u32 {
        u64::from(self.limit).saturating_sub(self.outstanding) as u32
    }

    /// The same budget for messages that are limited by their senders: what these hold is part of
    /// it.
    pub(crate) fn of_sender_limited(self) -> Self {
        Self {
            outstanding: self.outstanding + self.sender_limited,
            sender_limited: 0,
            ..self
        }
    }
}

/// What a policy that pulls wants to be shown (SPEC §9.10).
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

/// Decides which messages may send more. Called whenever something has changed, or when its own
/// time has come.
///
/// A policy that has a pace says so by [`Self::pulls`] and has the methods after it; others have no
/// use for time.
pub trait GrantPolicy: Send {
    /// How many messages it chooses among. It sees so many of those with the fewest bytes left, of
    /// one session at most half of them while another's wait; behind them as many of those that are
    /// limited by their senders, chosen likewise; and behind those the oldest one, if it is not
    /// among them. A look costs time for each, however many wait.
    fn candidates(&self) -> usize {
        4 * OVERCOMMIT
    }

    /// Appends decisions. To stay within the budget is the policy's own affair, and so is going
    /// beyond it where else a message would wait for one that is slow.
    fn grant(
        &mut self,
        now: Time,
        messages: &[Grantable],
        budget: GrantBudget,
        decisions: &mut Vec<Granted>,
    );

    /// Whether it pulls: then it is shown hungry messages only, in its order, and what the network
    /// has trimmed is asked for again at its pace.
    fn pulls(&self) -> Option<Pulling> {
        None
    }

    /// Whether its pace lets something go now. If not, [`Self::next_timeout`] says when.
    fn may_pull(&mut self, _now: Time) -> bool {
        false
    }

    /// So many bytes were let go, by a decision (to the end of a record) or by asking again.
    fn spend(&mut self, _now: Time, _bytes: u32) {}

    /// So many bytes have come that were not let go.
    fn came_unscheduled(&mut self, _now: Time, _bytes: u32) {}

    /// When something that waits may go. Nothing waits: no time.
    fn next_timeout(&self) -> Option<Time> {
        None
    }
}
