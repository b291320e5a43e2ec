// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An AEAD that remembers what it sealed: the same key and number with other bytes is a reused nonce.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use smt_record::{Aead, AeadProvider, AwsLc, OpenFailed, Suite, Unavailable};
use smt_wire::TAG_LEN;

/// What was sealed, by key and number.
type Sealed = BTreeMap<(Vec<u8>, u64), Vec<u8>>;

/// Makes keys that share one memory.
#[derive(Default)]
pub(super) struct NonceWatch {
    sealed: Arc<Mutex<Sealed>>,
}

impl AeadProvider for NonceWatch {
    fn aead(&self, suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        Ok(Box::new(Watched {
            inner: AwsLc.aead(suite, key, iv)?,
            name: [key, &iv].concat(),
            sealed: Arc::clone(&self.sealed),
        }))
    }
}

struct Watched {
    inner: Box<dyn Aead>,
    name: Vec<u8>,
    sealed: Arc<Mutex<Sealed>>,
}

impl Watched {
    fn note(&self, number: u64, aad: &[u8], plaintext: &[u8]) {
        let bytes = [aad, plaintext].concat();
        let mut sealed = self.sealed.lock().expect("no other thread panicked");
        let before = sealed
            .entry((self.name.clone(), number))
            .or_insert_with(|| bytes.clone());
        assert_eq!(*before, bytes, "number {number} has sealed other bytes");
    }
}

impl Aead for Watched {
    fn seal(
        &self,
        number: u64,
        aad: &[u8],
        plaintext: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Unavailable> {
        self.note(number, aad, plaintext);
        self.inner.seal(number, aad, plaintext)
    }

    fn seal_scatter(
        &self,
        number: u64,
        aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable> {
        self.note(number, aad, &[body, tail].concat());
        self.inner.seal_scatter(number, aad, body, tail, out)
    }

    fn open(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        out: &mut [u8],
    ) -> Result<(), OpenFailed> {
        self.inner.open(number, aad, ciphertext, tag, out)
    }

    fn open_in_place(&self, number: u64, aad: &[u8], sealed: &mut [u8]) -> Result<(), OpenFailed> {
        self.inner.open_in_place(number, aad, sealed)
    }
}
