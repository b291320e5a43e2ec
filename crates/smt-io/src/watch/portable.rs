// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tells a runtime that a socket has something to receive, where there is no epoll(7): always.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use smt_carrier::Carrier;

/// Watches the descriptors of a carrier: a socket, and the inbox of a shard.
pub struct CarrierWatch {
    carrier: Arc<dyn Carrier>,
    is_on: bool,
}

impl CarrierWatch {
    /// A watch that is on.
    ///
    /// # Errors
    /// This one does not fail.
    pub fn new(carrier: Arc<dyn Carrier>) -> io::Result<Self> {
        Ok(Self { carrier, is_on: true })
    }

    /// The descriptors that the runtime is to poll for reading.
    ///
    /// # Errors
    /// If the process has no file descriptors left.
    pub fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        let readiness = self.carrier.readiness();
        let descriptors = readiness.descriptors();
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

impl std::fmt::Debug for CarrierWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CarrierWatch").field("is_on", &self.is_on).finish_non_exhaustive()
    }
}
