// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Header protection (RFC 9001 §5.4), ready to use.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes256};
use chacha20::cipher::{KeyIvInit, StreamCipherCore};
use chacha20::variants::Ietf;
use chacha20::{ChaChaCore, R20};
use zeroize::Zeroizing;

use super::suite::{HeaderProtectionKey, Suite};

/// Bytes of ciphertext that a mask is made of.
pub(super) const SAMPLE: usize = 16;

/// The bits of the first byte and the number that a mask covers.
pub(super) type Mask = [u8; 5];

/// Header protection with its key.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "entries are of one size in the device's memory")]
pub(super) enum HeaderKey {
    Aes128(Aes128),
    Aes256(Aes256),
    ChaCha20(Zeroizing<[u8; 32]>),
}

impl HeaderKey {
    pub(super) fn new(key: &HeaderProtectionKey) -> Self {
        let bytes: &[u8; 32] = &key.key;
        let short: &[u8; 16] = bytes.first_chunk().expect("16 of 32 bytes");
        match key.suite {
            Suite::Aes128Gcm => Self::Aes128(Aes128::new(short.into())),
            Suite::Aes256Gcm => Self::Aes256(Aes256::new(bytes.into())),
            Suite::ChaCha20Poly1305 => Self::ChaCha20(key.key.clone()),
        }
    }

    /// The mask of a packet with this sample.
    pub(super) fn mask(&self, sample: &[u8; SAMPLE]) -> Mask {
        let mut block = *sample;
        match self {
            Self::Aes128(cipher) => cipher.encrypt_block((&mut block).into()),
            Self::Aes256(cipher) => cipher.encrypt_block((&mut block).into()),
            Self::ChaCha20(key) => {
                let [a, b, c, d, nonce @ ..] = sample;
                let counter = u32::from_le_bytes([*a, *b, *c, *d]);
                // The core takes the last block too, where a stream would come to its end.
                let mut core = ChaChaCore::<R20, Ietf>::new((&**key).into(), nonce.into());
                core.set_block_pos(counter);
                let mut keystream = [0; 64];
                core.write_keystream_block((&mut keystream).into());
                block.copy_from_slice(&keystream[..SAMPLE]);
            }
        }
        let mut mask = Mask::default();
        mask.copy_from_slice(&block[..5]);
        mask
    }
}
