// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Futures that lead: one that `block_on` polls looks for what comes itself, as a thread does.
//!
//! Waking such a future means waking a thread, which takes longer than the rest of a call; and
//! `#[tokio::main]` runs `main` so, with the accept loop of most servers in it. A future leads from
//! its second poll on, to which it wakes itself: until then others beside it (`join!`, `select!`)
//! have begun what they do.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::driver::Driver;
use crate::driver::leader::LedBy;
#[cfg(all(feature = "tokio", not(smt_model)))]
use crate::runtime::is_in_block_on;
#[cfg(smt_model)]
use crate::sync::is_in_block_on;

/// The state of a future that may lead, from one poll to the next.
#[derive(Debug, Default)]
pub(super) struct Leading {
    /// It has turned the watch off, and is to be polled again.
    leads: bool,
}

impl Leading {
    /// Polls, and looks for what comes meanwhile if this future may lead.
    pub(super) fn poll<T>(
        &mut self,
        driver: &Driver,
        context: &Context<'_>,
        mut poll: impl FnMut(&Waker) -> Poll<T>,
    ) -> Poll<T> {
        if let Poll::Ready(result) = poll(context.waker()) {
            // The task that polled it comes back soon, or the driver takes over.
            self.leads = false;
            return Poll::Ready(result);
        }
        if !driver.is_led_by_futures() || !is_in_block_on() {
            return Poll::Pending;
        }
        if !self.leads {
            self.begin(driver, context);
            return Poll::Pending;
        }
        self.look(driver, context, poll)
    }

    /// Leads from the next poll on, if that pays and no other future leads.
    fn begin(&mut self, driver: &Driver, context: &Context<'_>) {
        let Some(mut leader) = driver.try_lead(LedBy::Future) else {
            return;
        };
        self.leads = leader.begin(driver.now());
        if self.leads {
            context.waker().wake_by_ref();
        } else {
            leader.stop_after_future();
        }
    }

    /// Looks until this future is ready, nothing comes any more, or the poll has taken long.
    fn look<T>(
        &mut self,
        driver: &Driver,
        context: &Context<'_>,
        mut poll: impl FnMut(&Waker) -> Poll<T>,
    ) -> Poll<T> {
        let began = driver.now();
        loop {
            let Some(mut leader) = driver.try_lead(LedBy::Future) else {
                // The task that drives has taken over.
                self.leads = false;
                return Poll::Pending;
            };
            if !leader.spin() {
                leader.stop();
                self.leads = false;
                return Poll::Pending;
            }
            drop(leader);
            if let Poll::Ready(result) = poll(context.waker()) {
                self.leads = false;
                return Poll::Ready(result);
            }
            if driver.now().since(began) > POLL_MAX {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }

    /// The future is dropped: if it leads, the runtime watches again.
    pub(super) fn end(&mut self, driver: &Driver) {
        if std::mem::take(&mut self.leads)
            && let Some(mut leader) = driver.try_lead(LedBy::Future)
        {
            leader.stop();
        }
    }
}

/// Whether `block_on` polls this future, on a runtime whose workers run meanwhile: that is known of
/// tokio alone.
#[cfg(not(any(feature = "tokio", smt_model)))]
fn is_in_block_on() -> bool {
    false
}

/// A poll takes about this long at most.
const POLL_MAX: Duration = Duration::from_micros(200);
