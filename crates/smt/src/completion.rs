// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The outcome of one message, in a slot that the endpoint fills, and that the sender empties
//! without the endpoint's lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use foldhash::{HashMap, HashMapExt};
use smt_proto::RpcId;

use crate::sync::{Mutex, MutexGuard, PoisonError};

/// A slot for one outcome, and the waker of its sender.
#[derive(Debug)]
pub(crate) struct Completion<T>(Mutex<State<T>>);

#[derive(Debug)]
enum State<T> {
    Waiting(Option<Waker>),
    Ended(T),
    Taken,
}

impl<T> Completion<T> {
    fn new() -> Self {
        Self(Mutex::new(State::Waiting(None)))
    }

    /// Fills the slot. Returns the waker of a sender that waits.
    fn finish(&self, outcome: T) -> Option<Waker> {
        match std::mem::replace(&mut *self.lock(), State::Ended(outcome)) {
            State::Waiting(waker) => waker,
            State::Ended(_) | State::Taken => None,
        }
    }

    /// The outcome, once; else `waker` is woken when it is there.
    ///
    /// # Panics
    /// If it was taken.
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<T> {
        let mut state = self.lock();
        match &mut *state {
            State::Waiting(Some(known)) => known.clone_from(waker),
            State::Waiting(none) => *none = Some(waker.clone()),
            State::Ended(_) => {
                if let State::Ended(outcome) = std::mem::replace(&mut *state, State::Taken) {
                    return Poll::Ready(outcome);
                }
            }
            State::Taken => panic!("an outcome was taken twice"),
        }
        Poll::Pending
    }

    /// A look at the outcome, if it is there and was not taken.
    pub(crate) fn look<U>(&self, look: impl FnOnce(&T) -> U) -> Option<U> {
        match &*self.lock() {
            State::Ended(outcome) => Some(look(outcome)),
            State::Waiting(_) | State::Taken => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The messages in progress of one kind, and slots to be used again.
#[derive(Debug)]
pub(crate) struct Completions<T> {
    in_progress: HashMap<RpcId, Arc<Completion<T>>>,
    /// Slots that the endpoint has filled. Their senders may have them yet.
    used: VecDeque<Arc<Completion<T>>>,
}

impl<T> Completions<T> {
    pub(crate) fn new() -> Self {
        Self { in_progress: HashMap::new(), used: VecDeque::new() }
    }

    /// Takes in that a message has begun. Its outcome will be in the slot that is returned.
    pub(crate) fn expect(&mut self, rpc: RpcId) -> Arc<Completion<T>> {
        let slot = self.free_slot();
        self.in_progress.insert(rpc, Arc::clone(&slot));
        slot
    }

    /// Takes in how a message has ended. Returns whether a sender has its slot, and the waker of a
    /// sender that waits.
    pub(crate) fn finish(&mut self, rpc: RpcId, outcome: T) -> Option<Option<Waker>> {
        let slot = self.in_progress.remove(&rpc)?;
        let waker = slot.finish(outcome);
        if self.used.len() < USED_MAX {
            self.used.push_back(slot);
        }
        Some(waker)
    }

    /// Forgets a message that nobody waits for any more. Returns whether it is still in progress.
    pub(crate) fn forget(&mut self, rpc: RpcId) -> bool {
        self.in_progress.remove(&rpc).is_some()
    }

    /// Whether a message is in progress that its sender waits for.
    pub(crate) fn is_in_progress(&self, rpc: RpcId) -> bool {
        self.in_progress.contains_key(&rpc)
    }

    /// Messages in progress.
    pub(crate) fn len(&self) -> usize {
        self.in_progress.len()
    }

    /// The slot that was used longest ago, if its sender has let go of it; else a new one.
    fn free_slot(&mut self) -> Arc<Completion<T>> {
        let Some(mut slot) = self.used.pop_front() else {
            return Arc::new(Completion::new());
        };
        match Arc::get_mut(&mut slot) {
            Some(free) => {
                let state = free.0.get_mut().unwrap_or_else(PoisonError::into_inner);
                *state = State::Waiting(None);
                slot
            }
            None => {
                self.used.push_back(slot);
                Arc::new(Completion::new())
            }
        }
    }
}

/// Slots kept for further messages: more than mostly are in progress, and 100 KB at most.
const USED_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use smt_wire::{MessageId, SessionIndex};

    fn rpc(id: u64) -> RpcId {
        RpcId { session: SessionIndex(1), id: MessageId(id) }
    }

    #[test]
    fn sender_that_waits_is_woken_and_takes_the_outcome_once() {
        let mut completions = Completions::new();
        let slot = completions.expect(rpc(1));
        assert_eq!(slot.poll(Waker::noop()), Poll::Pending);
        let waker = completions.finish(rpc(1), 7).unwrap();
        assert!(waker.unwrap().will_wake(Waker::noop()));
        assert_eq!(slot.poll(Waker::noop()), Poll::Ready(7));
        assert_eq!(completions.len(), 0);
    }

    #[test]
    fn outcome_may_come_before_its_sender_looks() {
        let mut completions = Completions::new();
        let slot = completions.expect(rpc(1));
        assert_eq!(slot.look(|end| *end), None);
        assert!(completions.finish(rpc(1), 7).unwrap().is_none());
        assert_eq!(slot.look(|end| *end), Some(7));
        assert_eq!(slot.poll(Waker::noop()), Poll::Ready(7));
        assert_eq!(slot.look(|end| *end), None);
    }

    #[test]
    fn forgotten_rpc_has_no_slot_any_more() {
        let mut completions = Completions::new();
        drop(completions.expect(rpc(1)));
        assert!(completions.forget(rpc(1)));
        assert!(completions.finish(rpc(1), 7).is_none());
        assert!(!completions.forget(rpc(1)));
    }

    #[test]
    fn slot_is_used_again_only_when_its_sender_has_let_go_of_it() {
        let mut completions = Completions::new();
        let (first, second) = (completions.expect(rpc(1)), completions.expect(rpc(2)));
        completions.finish(rpc(1), 1);
        completions.finish(rpc(2), 2);
        let held = Arc::as_ptr(&first);
        let third = completions.expect(rpc(3));
        assert_ne!(Arc::as_ptr(&third), held, "its sender has it");
        assert_eq!(first.poll(Waker::noop()), Poll::Ready(1));
        let (free, _) = (Arc::as_ptr(&second), drop(second));
        let fourth = completions.expect(rpc(4));
        assert_eq!(Arc::as_ptr(&fourth), free);
        assert_eq!(fourth.poll(Waker::noop()), Poll::Pending);
    }
}
