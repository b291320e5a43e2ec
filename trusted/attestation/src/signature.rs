// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signatures over attested messages.
//!
//! A MAC proves nothing to third parties, since all who can verify it can forge it. Clients,
//! auditors and judges of evidence get a signature by a key that only one device has.

use ed25519_dalek::{Signature, Signer, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::attestation::HEADER_LEN;
use crate::error::Misuse;
use crate::stream::Stream;

/// Bytes of a signature (Ed25519, RFC 8032).
pub const SIGNATURE_LEN: usize = 64;
/// Bytes of a public key.
pub const PUBLIC_KEY_LEN: usize = 32;

/// A device's private key. Wiped when dropped.
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Takes 32 random bytes, the seed of RFC 8032.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// The public key.
    pub fn public_key(&self) -> [u8; PUBLIC_KEY_LEN] {
        self.0.verifying_key().to_bytes()
    }

    /// Signs an attested message for third parties, who have no key of the group.
    ///
    /// The device signs only what is among its own last attestations. Even a host that knows the
    /// group's key can have nothing signed that was not attested.
    ///
    /// # Errors
    /// [`Misuse::Forgotten`], [`Misuse::OtherMessage`].
    pub fn sign<const PEERS: usize, const RECENT: usize>(
        &self,
        stream: &Stream<PEERS, RECENT>,
        counter: u64,
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_LEN], Misuse> {
        let attestation = stream.reissue(counter)?;
        stream.check(&attestation, message).map_err(|_| Misuse::OtherMessage)?;
        Ok(self.0.sign(&signed(&attestation.header_bytes(), message)).to_bytes())
    }
}

/// Whether a device with this public key has signed the statement `header` (the first 32 bytes of
/// an attestation) on `message`. Needs no key of the group.
pub fn verify_signature(
    public_key: &[u8; PUBLIC_KEY_LEN],
    header: &[u8; HEADER_LEN],
    message: &[u8],
    signature: &[u8; SIGNATURE_LEN],
) -> bool {
    // Strict: keys of small order, for which one signature fits many messages, are refused.
    VerifyingKey::from_bytes(public_key).is_ok_and(|key| {
        key.verify_strict(&signed(header, message), &Signature::from_bytes(signature)).is_ok()
    })
}

/// The signed bytes: 16 bytes of domain, the statement, and SHA-256 of the message. A fixed size
/// needs no buffer for the message.
fn signed(header: &[u8; HEADER_LEN], message: &[u8]) -> [u8; 80] {
    let mut bytes = [0; 80];
    bytes[..16].copy_from_slice(b"SMT sign v1\0\0\0\0\0");
    bytes[16..48].copy_from_slice(header);
    bytes[48..].copy_from_slice(&Sha256::digest(message));
    bytes
}
