// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An RPC or one-way message that this side initiated.
//!
//! ```text
//!   live ── reply whole / ACK ──▶ (gone)
//!    │ deadline, cancel
//!    ▼
//!   cancelling ── VOIDED, SEEN, SEEN_AND_GONE ──▶ (gone)
//! ```

use smt_wire::MessageId;

use crate::incoming::Incoming;
use crate::outgoing::Outgoing;
use crate::question::Question;
use crate::time::Time;

/// What this side waits for under an id that it initiated.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all entries are live calls; a box would cost an allocation per message"
)]
pub(crate) enum Call {
    /// The application waits.
    Live(LiveCall),
    /// The application has given up; the peer is told until it answers.
    Cancelling(Question),
}

/// A call, or a one-way message, in progress.
#[derive(Debug)]
pub(crate) struct LiveCall {
    /// The request; `None` once the reply has begun, or if it has left in a bundle.
    pub(crate) outgoing: Option<Outgoing>,
    /// The reply, from its record 0 on.
    pub(crate) incoming: Option<Incoming>,
    pub(crate) is_one_way: bool,
    pub(crate) question: Question,
    pub(crate) deadline: Option<Time>,
    /// Record-stream bytes of the reply that the peer may send without a grant.
    pub(crate) reply_unscheduled: u32,
    /// Whether the peer is known to have marked the id as seen.
    pub(crate) is_seen: bool,
    /// The bundle that it has left in, until that is acknowledged. Then `outgoing` is `None` too.
    pub(crate) bundle: Option<MessageId>,
    /// What has left in it, if it is a bundle itself; a bundle is never without.
    pub(crate) members: Vec<MessageId>,
}

impl LiveCall {
    /// A call that waits to leave, without deadline.
    pub(crate) fn new(outgoing: Outgoing, question: Question) -> Self {
        Self {
            outgoing: Some(outgoing),
            incoming: None,
            is_one_way: false,
            question,
            deadline: None,
            reply_unscheduled: 0,
            is_seen: false,
            bundle: None,
            members: Vec::new(),
        }
    }

    /// Whether it is a bundle: no message of the application, but what several of them travel in.
    pub(crate) fn is_bundle(&self) -> bool {
        !self.members.is_empty()
    }

    /// Whether any record has left: only then can it have run. Of a member it is assumed, though its bundle may wait.
    pub(crate) fn has_left(&self) -> bool {
        self.outgoing.as_ref().is_none_or(Outgoing::has_started)
    }

    /// The next moment that something is to be done.
    pub(crate) fn due(&self) -> Time {
        self.deadline.map_or(self.question.due, |deadline| {
            deadline.min(self.question.due)
        })
    }
}
