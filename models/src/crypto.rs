// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ciphers as a symbolic model has them: a key opens exactly what was sealed under it. The key
//! schedule is the real one, by HKDF-SHA-256 (SPEC §7).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use smt_record::{
    Aead, AeadProvider, CryptoProvider, HashAlgorithm, HashProvider, ImportedIdentity, ImportedKey,
    OpenFailed, SessionSecrets, Suite, Unavailable,
};
use smt_wire::TAG_LEN;

pub(crate) const SUITE: Suite = Suite::Aes128Gcm;

/// The plaintexts that were sealed, by key and number.
type Plaintexts = BTreeMap<(Vec<u8>, u64), BTreeSet<Vec<u8>>>;

/// The ciphers of one world, which remember all that is sealed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ciphers(Arc<Mutex<Plaintexts>>);

impl Ciphers {
    /// These ciphers with the hashes of a key schedule.
    pub(crate) fn provider(&self) -> CryptoProvider {
        CryptoProvider::new(Arc::new(self.clone()), Arc::new(Sha2))
    }

    /// Whether a key has sealed two plaintexts under one number.
    pub(crate) fn has_reused_a_nonce(&self) -> bool {
        lock(&self.0).values().any(|texts| texts.len() > 1)
    }
}

impl AeadProvider for Ciphers {
    fn aead(&self, _suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        Ok(Box::new(Key { name: [key, &iv].concat(), sealed: Arc::clone(&self.0) }))
    }
}

/// One key. Its ciphertext is the plaintext, since no secrecy is asked about here. Its tag is the
/// key, which tells ciphertexts of two keys apart; the memory of what was sealed decides.
struct Key {
    name: Vec<u8>,
    sealed: Arc<Mutex<Plaintexts>>,
}

impl Key {
    fn remember(&self, number: u64, text: Vec<u8>) {
        let mut sealed = lock(&self.sealed);
        let texts = sealed.entry((self.name.clone(), number)).or_default();
        texts.insert(text);
    }

    fn tag(&self) -> [u8; TAG_LEN] {
        let tag = self.name.first_chunk();
        *tag.expect("keys have 16 bytes at least")
    }

    fn check(&self, number: u64, text: &[u8], tag: &[u8]) -> Result<(), OpenFailed> {
        if tag != self.tag() {
            return Err(OpenFailed::Forged);
        }
        let sealed = lock(&self.sealed);
        let texts = sealed.get(&(self.name.clone(), number));
        let is_sealed = texts.is_some_and(|texts| texts.contains(text));
        is_sealed.then_some(()).ok_or(OpenFailed::Forged)
    }
}

impl Aead for Key {
    fn seal(
        &self,
        number: u64,
        aad: &[u8],
        plaintext: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Unavailable> {
        self.remember(number, [aad, plaintext].concat());
        Ok(self.tag())
    }

    fn seal_scatter(
        &self,
        number: u64,
        aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable> {
        let text = [body, tail].concat();
        let (ciphertext, tag) = out.split_at_mut(text.len());
        ciphertext.copy_from_slice(&text);
        tag.copy_from_slice(&self.tag());
        self.remember(number, [aad, &text].concat());
        Ok(())
    }

    fn open(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        out: &mut [u8],
    ) -> Result<(), OpenFailed> {
        self.check(number, &[aad, ciphertext].concat(), tag)?;
        out.copy_from_slice(ciphertext);
        Ok(())
    }

    fn open_in_place(&self, number: u64, aad: &[u8], sealed: &mut [u8]) -> Result<(), OpenFailed> {
        let length = sealed.len().checked_sub(TAG_LEN);
        let (text, tag) = sealed.split_at(length.ok_or(OpenFailed::Forged)?);
        self.check(number, &[aad, text].concat(), tag)
    }
}

/// The secrets of the session with this number: the parameter hash stands for the fresh randoms of
/// both sides (SPEC §7.2).
pub(crate) fn session_secrets(session: u8) -> SessionSecrets {
    let identity = ImportedIdentity { key_name: b"", client: b"client", server: b"server" };
    ImportedKey::new(&Sha2, SUITE, b"a key for models", &identity)
        .session_secrets(&Sha2, &[session; 32])
}

/// SHA-256 in Rust.
#[derive(Clone, Copy, Debug)]
struct Sha2;

impl HashProvider for Sha2 {
    fn sha256(&self, parts: &[&[u8]]) -> [u8; 32] {
        let hash = parts.iter().fold(Sha256::new(), Digest::chain_update);
        hash.finalize().into()
    }

    fn hmac(&self, algorithm: HashAlgorithm, key: &[u8], parts: &[&[u8]], out: &mut [u8]) {
        assert_eq!(algorithm, HashAlgorithm::Sha256, "the suite's hash");
        let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
        let mac = parts.iter().fold(mac, |mac, part| mac.chain_update(part));
        out.copy_from_slice(&mac.finalize().into_bytes());
    }
}

fn lock(plaintexts: &Mutex<Plaintexts>) -> MutexGuard<'_, Plaintexts> {
    plaintexts.lock().unwrap_or_else(PoisonError::into_inner)
}
