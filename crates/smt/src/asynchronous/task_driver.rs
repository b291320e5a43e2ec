// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The task that drives an endpoint, on any runtime.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use smt_carrier::Carrier;
use smt_io::CarrierWatch;

use super::spinners::Spinners;
use crate::driver::Guard;
use crate::driver::background::{BackgroundDriver, DriverServices, IDLE_MAX, Spinning};
use crate::error::OpenError;
use crate::runtime::{Runtime, Timer, Watched};

/// Starts the task that drives an endpoint. It ends when the endpoint's last handle is gone.
///
/// # Errors
/// The runtime lacks what drives an endpoint, which is the caller's fault, or the process has no
/// descriptors left.
pub(crate) fn spawn_driver(
    guard: &Guard,
    carrier: Arc<dyn Carrier>,
    runtime: &Arc<dyn Runtime>,
) -> Result<(), OpenError> {
    let refused =
        |reason| OpenError::System { what: "registering the carrier with the runtime", reason };
    let watch = CarrierWatch::new(carrier).map_err(refused)?;
    let descriptors = watch.descriptors().map_err(refused)?;
    let watched = descriptors.into_iter().map(|one| runtime.watch(one));
    let watched = watched.collect::<io::Result<_>>();
    let watched = watched.map_err(|reason| match reason.kind() {
        io::ErrorKind::Unsupported => OpenError::Options(NO_WATCH),
        _ => refused(reason),
    })?;
    let timer = runtime.timer(IDLE_MAX);
    let timer = timer.map_err(|reason| match reason.kind() {
        io::ErrorKind::Unsupported => OpenError::Options(NO_TIMERS),
        _ => OpenError::System { what: "making the endpoint's timer", reason },
    })?;
    let task = DriverTask {
        watched,
        alarm: Alarm { timer, due: Some(Instant::now() + IDLE_MAX) },
        spinners: Spinners::of(runtime),
    };
    let driver = Arc::clone(guard.driver());
    driver.set_watch(watch);
    runtime.spawn(Box::pin(BackgroundDriver::new(driver, task).drive()));
    Ok(())
}

const NO_WATCH: &str = "the runtime watches no sockets: call `enable_io` or `enable_all` on tokio's `Builder`, or open the endpoint with `io_thread(true)`, or by `bind_blocking`, `connect_blocking`";
const NO_TIMERS: &str = "the runtime has no timers: call `enable_time` or `enable_all` on tokio's `Builder`, or open the endpoint with `io_thread(true)`, or by `bind_blocking`, `connect_blocking`";

/// A task, for its driver.
struct DriverTask {
    /// The descriptors that the runtime watches.
    watched: Vec<Box<dyn Watched>>,
    alarm: Alarm,
    spinners: Spinners,
}

/// One timer, which is set again only where it would come too late: to set one may wake another
/// worker, which then sets its own sleep by it.
struct Alarm {
    timer: Pin<Box<dyn Timer>>,
    /// `None` once it has gone off.
    due: Option<Instant>,
}

impl DriverServices for DriverTask {
    fn spinning(&self) -> Spinning<impl Sized> {
        match self.spinners.begin() {
            Some(spinner) => Spinning::InPlace(spinner),
            None if self.spinners.is_possible() => Spinning::Never,
            None => Spinning::ByYields,
        }
    }

    fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        for watched in &mut self.watched {
            if let Poll::Ready(readable) = watched.poll_readable(context) {
                return Poll::Ready(readable);
            }
        }
        Poll::Pending
    }

    fn set_alarm(&mut self, time: Duration) {
        let due = Instant::now() + time;
        if self.alarm.due.is_none_or(|set| set > due) {
            self.alarm.timer.as_mut().reset(time);
            self.alarm.due = Some(due);
        }
    }

    fn poll_alarm(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.alarm.due.is_none() {
            return Poll::Ready(());
        }
        let elapsed = self.alarm.timer.as_mut().poll(context);
        if elapsed.is_ready() {
            self.alarm.due = None;
        }
        elapsed
    }

    async fn yield_now(&mut self) {
        if !self.spinners.is_possible() {
            return yield_now().await;
        }
        // This worker wakes after a yield, when it has nothing else to run. If a task keeps it
        // busy, another one is to.
        self.set_alarm(YIELD_MAX);
        let mut yielding = pin!(yield_now());
        poll_fn(|context| match yielding.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => self.poll_alarm(context),
        })
        .await;
    }
}

/// Lets others run. Tokio's own function is right outside of tokio too.
#[cfg(feature = "tokio")]
use tokio::task::yield_now;

/// Lets others run.
#[cfg(not(feature = "tokio"))]
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| match std::mem::replace(&mut has_yielded, true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

/// A yield takes this time at most. Timers have a millisecond's grain.
const YIELD_MAX: Duration = Duration::from_millis(1);
