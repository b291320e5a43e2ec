// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The properties that a key of quotes must have, for its signature to be the TPM's word.

use sha2::{Digest, Sha256};

use super::buffer::{Fields, u16, u32};
use super::storage_key::{POINT_LEN, point_of};

/// Bytes of a key's name: the number of the hash, and SHA-256 of the public area.
pub const NAME_LEN: usize = 34;

const FIXED_TPM: u32 = 1 << 1;
const FIXED_PARENT: u32 = 1 << 4;
const MADE_INSIDE: u32 = 1 << 5;
const RESTRICTED: u32 = 1 << 16;
const DECRYPTS: u32 = 1 << 17;
const SIGNS: u32 = 1 << 18;
/// Restricted and signing: the key signs nothing that the TPM has not said itself. Made inside the
/// TPM and bound to it; used with an empty password; no dictionary attacks are counted.
const ATTRIBUTES: u32 =
    FIXED_TPM | FIXED_PARENT | MADE_INSIDE | 1 << 6 | 1 << 10 | RESTRICTED | SIGNS;

/// Why a key is none of quotes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QuotingKeyFault {
    /// No public area of a key of P-256.
    #[error("their key is no key of P-256 with SHA-256")]
    Malformed,
    /// The key signs what its owner likes, also a made-up quote.
    #[error("their key is not restricted: it signs whatever its owner likes")]
    NotRestricted,
    /// The key does not sign.
    #[error("their key does not sign")]
    NotSigning,
    /// The key is one of general purpose.
    #[error("their key is one of general purpose: it decrypts too")]
    Decrypts,
    /// The key may be copied to another TPM, or into a program.
    #[error("their key is not fixed to its TPM and parent: it may be copied")]
    NotFixed,
    /// The key was made outside, and may be there still.
    #[error("their key was made outside the TPM")]
    MadeOutside,
    /// Something else differs: policy, password, scheme.
    #[error("their key has another policy or scheme than keys of quotes")]
    Other,
}

/// The point of a public area, if its key signs nothing but what its TPM says.
///
/// # Errors
/// [`QuotingKeyFault`].
pub fn judge(public: &[u8]) -> Result<[u8; POINT_LEN], QuotingKeyFault> {
    let mut rest = public;
    let head = (u16(&mut rest), u16(&mut rest), u32(&mut rest));
    let (Some(0x0023), Some(0x000b), Some(attributes)) = head else {
        return Err(QuotingKeyFault::Malformed);
    };
    let has = |bits| attributes & bits == bits;
    for (is_well, fault) in [
        (has(RESTRICTED), QuotingKeyFault::NotRestricted),
        (has(SIGNS), QuotingKeyFault::NotSigning),
        (!has(DECRYPTS), QuotingKeyFault::Decrypts),
        (has(FIXED_TPM | FIXED_PARENT), QuotingKeyFault::NotFixed),
        (has(MADE_INSIDE), QuotingKeyFault::MadeOutside),
    ] {
        if !is_well {
            return Err(fault);
        }
    }
    point_of(public, template).ok_or(QuotingKeyFault::Other)
}

/// The name of a key, by which a TPM knows it (part 1, section 16).
#[must_use]
pub fn name_of(public: &[u8]) -> [u8; NAME_LEN] {
    let mut name = [0; NAME_LEN];
    // The number of SHA-256, which all our keys have for their names.
    name[1] = 0x0b;
    name[2..].copy_from_slice(&Sha256::digest(public));
    name
}

/// The public area of the key: type ECC, name SHA-256, no policy, no symmetric cipher, ECDSA with
/// SHA-256, P-256, no KDF, and the point.
pub(super) fn template(point: &[u8; POINT_LEN]) -> Fields {
    Fields::default()
        .u16(0x0023)
        .u16(0x000b)
        .u32(ATTRIBUTES)
        .sized(&[])
        .u16(0x0010)
        .u16(0x0018)
        .u16(0x000b)
        .u16(0x0003)
        .u16(0x0010)
        .sized(&point[..32])
        .sized(&point[32..])
}
