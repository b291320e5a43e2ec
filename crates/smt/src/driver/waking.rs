// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waking, without the endpoint's lock: those who are woken want it.
//!
//! A leader that tells many tasks on a runtime with several workers defers their wake-ups until its
//! worker has nothing else to run ([`DeferredWakes`]). Woken one by one, each task would call
//! another worker for help, which takes that one task, sleeps, and is called again. Deferred, all
//! of them call once.

use std::task::Waker;

use super::Driver;
use crate::endpoint_state::Woken;
#[cfg(feature = "tokio")]
use crate::runtime::{defer, is_on_worker};
use crate::sync::{AtomicUsize, Mutex, Ordering, PoisonError};

impl Driver {
    /// Wakes those who were told of something, at once.
    pub(super) fn wake(&self, woken: Woken) {
        match woken {
            Woken::Nobody => {}
            Woken::One(waker) => waker.wake(),
            Woken::Many(wakers) => wakers.into_iter().for_each(Waker::wake),
        }
    }

    /// Wakes those whom a leader has told of something. The leader is about to wait for them.
    pub(super) fn wake_together(&self, woken: Woken) {
        match woken {
            Woken::Many(wakers) if self.has_workers => self.deferred.defer(wakers),
            woken => self.wake(woken),
        }
    }
}

/// Wake-ups that this worker of the runtime makes when it has nothing else to run.
///
/// They are kept until the next ones come: if a task keeps the worker busy for long, the driver
/// finds its turn not ended and makes them itself ([`DeferredWakes::wake_now`]). After that none
/// are deferred for a while.
#[derive(Debug)]
pub(super) struct DeferredWakes {
    last: Mutex<Vec<Waker>>,
    /// How many more times wake-ups are made at once.
    at_once: AtomicUsize,
}

impl DeferredWakes {
    pub(super) fn new() -> Self {
        Self { last: Mutex::default(), at_once: AtomicUsize::new(0) }
    }

    fn defer(&self, wakers: Vec<Waker>) {
        let one_less = |times: usize| times.checked_sub(1);
        let is_at_once =
            self.at_once.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        if is_at_once || !is_on_worker() {
            return wakers.into_iter().for_each(Waker::wake);
        }
        wakers.iter().for_each(defer);
        let before = self.keep(wakers);
        // Without the lock: the last waker of a task drops it, which may want to wake others.
        drop(before);
    }

    /// Makes the last wake-ups now, if they were deferred, and the next ones at once.
    #[cfg(feature = "async")]
    pub(super) fn wake_now(&self) {
        let deferred = self.keep(Vec::new());
        if !deferred.is_empty() {
            self.at_once.store(AT_ONCE, Ordering::Relaxed);
        }
        deferred.into_iter().for_each(Waker::wake);
    }

    fn keep(&self, wakers: Vec<Waker>) -> Vec<Waker> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut last, wakers)
    }
}

/// Whether this thread runs a task of a runtime that can defer wake-ups: that is tokio alone.
#[cfg(not(feature = "tokio"))]
fn is_on_worker() -> bool {
    false
}

#[cfg(not(feature = "tokio"))]
fn defer(waker: &Waker) {
    waker.wake_by_ref();
}

/// Times that wake-ups are made at once after deferred ones came too late: with one late in so
/// many, the mean is not felt.
#[cfg(feature = "async")]
const AT_ONCE: usize = 256;

#[cfg(test)]
#[cfg(all(feature = "tokio", not(smt_model)))]
mod tests {
    use super::*;
    use std::future::Future;
    use std::sync::Arc;
    use std::task::Wake;

    /// One that sleeps, and counts with others how often it is woken.
    struct Sleeper(Arc<AtomicUsize>);

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Two sleepers, whose wake-ups are deferred, and how often they have been woken.
    fn deferred(wakes: &DeferredWakes) -> impl Fn() -> usize {
        let woken = Arc::new(AtomicUsize::new(0));
        let sleepers = [(); 2].map(|()| Arc::new(Sleeper(Arc::clone(&woken))));
        wakes.defer(sleepers.map(Waker::from).into());
        move || woken.load(Ordering::Relaxed)
    }

    /// Runs a test in a task of a worker.
    fn on_worker(test: impl Future<Output = ()> + Send + 'static) {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).build().unwrap();
        runtime.block_on(runtime.spawn(test)).unwrap();
    }

    #[test]
    fn worker_wakes_all_when_it_has_nothing_else_to_run() {
        on_worker(async {
            let wakes = DeferredWakes::new();
            let woken = deferred(&wakes);
            assert_eq!(woken(), 0);
            tokio::task::yield_now().await;
            assert_eq!(woken(), 2);
        });
    }

    #[test]
    fn wake_ups_that_come_too_late_are_made_and_the_next_ones_at_once() {
        on_worker(async {
            let wakes = DeferredWakes::new();
            let late = deferred(&wakes);
            wakes.wake_now();
            assert_eq!(late(), 2);
            for _ in 0..AT_ONCE {
                assert_eq!(deferred(&wakes)(), 2);
            }
            assert_eq!(deferred(&wakes)(), 0, "they are deferred again");
        });
    }

    #[test]
    fn nothing_is_deferred_outside_of_a_worker() {
        assert_eq!(deferred(&DeferredWakes::new())(), 2);
    }
}
