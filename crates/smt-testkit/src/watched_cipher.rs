// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The production cipher library, watched: every key, sealing and opening is seen beneath the code
//! under test, and may be refused.

use std::sync::Arc;

use smt_record::{Aead, AeadProvider, AwsLc, OpenFailed, Suite, Unavailable};
use smt_wire::TAG_LEN;

/// Sees the keys of an endpoint.
pub trait CipherWatch: Send + Sync {
    /// A key is made; what it does is told to the returned watch, which is dropped with the key.
    fn key(&self, key: &[u8], iv: &[u8; 12]) -> Box<dyn KeyWatch>;

    /// A key is about to be made.
    ///
    /// # Errors
    /// It is not: the library has no memory, say.
    fn attempt(&self) -> Result<(), Unavailable> {
        Ok(())
    }
}

/// Sees what one key does.
pub trait KeyWatch: Send + Sync {
    /// The key is about to seal or to open.
    ///
    /// # Errors
    /// It does not.
    fn attempt(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// These bytes, one after the other, are about to be sealed.
    fn sealing(&self, _number: u64, _aad: &[u8], _plaintext: &[&[u8]]) {}

    /// Bytes under this number have opened.
    fn opened(&self, _number: u64, _aad: &[u8]) {}
}

/// Makes keys of the production library that `watch` sees.
#[derive(Clone, Debug)]
pub struct WatchedCipher<W> {
    watch: Arc<W>,
}

impl<W: CipherWatch> WatchedCipher<W> {
    /// Tells all of it to `watch`.
    pub fn new(watch: W) -> Self {
        Self { watch: Arc::new(watch) }
    }
}

impl<W: CipherWatch> AeadProvider for WatchedCipher<W> {
    fn aead(&self, suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        self.watch.attempt()?;
        Ok(Box::new(WatchedAead {
            aead: AwsLc.aead(suite, key, iv)?,
            watch: self.watch.key(key, &iv),
        }))
    }
}

struct WatchedAead {
    aead: Box<dyn Aead>,
    watch: Box<dyn KeyWatch>,
}

impl Aead for WatchedAead {
    fn seal(
        &self,
        number: u64,
        aad: &[u8],
        plaintext_in_place: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Unavailable> {
        self.watch.attempt()?;
        self.watch.sealing(number, aad, &[plaintext_in_place]);
        self.aead.seal(number, aad, plaintext_in_place)
    }

    fn seal_scatter(
        &self,
        number: u64,
        aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable> {
        self.watch.attempt()?;
        self.watch.sealing(number, aad, &[body, tail]);
        self.aead.seal_scatter(number, aad, body, tail, out)
    }

    fn open(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        out: &mut [u8],
    ) -> Result<(), OpenFailed> {
        self.watch.attempt()?;
        self.aead.open(number, aad, ciphertext, tag, out)?;
        self.watch.opened(number, aad);
        Ok(())
    }

    fn open_in_place(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext_and_tag: &mut [u8],
    ) -> Result<(), OpenFailed> {
        self.watch.attempt()?;
        self.aead.open_in_place(number, aad, ciphertext_and_tag)?;
        self.watch.opened(number, aad);
        Ok(())
    }
}
