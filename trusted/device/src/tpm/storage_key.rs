// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The TPM's storage key: it identifies the TPM, seals secrets, and encrypts the salts of sessions.

use p256::PublicKey;

use super::buffer::{Fields, take};
use super::commands::{CREATE_PRIMARY, OWNER, Primary};
use super::derivation::SharedSecret;
use super::{TpmError, Transport};

/// Bytes of a public point: two coordinates of P-256.
pub const POINT_LEN: usize = 64;

/// Restricted, decrypting, made inside the TPM and bound to it for ever; no dictionary attacks are
/// counted (part 2, section 8.3).
const ATTRIBUTES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 10 | 1 << 16 | 1 << 17;

/// The primary key of the owner's hierarchy. A TPM makes the same one each time, until its owner
/// clears it.
#[derive(Debug)]
pub struct StorageKey {
    pub(super) handle: u32,
    point: [u8; POINT_LEN],
    public: PublicKey,
}

impl StorageKey {
    /// Has the TPM make the key, which takes a place in its memory.
    ///
    /// # Errors
    /// Those of the TPM and of the way to it.
    pub fn create(tpm: &mut Transport) -> Result<Self, TpmError> {
        let Primary { handle, public } = tpm.create_primary(OWNER, &template(&[0; POINT_LEN]))?;
        let forged = TpmError::Forged(CREATE_PRIMARY.1);
        let Some(point) = point_of(&public, template) else {
            return Err(forged);
        };
        let public = PublicKey::from_sec1_bytes(&sec1(&point)).map_err(|_| forged)?;
        Ok(Self { handle, point, public })
    }

    /// The public point, which tells this TPM from all others.
    #[must_use]
    pub fn point(&self) -> [u8; POINT_LEN] {
        self.point
    }

    /// A secret that only the TPM can find from the bytes beside it.
    pub(super) fn salt(&self) -> SharedSecret {
        SharedSecret::with(&self.public, b"SECRET\0")
    }
}

/// The public area of the key: type ECC, name SHA-256, no policy, AES-128 in CFB for what it
/// protects, no scheme, P-256, no KDF, and the point.
fn template(point: &[u8; POINT_LEN]) -> Fields {
    Fields::default()
        .u16(0x0023)
        .u16(0x000b)
        .u32(ATTRIBUTES)
        .sized(&[])
        .u16(0x0006)
        .u16(128)
        .u16(0x0043)
        .u16(0x0010)
        .u16(0x0003)
        .u16(0x0010)
        .sized(&point[..32])
        .sized(&point[32..])
}

/// The point of a public area that has the template's fields. A key with other ones, for example
/// one that was made outside the TPM, is none of ours.
pub(super) fn point_of(
    public: &[u8],
    template: impl Fn(&[u8; POINT_LEN]) -> Fields,
) -> Option<[u8; POINT_LEN]> {
    let fixed = public.len().checked_sub(4 + POINT_LEN)?;
    let mut rest = public.get(fixed..)?;
    let mut point = [0; POINT_LEN];
    for half in point.chunks_exact_mut(32) {
        take::<2>(&mut rest)?;
        half.copy_from_slice(&take::<32>(&mut rest)?);
    }
    (template(&point).0 == public).then_some(point)
}

/// The point as P-256's libraries take it.
pub(super) fn sec1(point: &[u8; POINT_LEN]) -> [u8; 1 + POINT_LEN] {
    let mut bytes = [4; 1 + POINT_LEN];
    bytes[1..].copy_from_slice(point);
    bytes
}
