// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The primitives of the model checker, and time as it passes in a model.
//!
//! A sleep that is only a safety net never ends by itself there: a wake-up that was lost is then a
//! deadlock, which the checker reports.

use std::cell::Cell;
use std::time::Duration;

pub(crate) use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};
pub(crate) use shuttle::thread_local;

/// Threads of the model.
pub(crate) mod thread {
    use std::time::Duration;

    pub(crate) use shuttle::thread::{Builder, Thread, current, yield_now};

    /// Sleeps until it is woken: nobody may rely on the time.
    pub(crate) fn park_timeout(_safety_net: Duration) {
        shuttle::thread::park();
    }

    /// Lets others run for a while.
    pub(crate) fn sleep(time: Duration) {
        super::pass(time);
        yield_now();
    }
}

std::thread_local! {
    /// Nanoseconds of the model. All threads of a model run in one of the system's, which the next
    /// model goes on with.
    static PASSED: Cell<u64> = const { Cell::new(0) };
}

thread_local! {
    static IS_IN_BLOCK_ON: Cell<bool> = Cell::new(false);
}

/// Whether this thread of the model stands for one that polls futures by `block_on`.
#[cfg(feature = "async")]
pub(crate) fn is_in_block_on() -> bool {
    IS_IN_BLOCK_ON.with(Cell::get)
}

/// Says so from now on.
#[cfg(all(test, feature = "async"))]
pub(crate) fn set_in_block_on(is_so: bool) {
    IS_IN_BLOCK_ON.with(|is_in| is_in.set(is_so));
}

/// The time of the model, which moves with each look.
pub(crate) fn look_at_clock() -> Duration {
    pass(LOOK);
    Duration::from_nanos(PASSED.get())
}

/// Time passes in which nobody runs.
pub(crate) fn pass(time: Duration) {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    PASSED.set(PASSED.get().saturating_add(time));
}

/// The time that a look at the clock takes.
const LOOK: Duration = Duration::from_micros(1);
