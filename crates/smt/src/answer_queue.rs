// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers that wait for the endpoint's lock, so that the handlers that give them do not have to.
//!
//! 1. A handler that finds the lock taken leaves its answer here ([`AnswerQueue::push`]), and tries
//!    the lock once more.
//! 2. The lock's holder looks here after giving it back ([`AnswerQueue::is_empty`]), and takes it
//!    again for what is there.
//!
//! Either the handler or the holder sees the answer, since both write before they read: either the
//! lock was free when the handler tried again, or its holder gives it back later than that, and
//! looks.

use smt_proto::{Failure, OutgoingMessage, RpcId};
use smt_wire::AbortCode;

use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError, fence};

/// How the application has answered a request.
#[derive(Debug)]
pub(crate) enum Answer {
    Reply(RpcId, OutgoingMessage),
    /// The request has failed, as the application says.
    Fail(RpcId, Failure),
    /// Without a reply, for this reason.
    Abort(RpcId, AbortCode),
}

/// Answers in the order in which they were given. At most one for each request in progress.
#[derive(Debug)]
pub(crate) struct AnswerQueue {
    state: Mutex<State>,
    length: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Answer>,
    is_closed: bool,
}

impl AnswerQueue {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), length: AtomicUsize::new(0) }
    }

    /// Leaves an answer. The lock is to be tried after this.
    ///
    /// # Errors
    /// The queue is closed: the giver of the answer is to learn what has become of the endpoint.
    pub(crate) fn push(&self, answer: Answer) -> Result<(), Answer> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(answer);
        }
        state.waiting.push(answer);
        self.length.store(state.waiting.len(), Ordering::SeqCst);
        drop(state);
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Whether no answer waits. The holder asks this right after it has given the lock back.
    pub(crate) fn is_empty(&self) -> bool {
        fence(Ordering::SeqCst);
        self.length.load(Ordering::SeqCst) == 0
    }

    /// All answers that wait. Only the lock's holder takes them.
    pub(crate) fn take(&self) -> Vec<Answer> {
        if self.length.load(Ordering::SeqCst) == 0 {
            return Vec::new();
        }
        let mut state = self.lock();
        self.length.store(0, Ordering::SeqCst);
        std::mem::take(&mut state.waiting)
    }

    /// Closes the queue for further answers; those that wait are still to be taken.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_wire::{MessageId, SessionIndex};

    fn reply(id: u64) -> Answer {
        let rpc = RpcId { session: SessionIndex(1), id: MessageId(id) };
        Answer::Reply(rpc, OutgoingMessage::default())
    }

    #[test]
    fn answers_keep_their_order_and_are_taken_once() {
        let queue = AnswerQueue::new();
        assert!(queue.is_empty() && queue.take().is_empty());
        queue.push(reply(1)).unwrap();
        queue.push(reply(2)).unwrap();
        assert!(!queue.is_empty());
        let ids: Vec<u64> = queue
            .take()
            .iter()
            .map(|answer| match answer {
                Answer::Reply(rpc, _) | Answer::Fail(rpc, _) | Answer::Abort(rpc, _) => rpc.id.0,
            })
            .collect();
        assert_eq!(ids, [1, 2]);
        assert!(queue.is_empty() && queue.take().is_empty());
    }

    #[test]
    fn closed_queue_gives_answers_back() {
        let queue = AnswerQueue::new();
        queue.push(reply(1)).unwrap();
        queue.close();
        assert!(queue.push(reply(2)).is_err());
        assert_eq!(queue.take().len(), 1);
    }
}
