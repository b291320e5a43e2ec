// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A cipher, from its secret to its tables, each made when it is first needed.
//!
//! ```text
//!   secret  -- two HKDF expansions, some us -->  key and IV  -- tables, 0.2 us -->  AEAD
//!    49 B                                           44 B                            650 B
//!         <--------------- hibernate()-------------- <------------ drop_ciphers()-----
//! ```
//! A session in use keeps key and IV. Whether it keeps the tables too depends on how many others
//! are in use: beyond the second-level cache they cost as much to fetch as to make. A session that
//! rests has its secrets alone.
//!
//! Not here: which sessions cool or rest, and when (`smt-proto`).

use alloc::boxed::Box;
use core::cell::OnceCell;

use crate::aead::{Aead, Unavailable};
use crate::crypto_provider::CryptoProvider;
use crate::key_log::KeyLogContext;
use crate::key_schedule::{DerivedKey, DirectionSecrets};
use crate::plaintext::PlaintextAead;
use crate::secret::Secret;
use crate::suite::Suite;

/// One cipher, as far as it has been made.
#[derive(Default)]
pub(crate) struct LazyCipher {
    key: OnceCell<Box<DerivedKey>>,
    aead: OnceCell<Box<dyn Aead>>,
}

impl LazyCipher {
    /// The cipher of `secret`, which is not needed once the key was derived.
    ///
    /// # Errors
    /// [`Unavailable`]: the library could not make it. It is made when it is asked for again.
    pub(crate) fn aead(
        &self,
        maker: &CipherMaker,
        secret: &Secret,
    ) -> Result<&dyn Aead, Unavailable> {
        if let Some(aead) = self.aead.get() {
            return Ok(&**aead);
        }
        let aead = self.make(maker, secret)?;
        Ok(&**self.aead.get_or_init(|| aead))
    }

    /// Makes the key: from here on the secret is not needed. A plaintext one has no key.
    pub(crate) fn derive(&self, maker: &CipherMaker, secret: &Secret) {
        if !secret.is_plaintext() {
            self.key(maker, secret);
        }
    }

    pub(crate) fn has_ciphers(&self) -> bool {
        self.aead.get().is_some()
    }

    /// Gives up the tables, and keeps the key.
    pub(crate) fn drop_ciphers(&mut self) {
        self.aead.take();
    }

    /// Gives up the key too.
    pub(crate) fn hibernate(&mut self) {
        self.aead.take();
        self.key.take();
    }

    fn make(&self, maker: &CipherMaker, secret: &Secret) -> Result<Box<dyn Aead>, Unavailable> {
        if secret.is_plaintext() {
            return Ok(Box::new(PlaintextAead));
        }
        let DerivedKey { key, iv } = self.key(maker, secret);
        let key = &key[..maker.suite.key_len()];
        maker.crypto.aead(maker.suite, key, **iv)
    }

    fn key(&self, maker: &CipherMaker, secret: &Secret) -> &DerivedKey {
        let derive = || Box::new(DerivedKey::of(maker.crypto.hash(), maker.suite, secret));
        self.key.get_or_init(derive)
    }
}

/// The parameters that the ciphers of one direction share.
pub(crate) struct CipherMaker {
    pub(crate) suite: Suite,
    pub(crate) crypto: CryptoProvider,
    /// Few users have one: it takes no room in the others' sessions.
    pub(crate) log: Option<Box<KeyLogContext>>,
}

impl CipherMaker {
    pub(crate) fn log(&self, epoch: u32, secrets: &DirectionSecrets) {
        if let Some(log) = &self.log {
            log.log(self.suite, epoch, secrets);
        }
    }
}
