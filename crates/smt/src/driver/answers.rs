// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and their answers, without the endpoint's lock where another thread has it.

use smt_proto::{Failure, OutgoingMessage, RpcId};
use smt_wire::AbortCode;

use super::Driver;
use crate::answer_queue::Answer;
use crate::endpoint_state::EndpointState;
use crate::error::ErrorKind;
#[cfg(feature = "async")]
use crate::message::Delivered;

impl Driver {
    /// A message that another acceptor has taken for this one.
    #[cfg(feature = "async")]
    pub(crate) fn accept_queued(&self) -> Option<Delivered> {
        self.accepted.pop_wanted(|| self.now())
    }

    /// Replies to a request whose caller takes at most this many bytes. If a task finds the lock
    /// taken, the reply waits for it, and not the task: then nothing is known yet of a caller that
    /// has given up.
    pub(crate) fn reply(
        &self,
        rpc: RpcId,
        message: OutgoingMessage,
        limit: u32,
    ) -> Result<(), ErrorKind> {
        let length = message.body.len() + message.metadata.encoded_len();
        let is_too_large = length > limit as usize;
        let reply = Answer::Reply(rpc, message);
        match self.background.is_some() && !is_too_large {
            true => self.answer_or_queue(reply),
            false => self.change(|state, now| state.answer(now, reply)),
        }
    }

    /// Answers that a request has failed. It may have been given up by its caller: then nothing is
    /// to be said.
    pub(crate) fn fail(&self, rpc: RpcId, failure: Failure) {
        self.end(Answer::Fail(rpc, failure));
    }

    /// Ends a request without a reply. It may have been given up by its caller: then there is
    /// nothing to end.
    pub(crate) fn abort(&self, rpc: RpcId, code: AbortCode) {
        self.end(Answer::Abort(rpc, code));
    }

    fn end(&self, answer: Answer) {
        // The caller has no use for an error.
        let _ = match self.background {
            Some(_) => self.answer_or_queue(answer),
            None => self.change(|state, now| state.answer(now, answer)),
        };
    }

    fn answer_or_queue(&self, answer: Answer) -> Result<(), ErrorKind> {
        let Some(state) = self.try_lock() else {
            return match self.answers.push(answer) {
                Ok(()) => {
                    self.take_answers();
                    Ok(())
                }
                // The endpoint is shut down, and says so.
                Err(answer) => self.change(|state, now| state.answer(now, answer)),
            };
        };
        let answer = |state: &mut EndpointState, now| state.answer(now, answer);
        self.change_in(state, self.now(), answer, |_, _, outcome| outcome)
    }

    /// Takes answers that were left while the lock was taken, unless it is taken again: then its
    /// holder finds them.
    pub(super) fn take_answers(&self) {
        if self.background.is_none() {
            return;
        }
        while !self.answers.is_empty() {
            let Some(mut state) = self.try_lock() else {
                return;
            };
            let now = state.advance(self.now());
            let (state, now) = self.send(state, now);
            self.give_back(state, now, Self::wake);
        }
    }
}
