// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key of TLS 1.3 with its IV: it seals and opens one record in place (RFC 8446 §5.2).

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use chacha20poly1305::ChaCha20Poly1305;
use zeroize::Zeroizing;

/// The key and the IV of one direction.
#[derive(Clone)]
pub(super) struct RecordKey {
    cipher: Cipher,
    iv: Zeroizing<[u8; 12]>,
}

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "contexts are of one size in the device's memory")]
enum Cipher {
    Aes128Gcm(Aes128Gcm),
    Aes256Gcm(Aes256Gcm),
    ChaCha20Poly1305(ChaCha20Poly1305),
}

/// The cipher did not do it: the tag is wrong, or the record is too long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CipherFailed;

impl RecordKey {
    /// The key of a suite, in 32 bytes of which shorter keys are the first. `None`: the engine does
    /// not have the suite.
    pub(super) fn new(suite: u16, key: &[u8; 32], iv: Zeroizing<[u8; 12]>) -> Option<Self> {
        let cipher = match suite {
            AES_128_GCM => Aes128Gcm::new_from_slice(&key[..16]).map(Cipher::Aes128Gcm),
            AES_256_GCM => Aes256Gcm::new_from_slice(key).map(Cipher::Aes256Gcm),
            CHACHA20_POLY1305 => {
                ChaCha20Poly1305::new_from_slice(key).map(Cipher::ChaCha20Poly1305)
            }
            _ => return None,
        };
        let cipher = cipher.ok()?;
        Some(Self { cipher, iv })
    }

    /// Seals a record in place: its header, its inner plaintext, and room for the tag. The caller
    /// has seen that it has all three.
    pub(super) fn seal(&self, number: u64, record: &mut [u8]) -> Result<(), CipherFailed> {
        let (header, rest) = record.split_at_mut(HEADER);
        let (plaintext, tag) = rest.split_at_mut(rest.len() - TAG);
        let nonce = self.nonce(number);
        let nonce = (&nonce).into();
        let sealed = match &self.cipher {
            Cipher::Aes128Gcm(of) => of.encrypt_inout_detached(nonce, header, plaintext.into()),
            Cipher::Aes256Gcm(of) => of.encrypt_inout_detached(nonce, header, plaintext.into()),
            Cipher::ChaCha20Poly1305(of) => {
                of.encrypt_inout_detached(nonce, header, plaintext.into())
            }
        };
        tag.copy_from_slice(&sealed.map_err(|_| CipherFailed)?);
        Ok(())
    }

    /// Opens a record in place: its tag stays behind the inner plaintext. A record whose tag is
    /// wrong is left as it is, since the tag is computed before anything is decrypted. The caller
    /// has seen that the record has a header and a tag.
    pub(super) fn open(&self, number: u64, record: &mut [u8]) -> Result<(), CipherFailed> {
        let (header, rest) = record.split_at_mut(HEADER);
        let (body, tag) = rest.split_at_mut(rest.len() - TAG);
        let (header, tag) = (&*header, (&*tag).try_into().map_err(|_| CipherFailed)?);
        let nonce = self.nonce(number);
        let nonce = (&nonce).into();
        let opened = match &self.cipher {
            Cipher::Aes128Gcm(of) => of.decrypt_inout_detached(nonce, header, body.into(), tag),
            Cipher::Aes256Gcm(of) => of.decrypt_inout_detached(nonce, header, body.into(), tag),
            Cipher::ChaCha20Poly1305(of) => {
                of.decrypt_inout_detached(nonce, header, body.into(), tag)
            }
        };
        opened.map_err(|_| CipherFailed)
    }

    /// The IV XOR the number (RFC 8446 §5.3).
    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = *self.iv;
        for (byte, of) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of;
        }
        nonce
    }
}

pub(super) const AES_128_GCM: u16 = 0x1301;
pub(super) const AES_256_GCM: u16 = 0x1302;
pub(super) const CHACHA20_POLY1305: u16 = 0x1303;
pub(super) const APPLICATION_DATA: u8 = 0x17;
/// Bytes of a record's header.
pub(super) const HEADER: usize = 5;
/// Bytes of a record's tag.
pub(super) const TAG: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use zeroize::ZeroizeOnDrop;

    fn is_erased(_: &impl ZeroizeOnDrop) -> bool {
        true
    }

    #[test]
    fn the_iv_is_erased_with_its_key() {
        let key = RecordKey::new(AES_128_GCM, &[1; 32], Zeroizing::new([2; 12]));
        assert!(key.is_some_and(|key| is_erased(&key.iv)));
    }
}
