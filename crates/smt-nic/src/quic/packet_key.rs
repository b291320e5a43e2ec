// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The AEAD of packets (RFC 9001 §5.3), ready to use.

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use chacha20poly1305::ChaCha20Poly1305;
use zeroize::Zeroizing;

use super::suite::{PhaseKey, Suite};

/// Bytes of a packet's tag.
pub(super) const TAG: usize = 16;

/// An AEAD with its key and IV.
#[derive(Clone)]
pub(super) struct PacketKey {
    cipher: Cipher,
    iv: Zeroizing<[u8; 12]>,
}

#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "entries are of one size in the device's memory")]
enum Cipher {
    Aes128Gcm(Aes128Gcm),
    Aes256Gcm(Aes256Gcm),
    ChaCha20Poly1305(ChaCha20Poly1305),
}

/// A packet that is not what its sender sealed, or is sealed by another key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NotOpened;

impl PacketKey {
    pub(super) fn new(key: &PhaseKey) -> Self {
        let (bytes, iv): (&[u8; 32], _) = (&key.key, key.iv.clone());
        let short: &[u8; 16] = bytes.first_chunk().expect("16 of 32 bytes");
        let cipher = match key.suite {
            Suite::Aes128Gcm => Cipher::Aes128Gcm(Aes128Gcm::new(short.into())),
            Suite::Aes256Gcm => Cipher::Aes256Gcm(Aes256Gcm::new(bytes.into())),
            Suite::ChaCha20Poly1305 => {
                Cipher::ChaCha20Poly1305(ChaCha20Poly1305::new(bytes.into()))
            }
        };
        Self { cipher, iv }
    }

    pub(super) fn suite(&self) -> Suite {
        match self.cipher {
            Cipher::Aes128Gcm(_) => Suite::Aes128Gcm,
            Cipher::Aes256Gcm(_) => Suite::Aes256Gcm,
            Cipher::ChaCha20Poly1305(_) => Suite::ChaCha20Poly1305,
        }
    }

    /// Seals a payload in place; the tag takes its last 16 bytes. A payload is far below the AEADs'
    /// limits, so that this does not fail.
    pub(super) fn seal(&self, number: u64, header: &[u8], payload: &mut [u8]) {
        let at = payload.len() - TAG;
        let (plaintext, tag) = payload.split_at_mut(at);
        let nonce = &self.nonce(number).into();
        let sealed = match &self.cipher {
            Cipher::Aes128Gcm(of) => of.encrypt_inout_detached(nonce, header, plaintext.into()),
            Cipher::Aes256Gcm(of) => of.encrypt_inout_detached(nonce, header, plaintext.into()),
            Cipher::ChaCha20Poly1305(of) => {
                of.encrypt_inout_detached(nonce, header, plaintext.into())
            }
        };
        tag.copy_from_slice(&sealed.expect("a packet is below the limits of an AEAD"));
    }

    /// Opens a payload in place: the plaintext is all of it but the last 16 bytes. One that does
    /// not open is unchanged, for the tag is compared before anything is decrypted.
    pub(super) fn open(
        &self,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<(), NotOpened> {
        let at = payload.len().checked_sub(TAG).ok_or(NotOpened)?;
        let (ciphertext, tag) = payload.split_at_mut(at);
        let (nonce, tag) = (&self.nonce(number).into(), (&*tag).try_into().map_err(|_| NotOpened)?);
        let opened = match &self.cipher {
            Cipher::Aes128Gcm(of) => {
                of.decrypt_inout_detached(nonce, header, ciphertext.into(), tag)
            }
            Cipher::Aes256Gcm(of) => {
                of.decrypt_inout_detached(nonce, header, ciphertext.into(), tag)
            }
            Cipher::ChaCha20Poly1305(of) => {
                of.decrypt_inout_detached(nonce, header, ciphertext.into(), tag)
            }
        };
        opened.map_err(|_| NotOpened)
    }

    /// The IV XOR the packet number.
    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = *self.iv;
        for (byte, of) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of;
        }
        nonce
    }
}
