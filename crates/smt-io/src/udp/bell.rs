// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A wake-up call that can be polled beside a socket, on every Unix: a pair of local sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

/// A flag whose descriptor is readable while it is raised.
#[derive(Debug)]
pub(super) struct Bell {
    ringer: UnixDatagram,
    listener: UnixDatagram,
}

impl Bell {
    /// A bell that does not ring.
    pub(super) fn new() -> io::Result<Self> {
        let (ringer, listener) = UnixDatagram::pair()?;
        ringer.set_nonblocking(true)?;
        listener.set_nonblocking(true)?;
        Ok(Self { ringer, listener })
    }

    /// Makes the descriptor readable.
    pub(super) fn ring(&self) {
        // The only failure is a full queue: then it rings already.
        let _ = self.ringer.send(&[0]);
    }

    /// Makes the descriptor unreadable.
    pub(super) fn silence(&self) {
        while self.listener.recv(&mut [0]).is_ok() {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
