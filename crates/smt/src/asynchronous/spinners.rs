// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How many of a runtime's workers spin for endpoints: half of them at most, so that the others run
//! all other tasks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::runtime::Runtime;
use crate::sync::{AtomicUsize, Ordering};

/// The workers of a runtime that may spin. Shared by all endpoints on it.
#[derive(Clone, Debug)]
pub(super) struct Spinners {
    /// Its address names it, and is no other one's as long as it lives.
    _runtime: Arc<dyn Runtime>,
    spinning: Arc<AtomicUsize>,
    most: usize,
}

/// One worker spins.
pub(super) struct Spinner<'a>(&'a AtomicUsize);

impl Spinners {
    /// Those of this runtime: none, if it has one worker alone.
    pub(super) fn of(runtime: &Arc<dyn Runtime>) -> Self {
        Self {
            spinning: counter_of(Arc::as_ptr(runtime).addr()),
            most: runtime.workers() / 2,
            _runtime: Arc::clone(runtime),
        }
    }

    /// Whether workers of this runtime ever spin.
    pub(super) fn is_possible(&self) -> bool {
        self.most > 0
    }

    /// This worker spins from now on, unless enough do.
    pub(super) fn begin(&self) -> Option<Spinner<'_>> {
        let one_more = |spinning: usize| (spinning < self.most).then_some(spinning + 1);
        let spinning = &self.spinning;
        let begun = spinning.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        begun.is_ok().then(|| Spinner(spinning))
    }
}

impl Drop for Spinner<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The counter of the runtime at this address, made when its first endpoint asks.
fn counter_of(runtime: usize) -> Arc<AtomicUsize> {
    let mut counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    let counters = counters.get_or_insert_with(HashMap::new);
    counters.retain(|_, counter| counter.strong_count() > 0);
    if let Some(counter) = counters.get(&runtime).and_then(Weak::upgrade) {
        return counter;
    }
    let counter = Arc::new(AtomicUsize::new(0));
    counters.insert(runtime, Arc::downgrade(&counter));
    counter
}

static COUNTERS: Mutex<Option<HashMap<usize, Weak<AtomicUsize>>>> = Mutex::new(None);

#[cfg(test)]
#[cfg(feature = "tokio")]
mod tests {
    use super::*;
    use crate::runtime::TokioRuntime;
    use tokio::runtime::{Builder, Runtime};

    fn spinners(runtime: &Runtime) -> Spinners {
        let runtime: Arc<dyn super::Runtime> = TokioRuntime::of(runtime.handle());
        Spinners::of(&runtime)
    }

    fn runtime(workers: usize) -> Runtime {
        Builder::new_multi_thread().worker_threads(workers).build().unwrap()
    }

    #[test]
    fn half_of_the_workers_may_spin_for_all_endpoints_together() {
        let runtime = runtime(4);
        let endpoints = [(); 2].map(|()| spinners(&runtime));
        let (first, second) = (endpoints[0].begin(), endpoints[1].begin());
        assert!(first.is_some() && second.is_some());
        assert!(endpoints.iter().all(|endpoint| endpoint.begin().is_none()));
        drop(first);
        assert!(endpoints[1].begin().is_some());
    }

    #[test]
    fn runtimes_do_not_share_their_spinners() {
        let runtimes = [runtime(2), runtime(2)];
        let spinners = [0, 1].map(|number: usize| spinners(&runtimes[number]));
        let _first = spinners[0].begin().unwrap();
        assert!(spinners[1].begin().is_some());
    }

    #[test]
    fn single_worker_never_spins() {
        let one = runtime(1);
        let current = Builder::new_current_thread().build().unwrap();
        for runtime in [one, current] {
            let spinners = spinners(&runtime);
            assert!(!spinners.is_possible() && spinners.begin().is_none());
        }
    }
}
