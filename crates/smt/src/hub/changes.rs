// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Changes of an endpoint's state: made with its lock held, while sending and waking come after, without it.
//!
//! 1. [`Hub::change`] takes the lock, makes the change, and tells what comes of it ([`Core::tell_all`]).
//! 2. Batches that are to leave now leave, and the lock is given back meanwhile ([`Hub::send`]).
//! 3. The lock is given back, and those who were told are woken ([`Hub::give_back`]).
//! 4. Answers that were left while the lock was taken are taken.

use smt_carrier::SendError;
use smt_proto::Time;

use super::Hub;
use crate::core::{Core, Woken};
use crate::outbox::Batch;
use crate::sync::{MutexGuard, PoisonError, TryLockError};

impl Hub {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        if !self.process.is_this() {
            return self.lock_copy();
        }
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, if nobody has it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Core>> {
        if !self.process.is_this() {
            return Some(self.lock_copy());
        }
        match self.core.try_lock() {
            Ok(core) => Some(core),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The state in a copy of the process (`fork`): it is given up, since the keys are the original's.
    ///
    /// # Panics
    /// If another thread was using the endpoint when the process was copied: here is no such thread, and the lock would
    /// be held for ever.
    fn lock_copy(&self) -> MutexGuard<'_, Core> {
        let mut core = match self.core.try_lock() {
            Ok(core) => core,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => panic!(
                "this process is a copy (fork) of one that was using the endpoint at that moment; open another one here"
            ),
        };
        core.leave_to_original();
        core
    }

    /// Looks at the state, or makes a change that nobody is to be told of. Answers that are left meanwhile are taken after it,
    /// which the bare lock would not do.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut Core) -> T) -> T {
        let seen = look(&mut self.lock());
        self.take_answers();
        seen
    }

    /// Makes a change, and sends and tells what comes of it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Core, Time) -> T) -> T {
        if self.driver.is_some() {
            return self.change_at(self.now(), change, |_, _, result| result);
        }
        let look = |core: &Core, now, result| (result, core.idle_time(now).map(|idle| now + idle));
        let (result, due) = self.change_at(self.now(), change, look);
        if let Some(due) = due.filter(|_| self.process.is_this()) {
            self.tell_caretaker(due);
        }
        result
    }

    /// The same at a time that was read before, and a last look at what has become of it.
    pub(super) fn change_at<T, U>(
        &self,
        now: Time,
        change: impl FnOnce(&mut Core, Time) -> T,
        look: impl FnOnce(&Core, Time, T) -> U,
    ) -> U {
        self.change_in(self.lock(), now, change, look)
    }

    /// The same with a lock that was taken before.
    pub(super) fn change_in<'a, T, U>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        now: Time,
        change: impl FnOnce(&mut Core, Time) -> T,
        look: impl FnOnce(&Core, Time, T) -> U,
    ) -> U {
        let _entered = self.span.enter();
        let now = core.advance(now);
        let result = change(&mut core, now);
        let (core, now) = self.send(core, now);
        let seen = look(&core, now, result);
        self.unlock(core, now);
        seen
    }

    /// Tells what has happened, and sends what is to leave now; the lock is not held while the carrier sends.
    pub(super) fn send<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        mut now: Time,
    ) -> (MutexGuard<'a, Core>, Time) {
        for answer in self.answers.take() {
            // A caller that has given up, or whose session has ended, needs none.
            let _ = core.answer(now, answer);
        }
        core.tell_all();
        if !core.sends_now(now) {
            if core.has_output(now) {
                self.turn.gather();
            }
            return (core, now);
        }
        while let Some(batch) = core.next_batch(now) {
            drop(core);
            let sending = Sending::new(self, batch);
            let outcome = sending.send();
            core = self.lock();
            now = core.advance(self.now());
            let has_room = sending.put_back(&mut core, outcome);
            // Sending changes the core, too: what is told of is told before others may take the lock.
            core.tell_all();
            if !has_room {
                break;
            }
        }
        core.cork.has_sent(now);
        (core, now)
    }

    /// Gives the lock back, wakes those who are to be woken, and takes answers that were left meanwhile.
    pub(super) fn unlock(&self, core: MutexGuard<'_, Core>, now: Time) {
        self.give_back(core, now, Self::wake);
        self.take_answers();
    }

    /// Gives the lock back, and wakes those who are to be woken.
    pub(super) fn give_back(
        &self,
        mut core: MutexGuard<'_, Core>,
        now: Time,
        wake: impl FnOnce(&Self, Woken),
    ) {
        let woken = core.take_woken();
        let wakes_driver =
            self.driver.is_some() && (std::mem::take(&mut core.ends_turn) | core.oversleeps(now));
        drop(core);
        wake(self, woken);
        if wakes_driver {
            self.wake_driver();
        }
    }
}

/// A batch on its way, which comes back also if the carrier panics: else nobody would send any more.
struct Sending<'a> {
    hub: &'a Hub,
    batch: Option<Batch>,
}

impl<'a> Sending<'a> {
    fn new(hub: &'a Hub, batch: Batch) -> Self {
        Self {
            hub,
            batch: Some(batch),
        }
    }

    fn send(&self) -> Result<(), SendError> {
        self.batch.as_ref().map_or(Ok(()), Batch::send)
    }

    /// Whether there may be room for the next one.
    fn put_back(mut self, core: &mut Core, outcome: Result<(), SendError>) -> bool {
        let batch = self.batch.take();
        batch.is_some_and(|batch| core.put_back(batch, outcome))
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            let mut core = self.hub.lock();
            core.put_back(batch, Ok(()));
            let now = core.advance(self.hub.now());
            self.hub.give_back(core, now, Hub::wake);
        }
    }
}
