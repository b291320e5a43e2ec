// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waking, without the endpoint's lock: whoever is woken wants it.

#[cfg(feature = "tokio")]
use std::future::Future;
use std::task::Waker;

use super::Hub;
use crate::core::Woken;

impl Hub {
    /// Wakes whoever was told of something.
    pub(super) fn wake(&self, woken: Woken) {
        match woken {
            Woken::Nobody => {}
            Woken::One(waker) => waker.wake(),
            Woken::Many(wakers) if self.has_workers => wakers.into_iter().for_each(defer),
            Woken::Many(wakers) => wakers.into_iter().for_each(Waker::wake),
        }
    }
}

/// Wakes one of several when this worker of the runtime next looks at its descriptors: each task that is woken at once
/// calls another worker for help, which takes that one, sleeps, and is called again. Elsewhere it is woken at once.
///
/// A task that yields is woken so by tokio, and here another one is in its stead: whatever tokio makes of that, a waker that
/// it was given it wakes.
#[cfg(feature = "tokio")]
fn defer(waker: Waker) {
    if tokio::task::try_id().is_none() {
        return waker.wake();
    }
    let mut context = std::task::Context::from_waker(&waker);
    let _ = std::pin::pin!(tokio::task::yield_now()).poll(&mut context);
}

#[cfg(not(feature = "tokio"))]
fn defer(waker: Waker) {
    waker.wake();
}
