// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory that is shared with the kernel, until it is dropped.

use libc::{c_int, c_void, off_t};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// A mapping of this process.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: memory of the process is reached from any thread; who accesses which of it when is the
// rule of `ring.rs` and `packet_socket.rs`.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared reference gives the address alone.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Fresh memory.
    pub(super) fn anonymous(length: usize) -> io::Result<Self> {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// A part of what a descriptor stands for.
    pub(super) fn of(file: BorrowedFd<'_>, length: usize, offset: off_t) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(length, flags, file.as_raw_fd(), offset)
    }

    fn map(length: usize, flags: c_int, file: c_int, offset: off_t) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the system chooses the place of a new mapping, so that no memory of the process
        // is touched.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, file, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(place) if start != libc::MAP_FAILED => Ok(Self { start: place, length }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Where it begins. It has [`Self::length`] bytes, which may be read and written.
    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) const fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing that was made of its address lives
        // longer than it.
        unsafe { libc::munmap(self.start.as_ptr().cast::<c_void>(), self.length) };
    }
}
