// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys that a TPM and its peer derive from a secret of both (*TPM 2.0 Library Specification*,
//! part 1, sections 11.4.10 and C.6).

use hmac::{Hmac, KeyInit, Mac};
use p256::PublicKey;
use p256::ecdh::EphemeralSecret;
use p256::elliptic_curve::Generate;
use p256::elliptic_curve::sec1::ToSec1Point;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::buffer::Fields;
use super::storage_key::{POINT_LEN, sec1};

/// A secret for the owner of a key of P-256, and the bytes by which the owner finds it.
pub struct SharedSecret {
    /// The secret.
    pub secret: Zeroizing<[u8; 32]>,
    /// The point of a key of this secret alone (TPMS_ECC_POINT).
    pub encrypted: Vec<u8>,
}

impl SharedSecret {
    /// A new secret for the key of `point`, nothing if no point of the curve is there. The label
    /// says what the secret is for, and ends with a zero.
    #[must_use]
    pub fn with_point(point: &[u8; POINT_LEN], label: &[u8]) -> Option<Self> {
        let public = PublicKey::from_sec1_bytes(&sec1(point)).ok()?;
        Some(Self::with(&public, label))
    }

    pub(super) fn with(public: &PublicKey, label: &[u8]) -> Self {
        let ephemeral = EphemeralSecret::generate();
        let [own, theirs] = [&ephemeral.public_key(), public].map(|it| it.to_sec1_point(false));
        let shared = ephemeral.diffie_hellman(public);
        let (x, y) = (&own.as_bytes()[1..33], &own.as_bytes()[33..65]);
        let secret = Sha256::new()
            .chain_update(1_u32.to_be_bytes())
            .chain_update(shared.raw_secret_bytes())
            .chain_update(label)
            .chain_update(x)
            .chain_update(&theirs.as_bytes()[1..33])
            .finalize();
        let encrypted = Fields::default().sized(x).sized(y).0;
        Self { secret: Zeroizing::new(secret.into()), encrypted }
    }
}

/// HMAC-SHA-256 over parts.
#[must_use]
pub fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // A key of any length fits HMAC.
    let keyed = <Hmac<Sha256> as KeyInit>::new_from_slice(key);
    let mut hmac = keyed.unwrap_or_else(|_| unreachable!("any length"));
    for part in parts {
        hmac.update(part);
    }
    hmac.finalize().into_bytes().into()
}

/// One block of KDFa with SHA-256, counted from 1, of so many bits in all. The label ends with a
/// zero.
#[must_use]
pub fn kdf_a(
    key: &[u8],
    label: &[u8],
    context: [&[u8]; 2],
    block: u32,
    bits: u32,
) -> Zeroizing<[u8; 32]> {
    let (block, bits) = (block.to_be_bytes(), bits.to_be_bytes());
    Zeroizing::new(hmac(key, &[&block, label, context[0], context[1], &bits]))
}
