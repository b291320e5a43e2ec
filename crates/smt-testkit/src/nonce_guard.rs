// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nonces are used once: the same key and number with other bytes ends the test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::watched_cipher::{CipherWatch, KeyWatch};

/// The bytes that were sealed, by key and number.
type Sealed = BTreeMap<(Vec<u8>, u64), Vec<u8>>;

/// A watch whose keys share one memory. It panics when a number seals other bytes than before.
#[derive(Debug, Default)]
pub struct NonceGuard {
    sealed: Arc<Mutex<Sealed>>,
}

impl CipherWatch for NonceGuard {
    fn key(&self, key: &[u8], iv: &[u8; 12]) -> Box<dyn KeyWatch> {
        Box::new(GuardedKey { name: [key, iv].concat(), sealed: Arc::clone(&self.sealed) })
    }
}

struct GuardedKey {
    name: Vec<u8>,
    sealed: Arc<Mutex<Sealed>>,
}

impl KeyWatch for GuardedKey {
    fn sealing(&self, number: u64, aad: &[u8], plaintext: &[&[u8]]) {
        let bytes = [aad, &plaintext.concat()].concat();
        let mut sealed = self.sealed.lock().expect("no other thread panicked");
        let before = sealed.entry((self.name.clone(), number)).or_insert_with(|| bytes.clone());
        assert_eq!(*before, bytes, "number {number} has sealed other bytes");
    }
}

#[cfg(test)]
mod tests {
    use smt_record::{Aead, AeadProvider, Suite};

    use super::*;
    use crate::WatchedCipher;

    fn key() -> Box<dyn Aead> {
        let cipher = WatchedCipher::new(NonceGuard::default());
        cipher.aead(Suite::Aes128Gcm, &[1; 16], [2; 12]).unwrap()
    }

    #[test]
    fn the_same_bytes_may_be_sealed_again() {
        let key = key();
        for _ in 0..2 {
            key.seal(7, b"aad", &mut b"text".to_vec()).unwrap();
            key.seal_scatter(7, b"aad", b"te", b"xt", &mut [0; 20]).unwrap();
        }
    }

    #[test]
    #[should_panic(expected = "number 7 has sealed other bytes")]
    fn other_bytes_under_a_number_end_the_test() {
        let key = key();
        key.seal(7, b"aad", &mut b"text".to_vec()).unwrap();
        key.seal(7, b"aad", &mut b"else".to_vec()).unwrap();
    }
}
