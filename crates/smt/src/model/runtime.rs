// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A runtime that drives an endpoint in a model: its tasks are threads of the checker, and its
//! timers go off when nothing could be relied on less.
//!
//! An alarm of more than [`LED_MAX`] never goes off: nobody may rely on it. A shorter one goes off
//! at any time, if the model permits it, and time passes then.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Condvar;

use super::carrier::Inbox;
use crate::driver::background::{DriverServices, Spinning};
use crate::driver::leader::LED_MAX;
use crate::sync::{Mutex, MutexGuard, PoisonError, pass, thread};

/// The runtime of one driver.
pub(super) struct ModelRuntime {
    pub(super) inbox: Arc<Inbox>,
    pub(super) alarm: Arc<Alarm>,
    pub(super) spins: Spins,
}

/// How a driver spins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spins {
    InPlace,
    ByYields,
    Never,
}

/// The one timer of a driver.
pub(super) struct Alarm {
    state: Mutex<State>,
    has_changed: Condvar,
}

struct State {
    /// `None`: it has gone off.
    set: Option<Duration>,
    goes_off: bool,
    is_over: bool,
    waker: Option<Waker>,
}

impl Alarm {
    /// Whether short alarms ever go off before [`Self::permit`].
    pub(super) fn new(goes_off: bool) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                set: Some(Duration::MAX),
                goes_off,
                is_over: false,
                waker: None,
            }),
            has_changed: Condvar::new(),
        })
    }

    /// From now on short alarms go off.
    pub(super) fn permit(&self) {
        self.lock().goes_off = true;
        self.has_changed.notify_all();
    }

    /// Nothing is timed any more.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.has_changed.notify_all();
    }

    /// Lets short alarms go off, each after a while that the checker chooses.
    pub(super) fn run(&self) {
        loop {
            let mut state = self.lock();
            while !state.is_due() && !state.is_over {
                let waited = self.has_changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            if state.is_over {
                return;
            }
            drop(state);
            (0..thread_rng().gen_range(0..MOST_YIELDS)).for_each(|_| thread::yield_now());
            let waker = self.lock().go_off();
            waker.into_iter().for_each(Waker::wake);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_due(&self) -> bool {
        self.goes_off && self.set.is_some_and(|time| time <= LED_MAX)
    }

    fn go_off(&mut self) -> Option<Waker> {
        if !self.is_due() {
            return None;
        }
        self.set.take().into_iter().for_each(pass);
        self.waker.take()
    }
}

impl DriverServices for ModelRuntime {
    fn spinning(&self) -> Spinning<impl Sized> {
        match self.spins {
            Spins::InPlace => Spinning::InPlace(()),
            Spins::ByYields => Spinning::ByYields,
            Spins::Never => Spinning::Never,
        }
    }

    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inbox.poll_readable(context).map(Ok)
    }

    fn set_alarm(&mut self, time: Duration) {
        self.alarm.lock().set = Some(time);
        self.alarm.has_changed.notify_all();
    }

    fn poll_alarm(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.alarm.lock();
        if state.set.is_none() {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn yield_now(&mut self) -> impl Future<Output = ()> + Send {
        shuttle::future::yield_now()
    }
}

/// How often others may run before a timer goes off.
const MOST_YIELDS: usize = 30;
