// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Steps of work, counted in tests: the work that a peer can cause is bounded too, and time is a
//! bad measure of it.
//!
//! Outside of tests a step is nothing.

/// Counts one entry of a large collection that was looked at.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

/// The steps that `what` takes, and what it yields.
#[cfg(test)]
pub(crate) fn steps_of<T>(what: impl FnOnce() -> T) -> (u64, T) {
    let before = STEPS.get();
    let yielded = what();
    (STEPS.get() - before, yielded)
}

#[cfg(test)]
thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}
