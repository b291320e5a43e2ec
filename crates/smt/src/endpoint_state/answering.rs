// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers to requests of peers.

use smt_proto::{Refused, Time};

use super::EndpointState;
use crate::answer_queue::Answer;
use crate::error::ErrorKind;

impl EndpointState {
    /// Answers a request.
    ///
    /// # Errors
    /// The request needs no answer any more, or this one is too large for its caller. The caller is
    /// then told that.
    pub(crate) fn answer(&mut self, now: Time, answer: Answer) -> Result<(), ErrorKind> {
        self.unanswered = self.unanswered.saturating_sub(1);
        let outcome = match answer {
            Answer::Reply(rpc, message) => {
                self.cork.add(message.body.len());
                let outcome = self.endpoint.reply(now, rpc, message);
                self.hold_back_accepted(rpc.session);
                outcome
            }
            Answer::Fail(rpc, failure) => self.endpoint.fail(now, rpc, failure),
            Answer::Abort(rpc, code) => self.endpoint.abort(now, rpc, code),
        };
        outcome.map_err(|refused| self.why_refused(refused))
    }

    /// The error of an answer or a part that was refused: an endpoint that is shut down says so,
    /// and the call that it was for may be over.
    pub(crate) fn why_refused(&self, refused: Refused) -> ErrorKind {
        match self.why_shut_down() {
            Some(why) => why.into(),
            None => match refused {
                Refused::NoRpc | Refused::NoSession => ErrorKind::CallOver,
                refused => refused.into(),
            },
        }
    }
}
