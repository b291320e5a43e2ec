// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The messages between a manufacturer and a device far away.

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use crate::error::BootstrapError;
use crate::manufacturer::DeviceCertificate;

/// A message. Manufacturer and device take turns, in this order.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum CertificationMessage {
    /// Manufacturer: random bytes of this connection.
    Nonce([u8; 32]),
    /// Device: what it claims to be.
    Claim(Box<Claim>),
    /// Manufacturer: a credential for the TPM of the claim.
    Challenge {
        /// The encrypted secret with its MAC.
        blob: Vec<u8>,
        /// Its encrypted seed.
        seed: Vec<u8>,
    },
    /// Device: what its TPM made of it.
    Answer {
        /// HMAC-SHA-256 by the credential's secret over the claim.
        activated: [u8; 32],
        /// The TPM's statement over the claim.
        statement: Vec<u8>,
        /// The signature of the statement.
        signature: [[u8; 32]; 2],
    },
    /// Manufacturer: the certificate.
    Certificate(DeviceCertificate),
    /// Device: it has stored the certificate.
    Stored,
}

impl CertificationMessage {
    /// The message as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // These types cannot fail to serialize.
        postcard::to_allocvec(self).unwrap_or_default()
    }

    pub(super) fn decode(bytes: &[u8], step: &'static str) -> Result<Self, BootstrapError> {
        match postcard::take_from_bytes(bytes) {
            Ok((message, [])) => Ok(message),
            _ => Err(BootstrapError::Malformed(step)),
        }
    }
}
