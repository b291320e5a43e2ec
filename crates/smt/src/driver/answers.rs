// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and their answers, without the endpoint's lock where another thread has it.

use bytes::Bytes;
use smt_proto::RpcId;
use smt_wire::AbortCode;

use super::Driver;
use crate::answer_queue::Answer;
use crate::endpoint_state::EndpointState;
use crate::error::ErrorKind;
#[cfg(feature = "tokio")]
use crate::message::Incoming;

impl Driver {
    /// A message that another acceptor has taken for this one.
    #[cfg(feature = "tokio")]
    pub(crate) fn accept_queued(&self) -> Option<Incoming> {
        self.accepted.pop()
    }

    /// Replies to a request whose caller takes at most this many bytes. If a task finds the lock
    /// taken, the reply waits for it, and not the task: then nothing is known yet of a caller that
    /// has given up.
    pub(crate) fn reply(&self, rpc: RpcId, body: Bytes, limit: u32) -> Result<(), ErrorKind> {
        let is_too_large = body.len() > limit as usize;
        let reply = Answer::Reply(rpc, body);
        match self.background.is_some() && !is_too_large {
            true => self.answer_or_queue(reply),
            false => self.change(|state, now| state.answer(now, reply)),
        }
    }

    /// Ends a request without a reply. It may have been given up by its caller: then there is
    /// nothing to end.
    pub(crate) fn abort(&self, rpc: RpcId, code: AbortCode) {
        let abort = Answer::Abort(rpc, code);
        // The caller has no use for an error.
        let _ = match self.background {
            Some(_) => self.answer_or_queue(abort),
            None => self.change(|state, now| state.answer(now, abort)),
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
