// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One message that an application sent, and its fate.
//!
//! ```text
//!   sent ── delivered? ── answered? ── ended
//! ```
//! Every transition that would break a promise panics: delivered twice or changed, ended twice,
//! ended with a reply that was never given, run although it "did not run".

use std::fmt;

use bytes::Bytes;
use smt_proto::{CallError, CallFailure, Execution, OneWayOutcome, Time};
use smt_wire::AbortCode;

use super::parts::{HasParts, Parts};

/// A request or one-way message.
pub(crate) struct Message {
    /// The node that sent it.
    pub(crate) from: usize,
    pub(crate) body: Bytes,
    pub(crate) kind: Kind,
    pub(crate) deadline: Option<Time>,
    pub(crate) is_delivered: bool,
    pub(crate) answer: Answer,
    /// The sending application gave it up.
    is_cancelled: bool,
    end: Option<End>,
    /// Whether it is a call in parts, and those of its request and reply.
    pub(crate) has_parts: Option<HasParts>,
    pub(crate) parts: [Parts; 2],
}

/// The kind of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    OneWay,
    Request(Plan),
}

/// The plan of the other application for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// It replies at once, with this many bytes.
    Reply(usize),
    /// It refuses at once.
    Abort(AbortCode),
    /// It waits for a step of the script.
    Hold,
}

/// The answer that the other application has given.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Nothing.
    None,
    Reply(Bytes),
    Abort(AbortCode),
    /// It was told that no caller waits any more.
    Withdrawn,
}

/// How it ended for its sender.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// Replied, or delivered.
    Well,
    DidNotRun,
    MayHaveRun,
}

impl Message {
    pub(crate) fn new(from: usize, body: Bytes, kind: Kind, deadline: Option<Time>) -> Self {
        Self {
            from,
            body,
            kind,
            deadline,
            is_delivered: false,
            answer: Answer::None,
            is_cancelled: false,
            end: None,
            has_parts: None,
            parts: Default::default(),
        }
    }

    /// The same as a call in parts.
    pub(crate) fn in_parts(mut self, has_parts: HasParts) -> Self {
        self.has_parts = Some(has_parts);
        self
    }

    /// It reached the other application.
    pub(crate) fn deliver(&mut self, body: &Bytes, is_one_way: bool) {
        assert!(!self.is_delivered, "delivered twice");
        assert_eq!(matches!(self.kind, Kind::OneWay), is_one_way);
        assert!(self.body == body, "other bytes arrived than were sent");
        assert!(self.end != Some(End::DidNotRun), "it runs after it did not");
        self.is_delivered = true;
    }

    /// The application that has the request is told that no caller waits.
    pub(crate) fn withdraw(&mut self) {
        assert!(self.is_worked_on(), "nobody works on it");
        self.answer = Answer::Withdrawn;
    }

    /// The sending application gave it up; `was_live` is the endpoint's answer.
    pub(crate) fn cancel(&mut self, was_live: bool) {
        assert_eq!(was_live, self.is_live());
        self.is_cancelled |= was_live;
    }

    pub(crate) fn replied(&mut self, body: &Bytes) {
        match &self.answer {
            Answer::Reply(reply) => assert!(reply == body, "other bytes were replied"),
            other => panic!("a reply that nobody gave: {other:?}"),
        }
        assert!(self.parts[1].are_taken(), "a reply before its parts");
        self.finish(End::Well);
    }

    pub(crate) fn failed(&mut self, error: &CallError, now: Time) {
        assert!(matches!(self.kind, Kind::Request(_)));
        let refusal = match error.reason {
            CallFailure::Dropped => Some(AbortCode::Dropped),
            CallFailure::Overloaded => Some(AbortCode::Overloaded),
            CallFailure::TooLarge => Some(AbortCode::TooLarge),
            CallFailure::ReplyTooLarge => Some(AbortCode::ReplyTooLarge),
            _ => None,
        };
        match (refusal, &self.answer) {
            (Some(code), Answer::Abort(given)) => {
                assert_eq!(code, *given);
                assert_eq!(error.execution == Execution::MayHaveRun, may_have_run(code));
                // It is the application's word that it did not run.
                return self.finish(End::MayHaveRun);
            }
            (Some(_), answer) => panic!("{error}, but the answer is {answer:?}"),
            (None, _) => {}
        }
        self.check_reason(&error.reason, now);
        let is_refused = matches!(self.answer, Answer::Abort(code) if !may_have_run(code));
        self.finish(match error.execution {
            // The refusal came after the deadline, and before the caller was told.
            Execution::DidNotRun if is_refused => End::MayHaveRun,
            Execution::DidNotRun => End::DidNotRun,
            Execution::MayHaveRun => End::MayHaveRun,
        });
    }

    pub(crate) fn one_way_done(&mut self, outcome: &OneWayOutcome, now: Time) {
        assert!(matches!(self.kind, Kind::OneWay));
        match outcome {
            OneWayOutcome::Delivered => {
                assert!(self.is_delivered, "acknowledged but not delivered");
                self.finish(End::Well);
            }
            OneWayOutcome::NotDelivered(reason) => {
                self.check_reason(reason, now);
                self.finish(End::DidNotRun);
            }
            OneWayOutcome::MayHaveBeenDelivered(reason) => {
                self.check_reason(reason, now);
                self.finish(End::MayHaveRun);
            }
        }
    }

    /// It waits for its end.
    pub(crate) fn is_live(&self) -> bool {
        self.end.is_none()
    }

    /// Whether one of the applications may send parts of its request, or of its reply.
    pub(crate) fn has_writer(&self, of_reply: bool) -> bool {
        let is_in_progress = !self.is_cancelled && self.is_live();
        self.has_parts.is_some_and(|has| match of_reply {
            true => has.of_reply && self.is_worked_on(),
            false => has.of_request && is_in_progress,
        })
    }

    /// Whether the other application of the two may take them.
    pub(crate) fn has_reader(&self, of_reply: bool) -> bool {
        self.has_parts.is_some_and(|has| match of_reply {
            true => has.of_reply && self.is_live(),
            false => has.of_request && self.is_worked_on(),
        })
    }

    /// The other application has it and has not answered.
    pub(crate) fn is_worked_on(&self) -> bool {
        let is_request = matches!(self.kind, Kind::Request(_));
        is_request && self.is_delivered && matches!(self.answer, Answer::None)
    }

    fn check_reason(&self, reason: &CallFailure, now: Time) {
        match reason {
            CallFailure::Cancelled => assert!(self.is_cancelled, "nobody cancelled it"),
            CallFailure::DeadlineExceeded => {
                let is_over = self.deadline.is_some_and(|deadline| deadline <= now);
                assert!(is_over, "{:?} is not over at {now:?}", self.deadline);
            }
            _ => {}
        }
    }

    fn finish(&mut self, end: End) {
        assert_eq!(self.end, None, "it ended twice");
        assert!(end != End::DidNotRun || !self.is_delivered, "it ran, and is said not to have run");
        self.end = Some(end);
    }
}

/// Whether the word of the other application is that the request may have run.
fn may_have_run(code: AbortCode) -> bool {
    matches!(code, AbortCode::Dropped | AbortCode::ReplyTooLarge)
}

/// Without bodies, which are long and say nothing.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            from,
            body,
            kind,
            deadline,
            is_delivered,
            answer,
            is_cancelled,
            end,
            has_parts,
            parts: _,
        } = self;
        write!(
            f,
            "{kind:?} of {} bytes from node {from}, deadline {deadline:?}, delivered {is_delivered}, \
             answer {answer:?}, cancelled {is_cancelled}, end {end:?}, {has_parts:?}",
            body.len()
        )
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Reply(body) => write!(f, "{} bytes", body.len()),
            Self::Abort(code) => code.fmt(f),
            Self::Withdrawn => f.write_str("withdrawn"),
        }
    }
}
