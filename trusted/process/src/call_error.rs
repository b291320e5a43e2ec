// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a request has no answer.

use smt_mesh::SessionError;
use smt_replica::{Refusal, RefusalReason};

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Sessions cannot be had.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Too few members answer.
    #[error(
        "the {members}: no answer of f + 1 of them in {seconds} seconds; the request {}",
        if *.is_sent { "may have run, or may yet" } else { "was not sent" }
    )]
    Deadline {
        /// The word for them.
        members: &'static str,
        /// How long they had.
        seconds: u64,
        /// Whether the request was sent: what begins a session goes before it.
        is_sent: bool,
    },
    /// The group does not execute the request.
    #[error("the {members}: {}; the request {}", reason(refusal), fate(refusal))]
    Refused {
        /// The word for them.
        members: &'static str,
        /// The refusal.
        refusal: Refusal,
    },
    /// A request's session was over twice before the group had it.
    #[error(
        "the {members}: more than eight processes of this client are active, and end each other's \
         sessions; the request did not run: run fewer at a time, or give some another client"
    )]
    TooManyProcesses {
        /// The word for them.
        members: &'static str,
    },
    /// A protocol begins no request, though it has none in progress.
    #[error("this client: its protocol begins no request; the next one was not sent")]
    NotBegun,
    /// This process has closed its sessions.
    #[error("this client: its endpoint was closed before an answer came")]
    Ended,
    /// The operation is longer than the group permits.
    #[error("your request: {0} bytes are more than the group's operation_bytes, {1}")]
    TooLong(usize, usize),
    /// There is no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

fn reason(refusal: &Refusal) -> &'static str {
    match refusal.reason {
        RefusalReason::SessionIsOver => {
            "this client's session is over, since eight others of the client were used after it"
        }
        RefusalReason::NumberIsTooLow => "the request's number is too low for its session",
        RefusalReason::NumberIsUsed => "another request of this client had the request's number",
        RefusalReason::AnswerIsGone => "the request's answer is no longer kept",
    }
}

fn fate(refusal: &Refusal) -> &'static str {
    match (refusal.reason, refusal.may_have_run) {
        (RefusalReason::AnswerIsGone, _) => "has run",
        (_, true) => "may have run, and will not run again",
        (_, false) => "did not run, and will not",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_by_name_whether_the_request_ran() {
        let text = |reason, may_have_run| {
            let refusal = Refusal { reason, may_have_run, newest: 0 };
            CallError::Refused { members: "replicas", refusal }.to_string()
        };
        assert_eq!(
            text(RefusalReason::NumberIsUsed, false),
            "the replicas: another request of this client had the request's number; the request \
             did not run, and will not"
        );
        let over = text(RefusalReason::SessionIsOver, true);
        assert!(over.ends_with("may have run, and will not run again"), "{over}");
        assert!(text(RefusalReason::AnswerIsGone, true).ends_with("has run"));
    }
}
