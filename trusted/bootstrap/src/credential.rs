// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TPM2_MakeCredential without a TPM (*TPM 2.0 Library Specification*, part 1, section 24).

use aws_lc_rs::cipher::{AES_128, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::iv::FixedLength;
use smt_device::tpm::derivation::{SharedSecret, hmac, kdf_a};
use smt_device::tpm::{Credential, NAME_LEN};
use zeroize::Zeroizing;

use crate::endorsement::EndorsementKey;
use crate::error::BootstrapError;

/// A credential with `secret` for the TPM that has both keys: the endorsement key, and the one of
/// that name.
///
/// # Errors
/// [`BootstrapError::EndorsementKey`], [`BootstrapError::Cryptography`].
pub(crate) fn make_credential(
    endorsement_key: &EndorsementKey,
    name: &[u8; NAME_LEN],
    secret: &[u8; 32],
) -> Result<Credential, BootstrapError> {
    let SharedSecret { secret: seed, encrypted } = endorsement_key.secret()?;
    let cipher_key = kdf_a(&*seed, b"STORAGE\0", [name, &[]], 1, 128);
    // A TPM2B: the length in two bytes, and the secret.
    let mut identity = Zeroizing::new([0; 34]);
    identity[1] = 32;
    identity[2..].copy_from_slice(secret);
    encrypt(&cipher_key[..16], &mut *identity).ok_or(BootstrapError::Cryptography)?;
    let mac_key = kdf_a(&*seed, b"INTEGRITY\0", [&[], &[]], 1, 256);
    let mac = hmac(&*mac_key, &[&*identity, name]);
    let blob = [&[0, 32], &mac[..], &identity[..]].concat();
    Ok(Credential { blob, seed: encrypted })
}

/// AES-128 in CFB. The key is of this credential alone, so its first block may be zeros.
fn encrypt(key: &[u8], bytes: &mut [u8]) -> Option<()> {
    let key = EncryptingKey::cfb128(UnboundCipherKey::new(&AES_128, key).ok()?).ok()?;
    let begin = EncryptionContext::Iv128(FixedLength::from([0; 16]));
    key.less_safe_encrypt(bytes, begin).ok().map(|_| ())
}
