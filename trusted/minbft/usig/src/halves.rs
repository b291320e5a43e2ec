// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device as a half that signs and one that verifies. Threads may have one each.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_attestation::StreamId;
use smt_device_client::{Device, DeviceError};
use usig::{ReplicaId, SignHalf, UsigError, VerifyHalf};

use crate::introduction::{Introduced, Introduction, Parties};
use crate::signature::DeviceSignature;

/// A device's stream, and why the device failed if it did.
struct Shared<D> {
    device: Mutex<D>,
    stream: StreamId,
    failure: Mutex<Option<DeviceError>>,
}

impl<D> Shared<D> {
    fn device(&self) -> MutexGuard<'_, D> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> MutexGuard<'_, Option<DeviceError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an error that is no fault of the message. The first one is the cause.
    fn keep(&self, error: DeviceError) {
        self.failure().get_or_insert(error);
    }
}

/// A view of a device that a protocol owns: `UsigError` cannot say that the device has failed.
pub struct Watch<D>(Arc<Shared<D>>);

impl<D> Watch<D> {
    /// Why the device did not sign or verify, once. A message that was refused is no failure. The
    /// replica must end: it has taken messages of correct replicas for forged.
    #[must_use]
    pub fn failure(&self) -> Option<DeviceError> {
        self.0.failure().take()
    }
}

impl<D> fmt::Debug for Watch<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.0.stream).finish()
    }
}

/// The half that signs.
pub struct DeviceSignHalf<D> {
    shared: Arc<Shared<D>>,
    own: Introduction,
}

impl<D> fmt::Debug for DeviceSignHalf<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSignHalf").field("own", &self.own).finish_non_exhaustive()
    }
}

/// The half that verifies.
pub struct DeviceVerifyHalf<D> {
    shared: Arc<Shared<D>>,
    introduced: Introduced,
}

impl<D> fmt::Debug for DeviceVerifyHalf<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("DeviceVerifyHalf");
        shown.field("introduced", &self.introduced).finish_non_exhaustive()
    }
}

/// Both halves of a device whose stream is open.
pub(crate) fn halves<D: Device>(
    device: D,
    stream: StreamId,
    parties: Parties,
) -> Result<(DeviceSignHalf<D>, DeviceVerifyHalf<D>), DeviceError> {
    device.sent(stream)?.ok_or(DeviceError::UnknownStream(stream))?;
    let start = device.own();
    let own = Introduction { device: start.device.0, epoch: start.epoch.0 };
    let shared = Shared { device: Mutex::new(device), stream, failure: Mutex::new(None) };
    let shared = Arc::new(shared);
    let introduced = Introduced::new(parties);
    Ok((DeviceSignHalf { shared: shared.clone(), own }, DeviceVerifyHalf { shared, introduced }))
}

impl<D> DeviceSignHalf<D> {
    pub(crate) fn watch(&self) -> Watch<D> {
        Watch(self.shared.clone())
    }
}

impl<D: Device> SignHalf for DeviceSignHalf<D> {
    type Signature = DeviceSignature;
    type Attestation = Introduction;

    fn sign(&mut self, message: impl AsRef<[u8]>) -> Result<DeviceSignature, UsigError> {
        let attested = self.shared.device().attest(self.shared.stream, message.as_ref());
        let attestation = attested.map_err(|error| {
            self.shared.keep(error);
            UsigError::SigningFailed
        })?;
        DeviceSignature::try_from(attestation).map_err(|_| {
            self.shared.keep(DeviceError::Protocol("an attestation without a counter"));
            UsigError::SigningFailed
        })
    }

    fn attest(&mut self) -> Result<Introduction, UsigError> {
        Ok(self.own)
    }
}

impl<D: Device> VerifyHalf for DeviceVerifyHalf<D> {
    type Signature = DeviceSignature;
    type Attestation = Introduction;

    fn verify(
        &self,
        replica: ReplicaId,
        message: impl AsRef<[u8]>,
        signature: &DeviceSignature,
    ) -> Result<(), UsigError> {
        let party = self.introduced.get(replica).ok_or(UsigError::UnknownId(replica))?;
        let message = message.as_ref();
        // Comparisons come first: they cost less than a MAC, and all they see is public.
        if !signature.claim().is_some_and(|header| party.is_of(&header)) {
            return Err(UsigError::InvalidSignature);
        }
        let checked =
            self.shared.device().check(self.shared.stream, signature.attestation(), message);
        match checked {
            Ok(_) => Ok(()),
            // No device attests a message that is too long for devices.
            Err(DeviceError::Refused(_) | DeviceError::PeerTooLong(_)) => {
                Err(UsigError::InvalidSignature)
            }
            Err(error) => {
                self.shared.keep(error);
                Err(UsigError::InvalidSignature)
            }
        }
    }

    fn add_remote_party(&mut self, replica: ReplicaId, attestation: Introduction) -> bool {
        self.introduced.add(replica, attestation)
    }
}
