// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A request, one-way message or bundle that this side initiated.
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
use crate::message::outgoing::{Marks, Outgoing};
use crate::recovery::retry_timer::RetryTimer;
use crate::time::Time;

/// The state of an id that this side initiated.
#[derive(Debug)]
pub(crate) enum ClientMessage {
    /// The application waits.
    Live(LiveMessage),
    /// The application has given up, or a bundle was kept for long enough; the peer is told until
    /// it answers.
    Cancelling(Cancelling),
}

/// A message that was given up, until the peer has answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cancelling {
    pub(crate) retry: RetryTimer,
    pub(crate) is_bundle: bool,
    /// The outcome of a message whose deadline has passed, while the application is not told of it.
    pub(crate) untold: Option<Untold>,
}

/// An outcome that the peer's answer to CANCEL decides (SPEC §9.7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Untold {
    /// When the application is told, though no answer has come.
    pub(crate) until: Time,
    pub(crate) is_request: bool,
}

impl Cancelling {
    /// A message of which the application is told.
    pub(crate) fn new(retry: RetryTimer) -> Self {
        Self { retry, is_bundle: false, untold: None }
    }

    /// The next moment at which a timer of it is due.
    pub(crate) fn due(&self) -> Time {
        self.untold.map_or(self.retry.due, |untold| untold.until.min(self.retry.due))
    }
}

/// A message in progress.
#[derive(Debug)]
pub(crate) struct LiveMessage {
    pub(crate) content: Content,
    /// The message on its way out; `None` once the reply has begun, or if the message has left in a
    /// bundle.
    pub(crate) outgoing: Option<Outgoing>,
    pub(crate) retry: RetryTimer,
    /// When the application gives up.
    pub(crate) deadline: Option<Time>,
    /// Whether the peer is known to have marked the id as seen.
    pub(crate) is_seen: bool,
    /// Whether the message has left again ahead of a first probe, which it does once.
    pub(crate) is_repeated: bool,
    /// The bundle that the message has left in, until that is acknowledged. Then `outgoing` is
    /// `None` too. A bundle is in no other bundle.
    pub(crate) bundle: Option<MessageId>,
}

/// The kind of a message, with the state that only this kind has.
#[derive(Debug)]
pub(crate) enum Content {
    Request(ExpectedReply),
    OneWay,
    /// A part of a call, which ends without the application being told.
    Part(SentPart),
    /// No message of the application, but one in which several of them travel.
    Bundle(Box<Members>),
}

/// A part of a call that the peer has not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPart {
    pub(crate) request: MessageId,
    /// Bytes that the memory account has of it among the replies; none of a part of a request.
    pub(crate) kept: u32,
}

/// The reply that a request expects.
#[derive(Debug)]
pub(crate) struct ExpectedReply {
    /// The reply, from its record 0 on, while it is incomplete.
    pub(crate) incoming: Option<Box<Incoming>>,
    /// Record-stream bytes of the reply that the peer may send without a grant.
    pub(crate) unscheduled: u32,
}

/// The messages that have left in a bundle; at least one.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub(crate) ids: Vec<MessageId>,
    /// Requests among them that were answered: when all are, the bundle has arrived.
    pub(crate) answered: usize,
    /// Bytes of replies, and of parts of replies, that are kept until then.
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
pub(crate) struct HeaderFields {
    pub(crate) kind: Kind,
    pub(crate) deadline_us: u32,
    pub(crate) reply_unscheduled: u32,
    pub(crate) marks: Marks,
}

impl HeaderFields {
    /// The terms of a message without deadline that is no request.
    pub(crate) fn of(kind: Kind) -> Self {
        Self { kind, deadline_us: 0, reply_unscheduled: 0, marks: Marks::default() }
    }

    /// The terms of a reply with these marks.
    pub(crate) fn of_reply(marks: Marks) -> Self {
        Self { marks, ..Self::of(Kind::Reply) }
    }
}

impl LiveMessage {
    /// A message that waits to leave, without deadline.
    pub(crate) fn new(content: Content, outgoing: Outgoing, retry: RetryTimer) -> Self {
        Self {
            content,
            outgoing: Some(outgoing),
            retry,
            deadline: None,
            is_seen: false,
            is_repeated: false,
            bundle: None,
        }
    }

    pub(crate) fn is_request(&self) -> bool {
        matches!(self.content, Content::Request(_))
    }

    pub(crate) fn is_part(&self) -> bool {
        matches!(self.content, Content::Part(_))
    }

    /// The part that it is, if it is one.
    pub(crate) fn part(&self) -> Option<SentPart> {
        match self.content {
            Content::Part(part) => Some(part),
            _ => None,
        }
    }

    pub(crate) fn is_bundle(&self) -> bool {
        matches!(self.content, Content::Bundle(_))
    }

    /// Whether it is a bundle of replies alone, which is given up like a reply.
    pub(crate) fn is_bundle_of_replies(&self) -> bool {
        matches!(&self.content, Content::Bundle(members) if !members.has_others)
    }

    /// The reply, while it is incomplete; `None` if no record of it has opened, or no reply is
    /// expected.
    pub(crate) fn incoming(&self) -> Option<&Incoming> {
        match &self.content {
            Content::Request(reply) => reply.incoming.as_deref(),
            Content::OneWay | Content::Part(_) | Content::Bundle(_) => None,
        }
    }

    /// The reply, while it is incomplete, to change it.
    pub(crate) fn incoming_mut(&mut self) -> Option<&mut Incoming> {
        match &mut self.content {
            Content::Request(reply) => reply.incoming.as_deref_mut(),
            Content::OneWay | Content::Part(_) | Content::Bundle(_) => None,
        }
    }

    /// Whether a reply is expected of which no record has opened.
    pub(crate) fn waits_for_reply(&self) -> bool {
        matches!(&self.content, Content::Request(reply) if reply.incoming.is_none())
    }

    /// Whether any record has left: only then can the call have run. A member of a bundle counts as
    /// having left, although its bundle may wait.
    pub(crate) fn has_left(&self) -> bool {
        self.outgoing.as_ref().is_none_or(Outgoing::has_started)
    }

    /// The fields of its header if it leaves now.
    pub(crate) fn header_fields(&self, now: Time) -> HeaderFields {
        let deadline_us = self.deadline.map_or(0, |deadline| micros_left(deadline, now));
        let outgoing = self.outgoing.as_ref();
        let marks = outgoing.map_or_else(Marks::default, Outgoing::marks);
        match &self.content {
            Content::Bundle(_) => HeaderFields::of(Kind::Bundle),
            Content::Part(_) => HeaderFields { marks, ..HeaderFields::of(Kind::Part) },
            Content::OneWay => {
                HeaderFields { deadline_us, marks, ..HeaderFields::of(Kind::OneWay) }
            }
            Content::Request(reply) => HeaderFields {
                kind: Kind::Request,
                deadline_us,
                reply_unscheduled: reply.unscheduled,
                marks,
            },
        }
    }

    /// The next moment at which a timer of the message is due.
    pub(crate) fn due(&self) -> Time {
        self.deadline.map_or(self.retry.due, |deadline| deadline.min(self.retry.due))
    }
}

/// The deadline field of a header (SPEC §5.2); at least 1, since 0 would mean no deadline.
fn micros_left(deadline: Time, now: Time) -> u32 {
    u32::try_from(deadline.since(now).as_micros()).unwrap_or(u32::MAX).max(1)
}

// Messages are moved when tables grow and shrink, with every message: state that a message needs
// only sometimes is elsewhere.
const _: () = assert!(size_of::<ClientMessage>() <= 192);

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    // SMT [5.7-37]
    #[test]
    fn a_bundle_leaves_again_after_half_an_interval_that_doubles_to_half_a_second() {
        let interval = Duration::from_millis(6);
        let (mut members, mut now) = (Members::default(), Time::default());
        let mut waits = Vec::new();
        let mut last = now;
        assert!(members.leave_again(now, interval));
        while waits.len() < 9 {
            now = now + Duration::from_millis(1);
            if members.leave_again(now, interval) {
                waits.push(now.since(last).as_millis());
                last = now;
            }
        }
        assert_eq!(waits, [3, 6, 12, 24, 48, 96, 192, 384, 500]);
    }
}
