// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CPU time of this process, and the core it runs on.

use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::failure::{Doing, Failure};

/// CPU time that all threads of this process have used so far, in user and system mode.
pub(super) fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}

/// Keeps this thread, and those it starts from now on, on one core.
pub(super) fn pin(core: usize) -> Result<(), Failure> {
    if core >= CpuSet::MAX_CPU {
        return Err(Failure::new(format!("there is no core {core}")));
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).doing(format!("pinning to core {core}"))
}
