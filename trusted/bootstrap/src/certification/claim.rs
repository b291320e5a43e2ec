// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The claim of a device to a certificate, and what is said about it.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::KEY_LEN;

/// The facts that a device wants to have certified.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Claim {
    /// The device's number.
    pub device: u32,
    /// The device's own key.
    pub hardware_key: [u8; KEY_LEN],
    /// The public area of the key of its TPM's quotes (TPMT_PUBLIC).
    pub quoting_key: Vec<u8>,
    /// The certificate of its TPM's endorsement key (X.509).
    pub endorsement_certificate: Vec<u8>,
    /// The signature of the device's own key.
    pub signature: [[u8; 32]; 2],
}

/// A claim's connection as both ends know it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) nonce: [u8; 32],
    pub(super) exporter: [u8; 32],
    /// The key of the device's end.
    pub(super) applicant: [u8; KEY_LEN],
    pub(super) manufacturer: [u8; KEY_LEN],
}

/// SHA-256 over a claim and its connection.
#[derive(Clone, Copy)]
pub(super) struct ClaimDigest([u8; 32]);

impl Claim {
    pub(super) fn digest(&self, place: &Place) -> ClaimDigest {
        let [quoting_key, endorsement_certificate] =
            [&self.quoting_key, &self.endorsement_certificate].map(Sha256::digest);
        let digest = Sha256::new()
            .chain_update(b"SMT tpm claim  1")
            .chain_update(place.nonce)
            .chain_update(place.exporter)
            .chain_update(place.applicant)
            .chain_update(place.manufacturer)
            .chain_update(self.device.to_be_bytes())
            .chain_update(self.hardware_key)
            .chain_update(quoting_key)
            .chain_update(endorsement_certificate);
        ClaimDigest(digest.finalize().into())
    }
}

impl ClaimDigest {
    /// The bytes that the device's own key signs.
    pub(super) fn signed(&self) -> Vec<u8> {
        [&b"SMT claim sign 1"[..], &self.0].concat()
    }

    /// The bytes that the secret of the credential authenticates.
    pub(super) fn activated(&self) -> Vec<u8> {
        [&b"SMT activation 1"[..], &self.0].concat()
    }

    /// The data of the quote.
    pub(super) fn quoted(&self) -> [u8; 32] {
        let digest = Sha256::new().chain_update(b"SMT claim quote1").chain_update(self.0);
        digest.finalize().into()
    }
}
