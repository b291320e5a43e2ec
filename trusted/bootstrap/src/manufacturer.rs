// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The manufacturer, and the certificate that each device leaves it with.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::KEY_LEN;
use crate::error::BootstrapError;

const DOMAIN: &[u8; 16] = b"SMT device cert1";

/// The manufacturer's key.
pub struct Manufacturer(SigningKey);

/// The manufacturer's statement on a device.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct DeviceCertificate {
    /// The device's number.
    pub device: u32,
    /// The device's own key.
    pub hardware_key: [u8; KEY_LEN],
    /// The key of the quotes of its TPM, if it has one: two coordinates of P-256.
    pub quoting_key: Option<[[u8; 32]; 2]>,
    /// The manufacturer's signature.
    pub signature: [[u8; 32]; 2],
}

impl Manufacturer {
    /// Takes 32 random bytes.
    #[must_use]
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The key by which vendors verify certificates.
    #[must_use]
    pub fn public_key(&self) -> [u8; KEY_LEN] {
        self.0.verifying_key().to_bytes()
    }

    /// Certifies a device that the manufacturer has in its hands, or that [`crate::Certifier`] has
    /// verified: nothing here proves that the device has these keys.
    #[must_use]
    pub fn certify(
        &self,
        device: u32,
        hardware_key: [u8; KEY_LEN],
        quoting_key: Option<[u8; 64]>,
    ) -> DeviceCertificate {
        let quoting_key = quoting_key.as_ref().map(halves);
        let unsigned =
            DeviceCertificate { device, hardware_key, quoting_key, signature: [[0; 32]; 2] };
        let signature = halves(&self.0.sign(&unsigned.signed()).to_bytes());
        DeviceCertificate { signature, ..unsigned }
    }
}

impl DeviceCertificate {
    /// Whether the manufacturer has signed this.
    ///
    /// # Errors
    /// [`BootstrapError::Certificate`].
    pub fn verify(&self, manufacturer: &[u8; KEY_LEN]) -> Result<(), BootstrapError> {
        let is_signed = verify(manufacturer, &self.signed(), &self.signature);
        is_signed.then_some(()).ok_or(BootstrapError::Certificate)
    }

    /// The certificate as bytes, for a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Fixed fields cannot fail to serialize.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// Reads what [`DeviceCertificate::encode`] wrote.
    ///
    /// # Errors
    /// [`BootstrapError::Certificate`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BootstrapError> {
        postcard::from_bytes(bytes).map_err(|_| BootstrapError::Certificate)
    }

    fn signed(&self) -> Vec<u8> {
        let mut bytes = DOMAIN.to_vec();
        bytes.extend(self.device.to_be_bytes());
        bytes.extend(self.hardware_key);
        // Without a TPM the certificate is shorter, so it fits no other one.
        bytes.extend(self.quoting_key.iter().flatten().flatten());
        bytes
    }
}

/// The public key of a seed, whatever role has it.
#[must_use]
pub fn public_key(seed: &[u8; 32]) -> [u8; KEY_LEN] {
    SigningKey::from_bytes(seed).verifying_key().to_bytes()
}

/// Whether a key has signed bytes. Strict: keys of small order are refused.
pub(crate) fn verify(key: &[u8; KEY_LEN], bytes: &[u8], signature: &[[u8; 32]; 2]) -> bool {
    let signature = Signature::from_bytes(&whole(signature));
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(bytes, &signature).is_ok())
}

/// 64 bytes as two halves, which serde knows.
pub(crate) fn halves(bytes: &[u8; 64]) -> [[u8; 32]; 2] {
    let mut halves = [[0; 32]; 2];
    halves[0].copy_from_slice(&bytes[..32]);
    halves[1].copy_from_slice(&bytes[32..]);
    halves
}

pub(crate) fn whole(halves: &[[u8; 32]; 2]) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(&halves[0]);
    bytes[32..].copy_from_slice(&halves[1]);
    bytes
}
