// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A deadline as a file descriptor (timerfd_create(2)): readable once it has passed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A one-shot timer on the monotonic clock, exact to the kernel's timer slack (50 us).
#[derive(Debug)]
pub struct TimerFd {
    file: File,
}

impl TimerFd {
    /// A timer that is not set.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers.
        let descriptor = unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC)
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor without another owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self { file: File::from(descriptor) })
    }

    /// Sets the timer to go off once, after `timeout`, or never. A past going-off is forgotten.
    ///
    /// # Errors
    /// A valid timer gives none.
    pub fn set(&self, timeout: Option<Duration>) -> io::Result<()> {
        let value = libc::itimerspec {
            it_interval: timespec(Duration::ZERO),
            it_value: timeout.map_or_else(
                || timespec(Duration::ZERO),
                // Zero would mean never.
                |timeout| timespec(timeout.max(Duration::from_nanos(1))),
            ),
        };
        // SAFETY: `value` lives across the call; the old value is not asked for.
        let outcome = unsafe {
            libc::timerfd_settime(self.file.as_raw_fd(), 0, &raw const value, std::ptr::null_mut())
        };
        if outcome < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: duration.subsec_nanos() as _,
    }
}
