// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cryptographic library as its user chose it: ciphers and hashes.
//!
//! With the feature `aws-lc` there is [`CryptoProvider::aws_lc`]. A kernel brings its own ciphers
//! behind [`AeadProvider`], and its own hashes behind [`HashProvider`].

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use smt_carrier::KeyStore;

use crate::aead::{Aead, AeadProvider, Unavailable};
use crate::hash::HashProvider;
use crate::suite::Suite;

/// Ciphers and hashes of a cryptographic library. A clone shares them.
#[derive(Clone)]
pub struct CryptoProvider(Arc<Parts>);

/// Behind one pointer: each direction of each session has one.
struct Parts {
    aead: Arc<dyn AeadProvider>,
    hash: Arc<dyn HashProvider>,
    key_store: Option<Arc<dyn KeyStore>>,
}

impl CryptoProvider {
    /// Ciphers and hashes that need not be of one library.
    pub fn new(aead: Arc<dyn AeadProvider>, hash: Arc<dyn HashProvider>) -> Self {
        Self(Arc::new(Parts { aead, hash, key_store: None }))
    }

    /// The library aws-lc.
    #[cfg(feature = "aws-lc")]
    pub fn aws_lc() -> Self {
        Self::new(Arc::new(crate::AwsLc), Arc::new(crate::AwsLc))
    }

    /// The same hashes with other ciphers.
    #[must_use]
    pub fn with_aead(&self, aead: Arc<dyn AeadProvider>) -> Self {
        Self(Arc::new(Parts {
            aead,
            hash: Arc::clone(&self.0.hash),
            key_store: self.0.key_store.clone(),
        }))
    }

    /// The same, with a carrier that seals records itself and gets the sending keys for it.
    #[must_use]
    pub fn with_key_store(&self, key_store: Arc<dyn KeyStore>) -> Self {
        Self(Arc::new(Parts {
            aead: Arc::clone(&self.0.aead),
            hash: Arc::clone(&self.0.hash),
            key_store: Some(key_store),
        }))
    }

    /// The store of a carrier that seals records itself.
    pub(crate) fn key_store(&self) -> Option<&Arc<dyn KeyStore>> {
        self.0.key_store.as_ref()
    }

    /// The hashes.
    pub fn hash(&self) -> &dyn HashProvider {
        &*self.0.hash
    }

    /// The AEAD of `suite` under `key` and `iv`.
    ///
    /// # Errors
    /// [`Unavailable`], if the library says so.
    ///
    /// # Panics
    /// If `key` is not [`Suite::key_len`] bytes long.
    pub fn aead(
        &self,
        suite: Suite,
        key: &[u8],
        iv: [u8; 12],
    ) -> Result<Box<dyn Aead>, Unavailable> {
        self.0.aead.aead(suite, key, iv)
    }
}

impl fmt::Debug for CryptoProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CryptoProvider").finish_non_exhaustive()
    }
}
