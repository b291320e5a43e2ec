// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The thread that looks after an endpoint while no other waits for it, and keeps the timers that
//! are set while a leader already waits for longer.

use std::sync::Weak;
use std::time::Duration;

use smt_proto::Time;

use super::Driver;
use super::threads::{Leading, WAIT_MAX};
use crate::endpoint_state::EndpointState;
use crate::sync::thread;

/// Looks in while no thread waits: answers NEED_ACK, repeats CANCEL, notices CLOSE. It never waits
/// for the socket, so that it is never in a caller's way.
pub(super) fn look_after(driver: &Weak<Driver>) {
    let mut sleep = CARE_AFTER;
    loop {
        thread::park_timeout(sleep);
        let Some(driver) = driver.upgrade() else {
            return;
        };
        if driver.lock().is_closed {
            return;
        }
        sleep = driver.look_after();
    }
}

impl Driver {
    /// Lets the background thread look in as it does after a sleep.
    #[cfg(all(test, smt_model, feature = "async"))]
    pub(crate) fn look_after_idle(&self) {
        crate::sync::pass(CARE_AFTER);
        self.look_after();
    }

    /// Wakes the background thread to look whether the endpoint is closed: in a model it does not
    /// look by itself.
    #[cfg(all(test, smt_model, feature = "async"))]
    pub(crate) fn wake_background_thread(&self) {
        self.background_thread.get().into_iter().for_each(thread::Thread::unpark);
    }

    /// One look of the background thread; returns how long it may sleep after it.
    fn look_after(&self) -> Duration {
        {
            let (mut lead, now) = (self.lock_lead(), self.now());
            if lead.is_taken && lead.until <= now {
                drop(lead);
                return self.look_for_leader(now);
            }
            if lead.is_taken {
                return lead.until.since(now).min(CARE_AFTER);
            }
            if now.since(lead.last) < CARE_AFTER {
                return CARE_AFTER;
            }
            lead.is_taken = true;
        }
        let leading = Leading::of(self);
        while self.receive_now() {}
        let fire = |state: &mut EndpointState, now| state.fire_timers(now, false);
        let idle = self.change_at(self.now(), fire, |state, now, ()| state.idle_time(now));
        drop(leading);
        idle.map_or(CARE_IDLE, |idle| idle.clamp(CARE_AFTER, CARE_IDLE))
    }

    /// Does what is due while the leader waits for longer; how long nothing more is.
    fn look_for_leader(&self, now: Time) -> Duration {
        // From here on others tell of what they make due, also while this looks.
        self.lock_lead().until = now + WAIT_MAX;
        let fire = |state: &mut EndpointState, now| state.fire_timers(now, false);
        let idle = self.change_at(now, fire, |state, now, ()| state.idle_time(now));
        let wait = idle.map_or(WAIT_MAX, |idle| idle.min(WAIT_MAX));
        let mut lead = self.lock_lead();
        lead.until = lead.until.min(now + wait);
        lead.until.since(self.now()).min(CARE_AFTER)
    }
}

/// The background thread leaves an endpoint alone that was driven this recently.
const CARE_AFTER: Duration = Duration::from_millis(20);
/// The longest sleep of the background thread.
const CARE_IDLE: Duration = Duration::from_millis(250);
