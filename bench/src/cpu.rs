// SPDX-License-Identifier: Apache-2.0 OR MIT
//! CPU time and memory of this process, and the core it runs on.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::failure::{Doing, Failure};

/// CPU time that all threads of this process have used so far, user and system.
pub(crate) fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}

/// Keeps this thread, and those it starts from now on, on one core.
pub(crate) fn pin(core: usize) -> Result<(), Failure> {
    if core >= CpuSet::MAX_CPU {
        return Err(Failure::new(format!("there is no core {core}")));
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).doing(&format!("pinning to core {core}"))
}

/// Ten thousand connections need as many descriptors: takes all that this process may have.
pub(crate) fn raise_descriptor_limit() -> Result<(), Failure> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let limit = Rlimit { current: maximum, maximum };
    setrlimit(Resource::Nofile, limit).doing("raising the limit of open files")
}

/// Resident memory of this process in bytes.
pub(crate) fn resident_bytes() -> Result<u64, Failure> {
    status_bytes("VmRSS:")
}

/// The most that it was since the process began.
pub(crate) fn peak_bytes() -> Result<u64, Failure> {
    status_bytes("VmHWM:")
}

fn status_bytes(name: &str) -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kibibytes: u64 = kibibytes
        .and_then(|text| text.trim().parse().ok())
        .ok_or_else(|| Failure::new(format!("the system does not tell {name}")))?;
    Ok(kibibytes * 1024)
}
