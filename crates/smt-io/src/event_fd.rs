// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A wake-up call as a file descriptor (eventfd(2)): readable from a signal until it is cleared.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// A flag that one thread raises and another polls.
#[derive(Debug)]
pub struct EventFd {
    file: File,
}

impl EventFd {
    /// A flag that is not raised.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self {
            file: File::from(descriptor),
        })
    }

    /// Raises the flag: the descriptor becomes readable.
    ///
    /// # Errors
    /// None that a valid descriptor gives.
    pub fn signal(&self) -> io::Result<()> {
        match (&self.file).write(&1_u64.to_ne_bytes()) {
            Ok(_) => Ok(()),
            // The count is at its end: the flag is raised, which is all we want.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lowers the flag; tells whether it was raised.
    ///
    /// # Errors
    /// None that a valid descriptor gives.
    pub fn clear(&self) -> io::Result<bool> {
        let mut count = [0; 8];
        match (&self.file).read(&mut count) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
