// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one place that reads the clock.

use std::time::Duration;
#[cfg(not(smt_model))]
use std::time::Instant;

use smt_proto::Time;

/// A clock that began when its endpoint was opened.
#[derive(Clone, Copy, Debug)]
#[cfg(not(smt_model))]
pub(crate) struct Clock(Instant);

#[cfg(not(smt_model))]
impl Clock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(&self) -> Time {
        Time::default() + (self.0.elapsed() + BEFORE)
    }
}

/// The clock of a model, where time passes by looks.
#[derive(Clone, Copy, Debug)]
#[cfg(smt_model)]
pub(crate) struct Clock(Duration);

#[cfg(smt_model)]
impl Clock {
    pub(crate) fn new() -> Self {
        Self(crate::sync::look_at_clock())
    }

    pub(crate) fn now(&self) -> Time {
        Time::default() + (crate::sync::look_at_clock().saturating_sub(self.0) + BEFORE)
    }
}

/// Cookies carry seconds since the beginning and are valid for some: begin later than zero.
const BEFORE: Duration = Duration::from_secs(60);
