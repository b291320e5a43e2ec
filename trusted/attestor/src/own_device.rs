// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device of a replica.

use smt_attestation::{GroupSecret, SigningKey, Start};
use smt_device_client::{Device, SecretNumber};

use crate::error::AttestorError;

/// Where a replica's attestations come from.
pub enum OwnDevice {
    /// The kernel in this process. The number of the epoch comes from a counter that only grows.
    Library {
        /// The group's secret.
        secret: GroupSecret,
        /// The start of the device.
        start: Start,
        /// The key with which it signs, in systems whose statements convince third parties.
        signing_key: Option<Box<SigningKey>>,
    },
    /// A device that outlives the replica, and has its keys, epoch and counter itself.
    Process {
        /// The connection.
        device: Box<dyn Device>,
        /// The number under which it has the group's secret.
        secret: SecretNumber,
    },
}

impl OwnDevice {
    /// The device and its start.
    #[must_use]
    pub fn start(&self) -> Start {
        match self {
            Self::Library { start, .. } => *start,
            Self::Process { device, .. } => device.own(),
        }
    }

    /// The same device, whose start has this nonce: a kernel in this process is started with it.
    ///
    /// # Errors
    /// [`AttestorError::Foreign`] if a device that outlives the replica was started with another.
    pub fn with_nonce(mut self, nonce: [u8; 16]) -> Result<Self, AttestorError> {
        match &mut self {
            Self::Library { start, .. } => start.nonce = nonce,
            Self::Process { device, .. } if device.own().nonce == nonce => {}
            Self::Process { .. } => return Err(AttestorError::Foreign),
        }
        Ok(self)
    }
}
