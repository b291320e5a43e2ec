// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The primitives by which threads meet: those of the standard library, or those of a model checker
//! that tries out the orders in which threads may run (`--cfg smt_model`, docs/HACKING.md).

#[cfg(smt_model)]
mod model;

#[cfg(all(smt_model, feature = "async"))]
pub(crate) use model::is_in_block_on;
#[cfg(smt_model)]
pub(crate) use model::{
    AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering, fence, look_at_clock, thread,
    thread_local,
};
#[cfg(all(test, smt_model, feature = "async"))]
pub(crate) use model::{pass, set_in_block_on};
#[cfg(not(smt_model))]
pub(crate) use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering, fence},
    },
    thread, thread_local,
};

pub(crate) use std::sync::{PoisonError, TryLockError};
