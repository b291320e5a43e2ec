// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Public keys of members.

use ed25519_dalek::{SigningKey, VerifyingKey};

/// The public key of a member (Ed25519).
pub type PublicKey = [u8; 32];

/// The public key of a seed.
#[must_use]
pub fn public_key(seed: &[u8; 32]) -> PublicKey {
    SigningKey::from_bytes(seed).verifying_key().to_bytes()
}

/// Whether these bytes are a public key by which a signature can verify.
#[must_use]
pub fn is_public_key(key: &PublicKey) -> bool {
    VerifyingKey::from_bytes(key).is_ok_and(|it| !it.is_weak())
}
