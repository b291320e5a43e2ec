// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads and writes socket options that are plain integers.
//!
//! Not here: options that `socket2` already offers.

use libc::{c_int, c_void, socklen_t};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A socket option: its level and its name at that level.
#[derive(Clone, Copy)]
pub(super) struct SocketOption {
    pub(super) level: c_int,
    pub(super) name: c_int,
}

impl SocketOption {
    pub(super) const fn new(level: c_int, name: c_int) -> Self {
        Self { level, name }
    }

    pub(super) fn set(self, socket: BorrowedFd<'_>, value: c_int) -> io::Result<()> {
        // SAFETY: the pointer and length name `value`, which lives across the call.
        let outcome = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                self.level,
                self.name,
                (&raw const value).cast::<c_void>(),
                size_of::<c_int>() as socklen_t,
            )
        };
        if outcome == 0 {
            return Ok(());
        }
        Err(io::Error::last_os_error())
    }

    pub(super) fn read(self, socket: BorrowedFd<'_>) -> io::Result<c_int> {
        self.read_array::<1>(socket).map(|[value]| value)
    }

    /// Reads an option that is an array of integers; those that the system does not know are 0.
    pub(super) fn read_array<const N: usize>(
        self,
        socket: BorrowedFd<'_>,
    ) -> io::Result<[c_int; N]> {
        let mut values: [c_int; N] = [0; N];
        let mut length = size_of::<[c_int; N]>() as socklen_t;
        // SAFETY: the pointer and `length` name `values`; the system writes at most `length` bytes
        // there, and any bytes are valid integers.
        let outcome = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                self.level,
                self.name,
                values.as_mut_ptr().cast::<c_void>(),
                &raw mut length,
            )
        };
        if outcome == 0 {
            return Ok(values);
        }
        Err(io::Error::last_os_error())
    }
}
