// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tokio, as a driver uses it.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use smt_carrier::Carrier;
use smt_io::CarrierWatch;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep_until};

use super::spinners::Spinners;
use crate::driver::Guard;
use crate::driver::background::{BackgroundDriver, Runtime, Spinning};

/// Starts the task that drives an endpoint. It ends when the endpoint's last handle is gone.
pub(crate) fn spawn_driver(guard: &Guard, carrier: Arc<dyn Carrier>) -> io::Result<()> {
    let watch = CarrierWatch::new(carrier)?;
    let runtime = TokioRuntime {
        watched: watched(watch.descriptors()?)?,
        alarm: None,
        spinners: Spinners::of(&Handle::current()),
    };
    let driver = Arc::clone(guard.driver());
    driver.set_watch(watch);
    tokio::spawn(BackgroundDriver::new(driver, runtime).drive());
    Ok(())
}

/// Tokio, for one driver.
struct TokioRuntime {
    /// The descriptors that it watches.
    watched: Vec<AsyncFd<OwnedFd>>,
    /// One timer, which is set again only where it would come too late: to set one may wake another
    /// worker, which then sets its own sleep by it.
    alarm: Option<Pin<Box<Sleep>>>,
    spinners: Spinners,
}

#[expect(
    deprecated,
    reason = "unsound for what changes its descriptor, which an `OwnedFd` does not; what replaces it is unsafe"
)]
fn watched(descriptors: Vec<OwnedFd>) -> io::Result<Vec<AsyncFd<OwnedFd>>> {
    descriptors.into_iter().map(AsyncFd::new).collect()
}

impl Runtime for TokioRuntime {
    fn spinning(&self) -> Spinning<impl Sized> {
        match self.spinners.begin() {
            Some(spinner) => Spinning::InPlace(spinner),
            None if self.spinners.is_possible() => Spinning::Never,
            None => Spinning::ByYields,
        }
    }

    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        for descriptor in &self.watched {
            if let Poll::Ready(ready) = descriptor.poll_read_ready(context) {
                // Before the look: what comes after it is told again.
                ready?.clear_ready();
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Pending
    }

    fn set_alarm(&mut self, time: Duration) {
        let due = Instant::now() + time;
        // Made here: a runtime without timers panics in the task, which ends what it cannot drive.
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if alarm.is_elapsed() || alarm.deadline() > due {
            alarm.as_mut().reset(due);
        }
    }

    fn poll_alarm(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let alarm = self.alarm.as_mut();
        alarm.map_or(Poll::Pending, |alarm| alarm.as_mut().poll(context))
    }

    async fn yield_now(&mut self) {
        if !self.spinners.is_possible() {
            return tokio::task::yield_now().await;
        }
        // This worker wakes after a yield, when it has nothing else to run. If a task keeps it
        // busy, another one is to.
        self.set_alarm(YIELD_MAX);
        let mut yielding = pin!(tokio::task::yield_now());
        poll_fn(|context| match yielding.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => self.poll_alarm(context),
        })
        .await;
    }
}

/// A yield takes this time at most. Timers have a millisecond's grain.
const YIELD_MAX: Duration = Duration::from_millis(1);
