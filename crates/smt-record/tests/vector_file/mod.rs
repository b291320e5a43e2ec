// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the vector files, and seals and opens with RustCrypto.

mod rust_crypto;

pub(crate) use rust_crypto::SoftCrypto;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::ChaCha20Poly1305;
use serde_json::Value;
use smt_record::Suite;

pub(crate) fn read(name: &str) -> Value {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors");
    let text = std::fs::read_to_string(format!("{directory}/{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Fields of a vector, by name; a missing one fails the test with its name.
pub(crate) trait Fields {
    fn list(&self, name: &str) -> &[Value];
    fn text(&self, name: &str) -> &str;
    fn number(&self, name: &str) -> u64;
    /// 16 hex digits.
    fn number_64(&self, name: &str) -> u64;
    fn bytes(&self, name: &str) -> Vec<u8>;
    fn suite(&self) -> Suite;
}

impl Fields for Value {
    fn list(&self, name: &str) -> &[Value] {
        let list = self[name].as_array().unwrap_or_else(|| panic!("{name} is a list"));
        assert!(!list.is_empty(), "{name} has vectors");
        list
    }

    fn text(&self, name: &str) -> &str {
        self[name].as_str().unwrap_or_else(|| panic!("{name} is a string"))
    }

    fn number(&self, name: &str) -> u64 {
        self[name].as_u64().unwrap_or_else(|| panic!("{name} is a number"))
    }

    fn number_64(&self, name: &str) -> u64 {
        assert_eq!(self.text(name).len(), 16, "{name}");
        u64::from_str_radix(self.text(name), 16).unwrap()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        let text = self.text(name);
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect()
    }

    fn suite(&self) -> Suite {
        Suite::from_code(u16::from_str_radix(self.text("suite"), 16).unwrap()).unwrap()
    }
}

/// The AEADs of RustCrypto, with the nonce computed here once more.
pub(crate) struct RustCrypto {
    suite: Suite,
    key: Vec<u8>,
    iv: Vec<u8>,
}

impl RustCrypto {
    /// `keys` has the fields `key` and `iv`.
    pub(crate) fn new(suite: Suite, keys: &Value) -> Self {
        Self { suite, key: keys.bytes("key"), iv: keys.bytes("iv") }
    }

    pub(crate) fn seal(&self, number: u64, aad: &[u8], msg: &[u8]) -> Vec<u8> {
        let (nonce, payload) = (self.nonce(number), Payload { msg, aad });
        let nonce = &nonce.into();
        match self.suite {
            Suite::Aes128Gcm => self.cipher::<Aes128Gcm>().encrypt(nonce, payload),
            Suite::Aes256Gcm => self.cipher::<Aes256Gcm>().encrypt(nonce, payload),
            Suite::ChaCha20Poly1305 => self.cipher::<ChaCha20Poly1305>().encrypt(nonce, payload),
        }
        .unwrap()
    }

    pub(crate) fn open(&self, number: u64, aad: &[u8], msg: &[u8]) -> Option<Vec<u8>> {
        let (nonce, payload) = (self.nonce(number), Payload { msg, aad });
        let nonce = &nonce.into();
        match self.suite {
            Suite::Aes128Gcm => self.cipher::<Aes128Gcm>().decrypt(nonce, payload),
            Suite::Aes256Gcm => self.cipher::<Aes256Gcm>().decrypt(nonce, payload),
            Suite::ChaCha20Poly1305 => self.cipher::<ChaCha20Poly1305>().decrypt(nonce, payload),
        }
        .ok()
    }

    fn cipher<C: KeyInit>(&self) -> C {
        C::new_from_slice(&self.key).unwrap()
    }

    fn nonce(&self, number: u64) -> [u8; 12] {
        let iv = u128::from_be_bytes([&[0; 4], &self.iv[..]].concat().try_into().unwrap());
        (iv ^ u128::from(number)).to_be_bytes()[4..].try_into().unwrap()
    }
}
