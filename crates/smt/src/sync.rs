// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The primitives by which threads meet: those of the standard library, or those of a model checker that tries out the
//! orders in which threads may run (`--cfg smt_model`, docs/HACKING.md).

#[cfg(not(smt_model))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, PoisonError, TryLockError,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};
#[cfg(not(smt_model))]
pub(crate) use std::thread;
