// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An RPC or one-way message that this side initiated.
//!
//! ```text
//!   live ── reply whole / ACK ──▶ (gone)
//!    │ deadline, cancel
//!    ▼
//!   cancelling ── VOIDED, SEEN, SEEN_AND_GONE ──▶ (gone)
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use smt_wire::{Kind, MessageId};

use crate::limits::RESEND_INTERVAL_MAX;
use crate::message::incoming::Incoming;
use crate::message::outgoing::Outgoing;
use crate::recovery::retry_timer::RetryTimer;
use crate::time::Time;

/// The state of an id that this side initiated.
#[derive(Debug)]
pub(crate) enum Call {
    /// The application waits.
    Live(LiveCall),
    /// The application has given up, or a bundle was kept for long enough; the peer is told until
    /// it answers.
    Cancelling { retry: RetryTimer, is_bundle: bool },
}

impl Call {
    /// The outgoing message of the id.
    pub(crate) fn outgoing_mut(&mut self) -> Option<&mut Outgoing> {
        match self {
            Self::Live(live) => live.outgoing.as_mut(),
            Self::Cancelling { .. } => None,
        }
    }
}

/// A call, or a one-way message, in progress.
#[derive(Debug)]
pub(crate) struct LiveCall {
    /// The request; `None` once the reply has begun, or if it has left in a bundle.
    pub(crate) outgoing: Option<Outgoing>,
    /// The reply, from its record 0 on, while it is incomplete.
    pub(crate) incoming: Option<Box<Incoming>>,
    pub(crate) is_one_way: bool,
    pub(crate) retry: RetryTimer,
    pub(crate) deadline: Option<Time>,
    /// Record-stream bytes of the reply that the peer may send without a grant.
    pub(crate) reply_unscheduled: u32,
    /// Whether the peer is known to have marked the id as seen.
    pub(crate) is_seen: bool,
    /// Whether the request has left again ahead of a first probe, which it does once.
    pub(crate) went_again: bool,
    /// The bundle that it has left in, until that is acknowledged. Then `outgoing` is `None` too.
    pub(crate) bundle: Option<MessageId>,
    /// The members that have left in it, if it is a bundle itself.
    pub(crate) members: Option<Box<Members>>,
}

/// The messages that have left in a bundle; at least one.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) ids: Vec<MessageId>,
    /// Requests among them that were answered: when all are, the bundle has arrived.
    pub(crate) answered: usize,
    /// Bytes of replies that are kept until then.
    pub(crate) replies: u32,
    /// Whether any member is no reply.
    pub(crate) has_others: bool,
    /// When the bundle may leave again because the peer asks about a member; `None` if it has not
    /// yet.
    again: Option<RetryTimer>,
}

impl Members {
    /// Takes a question of the peer about a member. Returns whether the bundle leaves again for it:
    /// at most once in an interval, which doubles, however many members are asked about (SPEC
    /// §5.7).
    pub(crate) fn leave_again(&mut self, now: Time, interval: Duration) -> bool {
        match &mut self.again {
            Some(again) if now < again.due => return false,
            Some(again) => {
                again.ask(now, RESEND_INTERVAL_MAX);
            }
            // Members that were lost with it are asked about at nearly the same time.
            before => *before = Some(RetryTimer::new(now, interval / 2)),
        }
        true
    }
}

/// The fields of a message's header beside its length (SPEC §5.2, §5.7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) kind: Kind,
    pub(crate) deadline_us: u32,
    pub(crate) reply_unscheduled: u32,
}

impl Terms {
    /// The terms of a message that is no request.
    pub(crate) const fn of(kind: Kind) -> Self {
        Self {
            kind,
            deadline_us: 0,
            reply_unscheduled: 0,
        }
    }
}

impl LiveCall {
    /// A call that waits to leave, without deadline.
    pub(crate) fn new(outgoing: Outgoing, retry: RetryTimer) -> Self {
        Self {
            outgoing: Some(outgoing),
            incoming: None,
            is_one_way: false,
            retry,
            deadline: None,
            reply_unscheduled: 0,
            is_seen: false,
            went_again: false,
            bundle: None,
            members: None,
        }
    }

    /// Whether it is a bundle: no message of the application, but one in which several of them
    /// travel.
    pub(crate) fn is_bundle(&self) -> bool {
        self.members.is_some()
    }

    /// Whether it is a bundle of replies alone, which is given up like a reply.
    pub(crate) fn is_bundle_of_replies(&self) -> bool {
        let members = self.members.as_deref();
        members.is_some_and(|members| !members.has_others)
    }

    /// Whether any record has left: only then can the call have run. A member of a bundle counts as
    /// having left, although its bundle may wait.
    pub(crate) fn has_left(&self) -> bool {
        self.outgoing.as_ref().is_none_or(Outgoing::has_started)
    }

    /// The terms of its header if it leaves now.
    pub(crate) fn terms(&self, now: Time) -> Terms {
        match (self.is_bundle(), self.is_one_way) {
            (true, _) => Terms::of(Kind::Bundle),
            (false, true) => Terms::of(Kind::OneWay),
            (false, false) => Terms {
                kind: Kind::Request,
                deadline_us: self
                    .deadline
                    .map_or(0, |deadline| micros_left(deadline, now)),
                reply_unscheduled: self.reply_unscheduled,
            },
        }
    }

    /// The next moment at which a timer of the call is due.
    pub(crate) fn due(&self) -> Time {
        self.deadline
            .map_or(self.retry.due, |deadline| deadline.min(self.retry.due))
    }
}

/// The deadline field of a header (SPEC §5.2); at least 1, since 0 would mean no deadline.
fn micros_left(deadline: Time, now: Time) -> u32 {
    u32::try_from(deadline.since(now).as_micros())
        .unwrap_or(u32::MAX)
        .max(1)
}

// Calls are moved when tables grow and shrink, with every message: state that a call needs only
// sometimes is elsewhere.
const _: () = assert!(size_of::<Call>() <= 192);
