// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements with their attestations.

use serde::{Deserialize, Serialize};
use smt_attestation::Attestation;

/// Attested bytes.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Attested {
    /// The attestation's header and MAC.
    pub attestation: [[u8; 32]; 2],
    /// A statement of a protocol, or a vote of the device itself.
    pub body: Vec<u8>,
}

impl Attested {
    /// Bytes and the attestation that a device has given for them.
    #[must_use]
    pub fn new(attestation: &Attestation, body: Vec<u8>) -> Self {
        Self { attestation: [attestation.header_bytes(), attestation.mac()], body }
    }

    /// The attestation, which may be anything in a statement of others.
    #[must_use]
    pub fn attestation(&self) -> Attestation {
        Attestation::new(&self.attestation[0], &self.attestation[1])
    }
}
