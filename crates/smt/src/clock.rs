// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one place that reads the clock.

use std::time::{Duration, Instant};

use smt_proto::Time;

/// A clock that began when its endpoint was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(&self) -> Time {
        Time::default() + (self.0.elapsed() + BEFORE)
    }
}

/// Cookies carry seconds since the beginning and are valid for some: begin later than zero.
const BEFORE: Duration = Duration::from_secs(60);
