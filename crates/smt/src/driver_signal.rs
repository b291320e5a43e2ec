// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wakes the task that drives an endpoint, from any thread and without naming a runtime.

use std::task::Waker;
#[cfg(feature = "async")]
use std::task::{Context, Poll};

use crate::sync::{Mutex, PoisonError};

/// A signal with one listener; signals before it listens are kept as one.
#[derive(Debug, Default)]
pub(crate) struct DriverSignal(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_raised: bool,
    listener: Option<Waker>,
}

impl DriverSignal {
    pub(crate) fn raise(&self) {
        let listener = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_raised = true;
            state.listener.take()
        };
        if let Some(listener) = listener {
            listener.wake();
        }
    }

    #[cfg(feature = "async")]
    pub(crate) fn poll_raised(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.is_raised) {
            return Poll::Ready(());
        }
        state.listener = Some(context.waker().clone());
        Poll::Pending
    }
}
