// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device that signs and verifies.

use std::fmt;

use smt_attestation::StreamId;
use smt_device_client::{Device, DeviceError};
use usig::{ReplicaId, SignHalf, Usig, UsigError, VerifyHalf};

use crate::halves::{DeviceSignHalf, DeviceVerifyHalf, Watch, halves};
use crate::introduction::{Introduction, Parties};
use crate::signature::DeviceSignature;

/// A device's stream in one group as a USIG.
pub struct DeviceUsig<D> {
    sign: DeviceSignHalf<D>,
    verify: DeviceVerifyHalf<D>,
}

impl<D> fmt::Debug for DeviceUsig<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceUsig").field(&self.sign).field(&self.verify).finish()
    }
}

impl<D: Device> DeviceUsig<D> {
    /// A USIG of a device that has opened the group's stream.
    ///
    /// # Errors
    /// [`DeviceError::UnknownStream`], those of the way to the device.
    pub fn new(device: D, stream: StreamId, parties: Parties) -> Result<Self, DeviceError> {
        let (sign, verify) = halves(device, stream, parties)?;
        Ok(Self { sign, verify })
    }

    /// A view of the device, for when a protocol owns the USIG.
    #[must_use]
    pub fn watch(&self) -> Watch<D> {
        self.sign.watch()
    }
}

impl<D: Device> Usig for DeviceUsig<D> {
    type Signature = DeviceSignature;
    type Attestation = Introduction;
    type SignHalf = DeviceSignHalf<D>;
    type VerifyHalf = DeviceVerifyHalf<D>;

    fn sign(&mut self, message: impl AsRef<[u8]>) -> Result<DeviceSignature, UsigError> {
        self.sign.sign(message)
    }

    fn attest(&mut self) -> Result<Introduction, UsigError> {
        self.sign.attest()
    }

    fn verify(
        &self,
        replica: ReplicaId,
        message: impl AsRef<[u8]>,
        signature: &DeviceSignature,
    ) -> Result<(), UsigError> {
        self.verify.verify(replica, message, signature)
    }

    fn add_remote_party(&mut self, replica: ReplicaId, attestation: Introduction) -> bool {
        self.verify.add_remote_party(replica, attestation)
    }

    fn split(self) -> (DeviceSignHalf<D>, DeviceVerifyHalf<D>) {
        (self.sign, self.verify)
    }
}
