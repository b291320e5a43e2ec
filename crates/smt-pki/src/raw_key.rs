// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key pair alone, for peers that know each other's public keys and need no authority (RFC 7250).

use zeroize::Zeroizing;

use crate::error::MakeCertificateError;
use crate::plan::KeyKind;

/// A public key and its private key, both PEM text.
#[derive(Clone)]
pub struct RawKey {
    /// The public key (`PUBLIC KEY`), which peers get as one that they know.
    pub public_key_pem: String,
    /// The private key (PKCS#8), cleared when dropped.
    pub key_pem: Zeroizing<String>,
}

impl RawKey {
    /// Makes a key pair.
    ///
    /// # Errors
    /// [`MakeCertificateError`] only if the system has no randomness.
    pub fn new(kind: KeyKind) -> Result<Self, MakeCertificateError> {
        let key = kind.generate()?;
        Ok(Self {
            public_key_pem: key.public_key_pem(),
            key_pem: Zeroizing::new(key.serialize_pem()),
        })
    }
}

impl std::fmt::Debug for RawKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawKey")
            .field("public_key_pem", &self.public_key_pem)
            .finish_non_exhaustive()
    }
}
