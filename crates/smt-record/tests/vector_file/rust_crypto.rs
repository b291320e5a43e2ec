// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A second library behind the crate's traits: RustCrypto, in plain Rust, as where there is no std.

use std::sync::Arc;

use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::ChaCha20Poly1305;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, Sha384};
use smt_record::{
    Aead, AeadProvider, CryptoProvider, HashAlgorithm, HashProvider, OpenFailed, Suite,
    Unavailable, nonce,
};

/// Ciphers and hashes of RustCrypto; HKDF is the crate's own.
pub(crate) struct SoftCrypto;

impl SoftCrypto {
    pub(crate) fn provider() -> CryptoProvider {
        CryptoProvider::new(Arc::new(Self), Arc::new(Self))
    }
}

impl HashProvider for SoftCrypto {
    fn sha256(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new();
        parts.iter().for_each(|part| hash.update(part));
        hash.finalize().into()
    }

    fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]], out: &mut [u8]) {
        match algorithm {
            HashAlgorithm::Sha256 => tag::<Hmac<Sha256>>(key, parts, out),
            HashAlgorithm::Sha384 => tag::<Hmac<Sha384>>(key, parts, out),
        }
    }
}

fn tag<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]], out: &mut [u8]) {
    let mut mac = <M as KeyInit>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    out.copy_from_slice(&mac.finalize().into_bytes());
}

impl AeadProvider for SoftCrypto {
    fn aead(&self, suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        Ok(match suite {
            Suite::Aes128Gcm => SoftAead::<Aes128Gcm>::boxed(key, iv),
            Suite::Aes256Gcm => SoftAead::<Aes256Gcm>::boxed(key, iv),
            Suite::ChaCha20Poly1305 => SoftAead::<ChaCha20Poly1305>::boxed(key, iv),
        })
    }
}

struct SoftAead<C> {
    cipher: C,
    iv: [u8; 12],
}

impl<C: AeadInOut + KeyInit + Send + Sync + 'static> SoftAead<C> {
    fn boxed(key: &[u8], iv: [u8; 12]) -> Box<dyn Aead> {
        let cipher = C::new_from_slice(key).unwrap();
        Box::new(Self { cipher, iv })
    }

    fn nonce(&self, number: u64) -> aes_gcm::aead::Nonce<C> {
        nonce(&self.iv, number).into_iter().collect()
    }
}

impl<C: AeadInOut + KeyInit + Send + Sync + 'static> Aead for SoftAead<C> {
    fn seal(
        &self,
        number: u64,
        aad: &[u8],
        plaintext_in_place: &mut [u8],
    ) -> Result<[u8; 16], Unavailable> {
        let nonce = self.nonce(number);
        let tag = self.cipher.encrypt_inout_detached(&nonce, aad, plaintext_in_place.into());
        Ok(tag.unwrap()[..].try_into().unwrap())
    }

    fn seal_scatter(
        &self,
        number: u64,
        aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable> {
        let (text, tag) = out.split_at_mut(body.len() + tail.len());
        text[..body.len()].copy_from_slice(body);
        text[body.len()..].copy_from_slice(tail);
        tag.copy_from_slice(&self.seal(number, aad, text)?);
        Ok(())
    }

    fn open(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; 16],
        out: &mut [u8],
    ) -> Result<(), OpenFailed> {
        out.copy_from_slice(ciphertext);
        let nonce = self.nonce(number);
        let tag = tag.iter().copied().collect();
        self.cipher.decrypt_inout_detached(&nonce, aad, (&mut *out).into(), &tag).map_err(|_| {
            out.fill(0);
            OpenFailed::Forged
        })
    }

    fn open_in_place(&self, number: u64, aad: &[u8], sealed: &mut [u8]) -> Result<(), OpenFailed> {
        let (text, tag) = sealed.split_last_chunk_mut().ok_or(OpenFailed::Forged)?;
        let (ciphertext, tag) = (text.to_vec(), *tag);
        self.open(number, aad, &ciphertext, &tag, text)
    }
}
