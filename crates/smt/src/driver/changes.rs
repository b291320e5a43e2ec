// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of an endpoint's state: made with its lock held, while sending and waking come after,
//! without it.
//!
//! 1. [`Driver::change`] takes the lock, makes the change, and tells what comes of it
//!    ([`EndpointState::tell_all`]).
//! 2. Batches that are to leave now leave, and the lock is given back meanwhile ([`Driver::send`]).
//! 3. The lock is given back, and those who were told are woken ([`Driver::give_back`]).
//! 4. Answers that were left while the lock was taken are taken.

use smt_carrier::SendError;
use smt_proto::Time;

use super::Driver;
use crate::endpoint_state::{EndpointState, Woken};
use crate::pump::OutgoingBatch;
use crate::sync::{MutexGuard, PoisonError, TryLockError};

impl Driver {
    pub(crate) fn lock(&self) -> MutexGuard<'_, EndpointState> {
        if !self.process.is_this() {
            return self.lock_copy();
        }
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, if nobody has it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, EndpointState>> {
        if !self.process.is_this() {
            return Some(self.lock_copy());
        }
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The state in a copy of the process (`fork`): it is given up, since the keys are the
    /// original's.
    ///
    /// # Panics
    /// If another thread was using the endpoint when the process was copied: here is no such
    /// thread, and the lock would be held for ever.
    fn lock_copy(&self) -> MutexGuard<'_, EndpointState> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => panic!(
                "this process is a copy (fork) of one that was using the endpoint at that moment; open another one here"
            ),
        };
        state.leave_to_original();
        state
    }

    /// Looks at the state, or makes a change that nobody is to be told of. Answers that are left
    /// meanwhile are taken after it, which the bare lock would not do.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut EndpointState) -> T) -> T {
        let seen = look(&mut self.lock());
        self.take_answers();
        seen
    }

    /// Makes a change, and sends and tells what comes of it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut EndpointState, Time) -> T) -> T {
        if self.background.is_some() {
            return self.change_at(self.now(), change, |_, _, result| result);
        }
        let look = |state: &EndpointState, now, result| {
            (result, state.idle_time(now).map(|idle| now + idle))
        };
        let (result, due) = self.change_at(self.now(), change, look);
        if let Some(due) = due.filter(|_| self.process.is_this()) {
            self.tell_background_thread(due);
        }
        result
    }

    /// The same at a time that was read before, and a last look at what has become of it.
    pub(super) fn change_at<T, U>(
        &self,
        now: Time,
        change: impl FnOnce(&mut EndpointState, Time) -> T,
        look: impl FnOnce(&EndpointState, Time, T) -> U,
    ) -> U {
        self.change_in(self.lock(), now, change, look)
    }

    /// The same with a lock that was taken before.
    pub(super) fn change_in<'a, T, U>(
        &'a self,
        mut state: MutexGuard<'a, EndpointState>,
        now: Time,
        change: impl FnOnce(&mut EndpointState, Time) -> T,
        look: impl FnOnce(&EndpointState, Time, T) -> U,
    ) -> U {
        let _entered = self.span.enter();
        let now = state.advance(now);
        let result = change(&mut state, now);
        let (state, now) = self.send(state, now);
        let seen = look(&state, now, result);
        self.unlock(state, now);
        seen
    }

    /// Tells what has happened, and sends what is to leave now; the lock is not held while the
    /// carrier sends.
    pub(super) fn send<'a>(
        &'a self,
        mut state: MutexGuard<'a, EndpointState>,
        mut now: Time,
    ) -> (MutexGuard<'a, EndpointState>, Time) {
        for answer in self.answers.take() {
            // A caller that has given up, or whose session has ended, needs none.
            let _ = state.answer(now, answer);
        }
        state.tell_all();
        if !state.sends_now(now) {
            if state.has_output(now) {
                self.turn.cork();
            }
            return (state, now);
        }
        while let Some(batch) = state.next_batch(now) {
            drop(state);
            let sending = Sending::new(self, batch);
            let outcome = sending.send();
            state = self.lock();
            now = state.advance(self.now());
            let has_room = sending.put_back(now, &mut state, outcome);
            // Sending changes the state, too: what is told of is told before others may take the
            // lock.
            state.tell_all();
            if !has_room {
                break;
            }
        }
        state.cork.has_sent(now);
        (state, now)
    }

    /// Gives the lock back, wakes those who are to be woken, and takes answers that were left
    /// meanwhile.
    pub(super) fn unlock(&self, state: MutexGuard<'_, EndpointState>, now: Time) {
        self.give_back(state, now, Self::wake);
        self.take_answers();
    }

    /// Gives the lock back, and wakes those who are to be woken.
    pub(super) fn give_back(
        &self,
        mut state: MutexGuard<'_, EndpointState>,
        now: Time,
        wake: impl FnOnce(&Self, Woken),
    ) {
        let woken = state.take_woken();
        let wakes_driver = self.background.is_some()
            && (std::mem::take(&mut state.ends_turn) | state.oversleeps(now));
        drop(state);
        wake(self, woken);
        if wakes_driver {
            self.wake_driver();
        }
    }
}

/// A batch on its way, which comes back also if the carrier panics: else nobody would send any
/// more.
struct Sending<'a> {
    driver: &'a Driver,
    batch: Option<OutgoingBatch>,
}

impl<'a> Sending<'a> {
    fn new(driver: &'a Driver, batch: OutgoingBatch) -> Self {
        Self { driver, batch: Some(batch) }
    }

    fn send(&self) -> Result<(), SendError> {
        self.batch.as_ref().map_or(Ok(()), OutgoingBatch::send)
    }

    /// Whether there may be room for the next one.
    fn put_back(
        mut self,
        now: Time,
        state: &mut EndpointState,
        outcome: Result<(), SendError>,
    ) -> bool {
        let batch = self.batch.take();
        batch.is_some_and(|batch| state.put_back(now, batch, outcome))
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            let mut state = self.driver.lock();
            let now = state.advance(self.driver.now());
            state.put_back(now, batch, Ok(()));
            self.driver.give_back(state, now, Driver::wake);
        }
    }
}
