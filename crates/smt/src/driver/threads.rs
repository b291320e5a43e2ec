// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that wait drive their endpoint.
//!
//! 1. [`Driver::block_on`] looks whether what a thread waits for is there.
//! 2. If not, the first thread leads: it receives one batch, serves whoever that is for, and looks
//!    again. Others follow: they sleep until they are woken, by what they wait for or because
//!    nobody leads.
//! 3. A thread that has what it waited for hands over to a follower.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use smt_carrier::{Arrival, ReceiveError};
use smt_proto::Time;

use super::receiving::Intake;
use super::{Driver, Receiver};
use crate::endpoint_state::EndpointState;
use crate::sync::{
    AtomicBool, MutexGuard, Ordering, PoisonError, thread, thread::Thread, thread_local,
};

/// The threads that wait to drive, and whether one drives.
#[derive(Default)]
pub(super) struct Lead {
    pub(super) is_taken: bool,
    next_follower: u64,
    followers: BTreeMap<u64, Thread>,
    /// When a thread last led.
    pub(super) last: Time,
    /// When timers are looked at next, if nothing comes: by the leader, or by the background thread
    /// for it.
    pub(super) until: Time,
}

impl Driver {
    /// Tells the background thread that something is due, perhaps before the leader looks around:
    /// the leader cannot be woken while it receives.
    pub(super) fn tell_background_thread(&self, due: Time) {
        let mut lead = self.lock_lead();
        if lead.is_taken {
            self.look_by(&mut lead, due);
        }
    }

    /// Has the background thread look around for the leader at `due`, unless a thread does before.
    fn look_by(&self, lead: &mut Lead, due: Time) {
        if due < lead.until {
            lead.until = due;
            self.background_thread.get().into_iter().for_each(Thread::unpark);
        }
    }

    /// Waits in this thread for `poll` to be ready, and drives meanwhile if no other thread does.
    pub(crate) fn block_on<T>(
        &self,
        mut poll: impl FnMut(&mut EndpointState, Time, &Waker) -> Poll<T>,
    ) -> T {
        // Looks at the clock are felt in an unloaded call (docs/lab/2026-11-22.md): it is read when
        // time has passed.
        let mut now = self.now();
        THREAD_WAKER.with(|(thread, waker)| {
            loop {
                thread.forget_wakeups();
                let poll = |state: &mut EndpointState, now| poll(state, now, waker);
                let look = |state: &EndpointState, now, polled| match polled {
                    Poll::Ready(result) => Ok(result),
                    Poll::Pending => Err(state.idle_time(now)),
                };
                let idle = match self.change_at(now, poll, look) {
                    Ok(result) => {
                        self.hand_over();
                        return result;
                    }
                    Err(idle) => idle,
                };
                if !self.process.is_this() {
                    // All has ended with the look at it: the next one finds that.
                    thread::yield_now();
                    continue;
                }
                if self.background.is_some() {
                    // A task drives, and wakes this thread.
                    thread::park_timeout(WAIT_MAX);
                    now = self.now();
                    continue;
                }
                let wait = idle.map_or(LEAD_MAX, |idle| idle.min(LEAD_MAX));
                now = match self.follow_or_lead(now + wait) {
                    Some(follower) => {
                        thread::park_timeout(WAIT_MAX);
                        self.stop_following(follower);
                        self.now()
                    }
                    None if thread.was_woken() => {
                        // The leader before has received it since the look above: nothing may come
                        // any more.
                        drop(Leading::of(self));
                        self.now()
                    }
                    None => self.lead_once(wait),
                }
            }
        })
    }

    /// Receives one batch, waiting for at most `wait`; when that was.
    fn lead_once(&self, wait: Duration) -> Time {
        let leading = Leading::of(self);
        let mut receiver = self.lock_receiver();
        let Receiver { carrier, spin, .. } = &mut *receiver;
        let mut intake = Intake::new(self);
        let mut sink = |arrival: Arrival<'_>| intake.take(arrival);
        let outcome = match carrier {
            Some(carrier) => spin.receive((carrier.as_ref(), self.clock), &mut sink, wait),
            None => {
                // It was shut down: a thread that still waits finds that with the next look.
                thread::sleep(wait.min(RECEIVE_AGAIN));
                Ok(0)
            }
        };
        if matches!(outcome, Err(ReceiveError::Other { .. })) {
            // If it goes on like this, it shall not take a core.
            thread::sleep(wait.min(RECEIVE_AGAIN));
        }
        let now = self.now();
        let has_told = intake.end(now, outcome);
        drop(receiver);
        let is_crowded = leading.end(now);
        if has_told && is_crowded {
            // The threads that were woken would else wait for a core until this thread's time slice
            // ends, some milliseconds.
            thread::yield_now();
        }
        now
    }

    /// Takes the lead (`None`), or a place among the followers. The next timer is at `due`.
    fn follow_or_lead(&self, due: Time) -> Option<u64> {
        let mut lead = self.lock_lead();
        if !std::mem::replace(&mut lead.is_taken, true) {
            lead.until = due;
            return None;
        }
        self.look_by(&mut lead, due);
        let follower = lead.next_follower;
        lead.next_follower += 1;
        lead.followers.insert(follower, thread::current());
        Some(follower)
    }

    fn stop_following(&self, follower: u64) {
        self.lock_lead().followers.remove(&follower);
    }

    /// This thread has what it waited for: another thread leads on.
    pub(super) fn hand_over(&self) {
        if !self.process.is_this() {
            return;
        }
        let lead = self.lock_lead();
        if !lead.is_taken
            && let Some((_, thread)) = lead.followers.first_key_value()
        {
            thread.unpark();
        }
    }

    pub(super) fn lock_lead(&self) -> MutexGuard<'_, Lead> {
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes a thread, which may be about to lead instead of being asleep.
struct ThreadWaker {
    thread: Thread,
    was_woken: AtomicBool,
}

impl ThreadWaker {
    /// The waker of the thread that asks.
    fn here() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), was_woken: AtomicBool::new(false) })
    }

    /// The thread is about to look at what it waits for.
    fn forget_wakeups(&self) {
        self.was_woken.store(false, Ordering::Relaxed);
    }

    /// Whether it was woken since then. Asked by the thread that has taken the lead: all who led
    /// before have woken those whom they told.
    fn was_woken(&self) -> bool {
        self.was_woken.load(Ordering::Relaxed)
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.was_woken.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

thread_local! {
    /// Made once per thread, so that a call allocates nothing for it.
    static THREAD_WAKER: (Arc<ThreadWaker>, Waker) = {
        let thread = ThreadWaker::here();
        (Arc::clone(&thread), Waker::from(thread))
    };
}

/// The lead, given back also if the carrier panics: else nobody would receive any more.
pub(super) struct Leading<'a> {
    driver: &'a Driver,
    is_over: bool,
}

impl<'a> Leading<'a> {
    /// The lead of a thread that has just taken it.
    pub(super) fn of(driver: &'a Driver) -> Self {
        Self { driver, is_over: false }
    }

    /// Gives it back; whether many follow. The lock is taken once, since an unloaded call comes by
    /// here.
    fn end(mut self, now: Time) -> bool {
        self.is_over = true;
        let mut lead = self.driver.lock_lead();
        lead.is_taken = false;
        lead.last = now;
        lead.followers.len() >= CROWD
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.driver.lock_lead().is_taken = false;
            self.driver.hand_over();
        }
    }
}

/// A carrier that fails is asked again after this time.
const RECEIVE_AGAIN: Duration = Duration::from_millis(1);
/// A leader looks around at least this often. It cannot be woken while it receives, so what another
/// thread does to what it waits for (a shutdown, a close) it learns at most so late.
const LEAD_MAX: Duration = Duration::from_millis(250);
/// A thread that only waits looks around at least this often; nothing relies on it.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(1);
/// With this many waiting threads a leader yields to those it has woken. With fewer the leader
/// would lose more than they gain: to the scheduler a thread that yields has had its slice.
const CROWD: usize = 6;
