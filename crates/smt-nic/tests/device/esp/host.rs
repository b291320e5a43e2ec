// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host with a device of the ESP engine.

use smt_nic::completion::Status;
use smt_nic::esp::{EspEngine, EspTableError};

use super::software::Agreed;
pub(super) use crate::ring_host::Arrival;
use crate::ring_host::RingHost;

const QUEUES: u16 = 4;

/// The host and its device.
pub(super) type EspHost = RingHost<EspEngine>;

impl EspHost {
    pub(super) fn new() -> Self {
        Self::with(16, QUEUES)
    }

    /// A device that only sends.
    pub(super) fn sender() -> Self {
        Self::with(16, 0)
    }

    /// A device with room for so many associations in each direction, and so many receive queues.
    pub(super) fn with(associations: usize, queues: u16) -> Self {
        Self::with_engine(EspEngine, associations, queues)
    }

    pub(super) fn add_outbound(&mut self, agreed: &Agreed) -> Status {
        self.create(agreed.context(), &agreed.block())
    }

    pub(super) fn add_inbound(&mut self, agreed: &Agreed) -> Result<(), EspTableError> {
        agreed.with_inbound(|association| self.nic.add_association(association))
    }
}
