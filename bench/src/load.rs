// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The measuring loops. They know nothing of peers.
//!
//! A peer's client comes in one of three kinds, each with its loops: a thread for each caller
//! ([`Threads`]), a task for each caller ([`Tasks`]), or one thread that has many calls in progress
//! ([`Turns`]). Closed loops: each caller begins its next call when it has its reply. Open loops:
//! calls begin at random times ([`Arrivals`]), and are timed from when they should have begun, so
//! that a slow server cannot hide by slowing its callers down.

mod arrivals;
mod deal;
mod in_parts;
mod tally;
mod tasks;
mod threads;
mod turns;

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) use arrivals::Arrivals;
pub(crate) use deal::deal;
pub(crate) use tally::Tally;
pub(crate) use tasks::{TaskCaller, Tasks, runtime};
pub(crate) use threads::{ThreadCaller, Threads};
pub(crate) use turns::{Exchange, Turns};

use crate::failure::Failure;
use crate::frame;

/// Callers that do the same.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Group {
    /// How many.
    pub(crate) callers: usize,
    /// Bytes of each request.
    pub(crate) request: u32,
    /// Bytes of each reply, or of each part of it.
    pub(crate) reply: u32,
    /// Parts of each reply; 0 if it is whole.
    #[serde(default)]
    pub(crate) parts: u32,
    /// Microseconds that each handler computes.
    pub(crate) work_us: u32,
}

impl Group {
    /// The request that each of them sends.
    pub(crate) fn message(&self) -> Bytes {
        frame::busy_request(self.request, self.reply, self.work_us)
    }
}

/// Connected callers.
pub(crate) trait Callers {
    /// Calls for `duration`; a tally for each group.
    fn closed(&mut self, groups: &[Group], duration: Duration) -> Result<Vec<Tally>, Failure>;

    /// Makes the calls that are due; requests and replies of `size` bytes.
    fn open(&mut self, size: u32, arrivals: Arrivals) -> Result<Tally, Failure>;
}

/// A reply of another length is no echo.
fn check(length: usize, wanted: u32) -> Result<(), Failure> {
    if length == wanted as usize {
        return Ok(());
    }
    Err(Failure::new(format!("a reply has {length} bytes instead of {wanted}")))
}

/// Calls in progress at the end may take this long; after it the measurement has failed (closed
/// loop), or the calls count as unfinished (open loop).
const FINISH: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
