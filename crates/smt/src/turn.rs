// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One turn of tasks: messages leave together whose senders were told of something together.
//!
//! 1. The leader takes in what has come. Each outcome and each message of a peer that it tells of
//!    is *untaken*.
//! 2. The leader waits ([`Turn::await_end`]) while the tasks run that were told. They take what
//!    they were told of, and send: their messages are corked.
//! 3. The task that takes the last ends the turn ([`Turn::take`]) and wakes the leader, which sends
//!    all corked messages.
//!
//! A turn is counts alone, without a lock, since tasks take on several workers at the same time.
//! The leader waits no longer for outcomes and messages that are not taken in time
//! ([`Turn::give_up`]).

use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// The counts of an endpoint's turn.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Outcomes and messages that were told of and not taken.
    untaken: AtomicUsize,
    /// How many untaken outcomes and messages the leader waits for no longer.
    given_up: AtomicUsize,
    is_awaited: AtomicBool,
    /// Changes that have something to send and have left that to the leader.
    corked: AtomicUsize,
}

impl Turn {
    pub(crate) fn new() -> Self {
        Self {
            untaken: AtomicUsize::new(0),
            given_up: AtomicUsize::new(0),
            is_awaited: AtomicBool::new(false),
            corked: AtomicUsize::new(0),
        }
    }

    /// Counts an outcome or a message that a task is told of.
    pub(crate) fn tell(&self) {
        self.untaken.fetch_add(1, Ordering::SeqCst);
    }

    /// Tells that `count` outcomes and messages were taken, or are of no interest any more. Returns
    /// whether a leader waits for that and is to be woken.
    pub(crate) fn take(&self, count: usize) -> bool {
        if count == 0 {
            return false;
        }
        let left = self.untaken.fetch_sub(count, Ordering::SeqCst) - count;
        let given_up = self.given_up.load(Ordering::SeqCst);
        if left < given_up {
            // One that was given up and is taken now is not given up any more.
            self.given_up.fetch_min(left, Ordering::SeqCst);
        }
        left <= given_up
            && self.is_awaited.load(Ordering::SeqCst)
            && self.is_awaited.swap(false, Ordering::SeqCst)
    }

    /// Outcomes and messages that were told of and not taken, less those that the leader waits for
    /// no longer.
    pub(crate) fn untaken(&self) -> usize {
        let untaken = self.untaken.load(Ordering::SeqCst);
        untaken.saturating_sub(self.given_up.load(Ordering::SeqCst))
    }

    /// The leader begins to wait for the end of the turn. Returns false if the end has come
    /// already.
    pub(crate) fn await_end(&self) -> bool {
        self.is_awaited.store(true, Ordering::SeqCst);
        // A task that took the last before it could see that wakes nobody.
        self.untaken() > 0 || !self.is_awaited.swap(false, Ordering::SeqCst)
    }

    /// Whether the leader waits, and no task has ended the turn yet.
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited.load(Ordering::SeqCst)
    }

    /// The leader waits no longer for those that were not taken until now.
    pub(crate) fn give_up(&self) {
        self.is_awaited.store(false, Ordering::SeqCst);
        let untaken = self.untaken.load(Ordering::SeqCst);
        self.given_up.store(untaken, Ordering::SeqCst);
    }

    /// A change has left what it has to send to the leader.
    pub(crate) fn cork(&self) {
        self.corked.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of corked changes.
    pub(crate) fn corked(&self) -> usize {
        self.corked.load(Ordering::Relaxed)
    }

    /// Clears the count: all corked messages are about to leave.
    pub(crate) fn clear_corked(&self) {
        self.corked.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(count: usize) -> Turn {
        let turn = Turn::new();
        (0..count).for_each(|_| turn.tell());
        turn
    }

    #[test]
    fn last_taker_ends_a_turn_that_is_awaited() {
        let turn = told(3);
        assert!(turn.await_end());
        assert_eq!([1, 1, 1].map(|count| turn.take(count)), [false, false, true]);
        assert!(!turn.is_awaited());
    }

    #[test]
    fn nobody_is_woken_for_a_turn_that_is_not_awaited() {
        let turn = told(1);
        assert!(!turn.take(1));
        assert!(!turn.await_end(), "it is over");
    }

    #[test]
    fn message_that_is_never_taken_holds_up_one_turn() {
        let turn = told(2);
        assert!(turn.await_end());
        turn.give_up();
        assert!(!turn.await_end(), "nothing new was told");
        turn.tell();
        assert_eq!(turn.untaken(), 1);
        assert!(turn.await_end());
        assert!(turn.take(1));
        // Both of those given up are taken late; what is told after that counts again.
        assert!(!turn.take(1) && !turn.take(1));
        assert_eq!(turn.untaken(), 0);
        turn.tell();
        assert!(turn.await_end());
        assert!(turn.take(1));
    }

    #[test]
    fn corked_counts_changes_since_it_was_cleared() {
        let turn = Turn::new();
        turn.cork();
        turn.cork();
        assert_eq!(turn.corked(), 2);
        turn.clear_corked();
        assert_eq!(turn.corked(), 0);
    }
}
