// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tells a runtime that a socket has something to receive, where there is no epoll(7): always.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::UdpCarrier;

/// Watches the socket of a carrier, and the inbox of a shard.
#[derive(Debug)]
pub struct SocketWatch {
    carrier: Arc<UdpCarrier>,
    is_on: bool,
}

impl SocketWatch {
    /// A watch that is on.
    ///
    /// # Errors
    /// This one does not fail.
    pub fn new(carrier: Arc<UdpCarrier>) -> io::Result<Self> {
        Ok(Self {
            carrier,
            is_on: true,
        })
    }

    /// The descriptors that the runtime is to poll for reading.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        let descriptors = [Some(self.carrier.as_fd()), self.carrier.inbox_fd()];
        let descriptors = descriptors.into_iter().flatten();
        descriptors.map(|one| one.try_clone_to_owned()).collect()
    }

    /// Whether the watch was turned on last.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Notes what is wanted; the runtime is told in any case.
    pub fn turn(&mut self, on: bool) {
        self.is_on = on;
    }
}
