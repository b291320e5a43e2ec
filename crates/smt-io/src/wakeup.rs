// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A wake-up that can be polled beside a socket, on every Unix: a pair of local sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

/// A flag whose descriptor is readable while it is raised.
#[derive(Debug)]
pub(crate) struct Wakeup {
    sender: UnixDatagram,
    receiver: UnixDatagram,
}

impl Wakeup {
    /// A flag that is not raised.
    pub(crate) fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixDatagram::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Self { sender, receiver })
    }

    /// Makes the descriptor readable.
    pub(crate) fn raise(&self) {
        // The only failure is a full queue: then it is readable already.
        let _ = self.sender.send(&[0]);
    }

    /// Makes the descriptor unreadable.
    pub(crate) fn clear(&self) {
        while self.receiver.recv(&mut [0]).is_ok() {}
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}
