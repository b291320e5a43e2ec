// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An attestation as a signature of `usig`.

use std::fmt;

use serde::{Deserialize, Serialize};
use smt_attestation::{Attestation, Header};
use usig::{Count, Counter};

/// An attestation, of which the header is known to be one. Its MAC is not verified yet.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "[[u8; 32]; 2]", into = "[[u8; 32]; 2]")]
pub struct DeviceSignature {
    attestation: Attestation,
    counter: u64,
}

/// Bytes that are no attestation, or have the counter 0, which no device gives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoSignature;

impl fmt::Display for NoSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "these bytes are no attestation")
    }
}

impl std::error::Error for NoSignature {}

impl DeviceSignature {
    /// The attestation.
    #[must_use]
    pub fn attestation(&self) -> &Attestation {
        &self.attestation
    }

    /// The statement of the attestation, if its MAC is right.
    pub(crate) fn claim(&self) -> Option<Header> {
        self.attestation.claim()
    }
}

impl TryFrom<Attestation> for DeviceSignature {
    type Error = NoSignature;

    fn try_from(attestation: Attestation) -> Result<Self, NoSignature> {
        let header = attestation.claim().ok_or(NoSignature)?;
        // The first attestation has the counter 1, and protocols over `usig` expect 0.
        let counter = header.counter.checked_sub(1).ok_or(NoSignature)?;
        Ok(Self { attestation, counter })
    }
}

impl TryFrom<[[u8; 32]; 2]> for DeviceSignature {
    type Error = NoSignature;

    fn try_from([header, mac]: [[u8; 32]; 2]) -> Result<Self, NoSignature> {
        Self::try_from(Attestation::new(&header, &mac))
    }
}

impl From<DeviceSignature> for [[u8; 32]; 2] {
    fn from(signature: DeviceSignature) -> Self {
        [signature.attestation.header_bytes(), signature.attestation.mac()]
    }
}

impl Counter for DeviceSignature {
    fn counter(&self) -> Count {
        Count(self.counter)
    }
}
