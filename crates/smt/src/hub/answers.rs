// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and their answers, without the endpoint's lock where another thread has it.

use bytes::Bytes;
use smt_proto::RpcId;
use smt_wire::AbortCode;

use super::Hub;
use crate::answer_queue::Answer;
use crate::core::Core;
use crate::error::ErrorKind;
#[cfg(feature = "tokio")]
use crate::message::Arrival;

impl Hub {
    /// A message that another acceptor has taken for this one.
    #[cfg(feature = "tokio")]
    pub(crate) fn accept_queued(&self) -> Option<Arrival> {
        self.accepted.pop()
    }

    /// Replies to a request whose caller takes at most so many bytes. If a task finds the lock taken, the reply waits for
    /// it, and not the task: then nothing is known yet of a caller that has given up.
    pub(crate) fn reply(&self, rpc: RpcId, body: Bytes, limit: u32) -> Result<(), ErrorKind> {
        let is_too_large = body.len() > limit as usize;
        let reply = Answer::Reply(rpc, body);
        match self.driver.is_some() && !is_too_large {
            true => self.answer_or_queue(reply),
            false => self.change(|core, now| core.answer(now, reply)),
        }
    }

    /// Ends a request without a reply. It may have been given up by its caller: then there is nothing to end.
    pub(crate) fn abort(&self, rpc: RpcId, code: AbortCode) {
        let abort = Answer::Abort(rpc, code);
        // The caller has no use for an error.
        let _ = match self.driver {
            Some(_) => self.answer_or_queue(abort),
            None => self.change(|core, now| core.answer(now, abort)),
        };
    }

    fn answer_or_queue(&self, answer: Answer) -> Result<(), ErrorKind> {
        let Some(core) = self.try_lock() else {
            return match self.answers.push(answer) {
                Ok(()) => {
                    self.take_answers();
                    Ok(())
                }
                // The endpoint is shut down, and says so.
                Err(answer) => self.change(|core, now| core.answer(now, answer)),
            };
        };
        let answer = |core: &mut Core, now| core.answer(now, answer);
        self.change_in(core, self.now(), answer, |_, _, outcome| outcome)
    }

    /// Takes answers that were left while the lock was taken, unless it is taken again: then its holder finds them.
    pub(super) fn take_answers(&self) {
        if self.driver.is_none() {
            return;
        }
        while !self.answers.is_empty() {
            let Some(mut core) = self.try_lock() else {
                return;
            };
            let now = core.advance(self.now());
            let (core, now) = self.send(core, now);
            self.give_back(core, now, Self::wake);
        }
    }
}
