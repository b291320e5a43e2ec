// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How an application answers requests: at once, later, very late, by a failure or not at all.

use std::time::Duration;

use smt_proto::{Endpoint, Failure as Failed, OutgoingMessage, Refused, RpcId, Time};
use smt_wire::AbortCode;

use super::Player;
use crate::swarm::check::{Content, Received, Report};

/// The answer to a request, and the request.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Reply(OutgoingMessage, Received),
    Fail(Failed, Received),
    Abort(AbortCode, Received),
}

impl Answer {
    /// The request that it answers.
    pub(super) fn request(&self) -> &Received {
        match self {
            Self::Reply(_, request) | Self::Fail(_, request) | Self::Abort(_, request) => request,
        }
    }
}

impl Player {
    /// A request waits for an answer: now, later, or very late if its caller has a deadline.
    pub(super) fn requested(
        &mut self,
        now: Time,
        received: Received,
        has_deadline: bool,
    ) -> (Time, Answer) {
        let body = &received.body;
        let claimed = Content::claimed(body);
        let limit = self.limit_of(received.from);
        let reply = claimed.map_or_else(
            || OutgoingMessage::new(body.clone()),
            |content| content.reply_message(limit),
        );
        let failure = |not_run| match claimed {
            Some(content) => content.failure(not_run),
            None if not_run => Failed::refusal(0, ""),
            None => Failed::failed(0, ""),
        };
        let mut answer = Answer::Reply(reply, received.clone());
        let mut at = now;
        if !self.is_last_round {
            match self.random.below(100) {
                0 if self.random.chance(500_000) => answer = Answer::Fail(failure(true), received),
                0 => answer = Answer::Abort(AbortCode::Overloaded, received),
                1 if self.random.chance(500_000) => answer = Answer::Fail(failure(false), received),
                1 => answer = Answer::Abort(AbortCode::Dropped, received),
                2 if has_deadline => at = now + VERY_LATE,
                3..50 => at = now + Duration::from_micros(self.random.below(5_000)),
                _ => {}
            }
        }
        (at, answer)
    }

    pub(super) fn answer(
        &mut self,
        now: Time,
        rpc: RpcId,
        answer: Answer,
        endpoint: &mut Endpoint,
    ) {
        // The caller may have given up meanwhile: then there is nothing to answer.
        match answer {
            Answer::Reply(body, request) => {
                let length = body.body.len();
                match endpoint.reply(now, rpc, body) {
                    Ok(()) => self.taken(request.from, length as u32),
                    Err(Refused::TooLarge { length, .. }) => {
                        self.replies_too_large += 1;
                        self.refused(request.from, length);
                        self.reports.push(Report::DroppedByApplication(request));
                    }
                    Err(_) => {}
                }
            }
            Answer::Fail(failure, request) => {
                let not_run = failure.not_run;
                if endpoint.fail(now, rpc, failure).is_ok() {
                    self.reports.push(match not_run {
                        true => Report::RefusedByApplication(request),
                        false => Report::DroppedByApplication(request),
                    });
                }
            }
            Answer::Abort(code, request) => {
                if endpoint.abort(now, rpc, code).is_ok() {
                    self.reports.push(match code {
                        AbortCode::Overloaded => Report::RefusedByApplication(request),
                        _ => Report::DroppedByApplication(request),
                    });
                }
            }
        }
    }
}

/// Callers have given up by then, or crashed. Never to answer would be the application's own leak.
const VERY_LATE: Duration = Duration::from_secs(5);
