// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for a time, by the timers of an endpoint's runtime.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crate::driver::Driver;
use crate::runtime::Timer;

/// Waits for a future, for this time at most.
pub(super) async fn within(driver: &Driver, limit: Duration, future: impl Future<Output = ()>) {
    let mut timer = timer(driver, limit);
    let mut future = pin!(future);
    poll_fn(|context| {
        if future.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        timer.as_mut().map_or(Poll::Ready(()), |timer| timer.as_mut().poll(context))
    })
    .await;
}

/// Waits for this time.
pub(super) async fn wait(driver: &Driver, time: Duration) {
    within(driver, time, std::future::pending()).await;
}

/// An endpoint for tasks has a runtime. Its timers may have ended with it: then there is no time to
/// wait for.
fn timer(driver: &Driver, after: Duration) -> Option<Pin<Box<dyn Timer>>> {
    driver.runtime()?.timer(after).ok()
}
