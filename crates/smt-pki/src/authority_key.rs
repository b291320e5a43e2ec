// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An authority's private key, made here or loaded.
//!
//! rcgen makes keys of all kinds and loads all but those of ML-DSA, which AWS-LC loads instead.

use aws_lc_rs::signature::{
    KeyPair as _, ML_DSA_44, ML_DSA_44_SIGNING, ML_DSA_65, ML_DSA_65_SIGNING, ML_DSA_87,
    ML_DSA_87_SIGNING, PqdsaKeyPair, UnparsedPublicKey,
};
use pkcs8::LineEnding;
use pkcs8::der::SecretDocument;
use rcgen::{
    KeyPair, PKCS_ML_DSA_44, PKCS_ML_DSA_65, PKCS_ML_DSA_87, PublicKeyData, SignatureAlgorithm,
    SigningKey,
};
use smt_handshake::{CredentialError, Pem};
use zeroize::Zeroizing;

/// A key that signs certificates.
pub(crate) enum AuthorityKey {
    General(Zeroizing<KeyPair>),
    MlDsa(Box<MlDsaKey>),
}

/// A loaded key of ML-DSA.
pub(crate) struct MlDsaKey {
    pair: PqdsaKeyPair,
    algorithm: &'static SignatureAlgorithm,
    pem: Zeroizing<String>,
}

impl AuthorityKey {
    /// Loads a key.
    ///
    /// # Errors
    /// [`CredentialError::BadKey`] if the key is of no kind that signs.
    pub(crate) fn load(pem: &Pem) -> Result<Self, CredentialError> {
        let der = Zeroizing::new(pem.private_key()?);
        if let Some(key) = MlDsaKey::from_pkcs8(der.secret_der()) {
            return Ok(Self::MlDsa(Box::new(key)));
        }
        let key = KeyPair::try_from(&*der).map_err(|error| CredentialError::BadKey {
            place: pem.place().to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self::General(Zeroizing::new(key)))
    }

    /// Whether a key of ML-DSA has made this signature of a message; `None` if it is of another
    /// kind.
    pub(crate) fn ml_dsa_has_signed(&self, message: &[u8], signature: &[u8]) -> Option<bool> {
        let kinds = [
            (&PKCS_ML_DSA_44, &ML_DSA_44),
            (&PKCS_ML_DSA_65, &ML_DSA_65),
            (&PKCS_ML_DSA_87, &ML_DSA_87),
        ];
        let (_, kind) = kinds.into_iter().find(|(kind, _)| *kind == self.algorithm())?;
        let key = UnparsedPublicKey::new(kind, self.der_bytes());
        Some(key.verify(message, signature).is_ok())
    }

    /// The key in PEM (PKCS#8).
    pub(crate) fn pem(&self) -> Zeroizing<String> {
        match self {
            Self::General(key) => Zeroizing::new(key.serialize_pem()),
            Self::MlDsa(key) => key.pem.clone(),
        }
    }
}

impl MlDsaKey {
    /// `None` if it is the key of another algorithm.
    fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let kinds = [
            (&ML_DSA_44_SIGNING, &PKCS_ML_DSA_44),
            (&ML_DSA_65_SIGNING, &PKCS_ML_DSA_65),
            (&ML_DSA_87_SIGNING, &PKCS_ML_DSA_87),
        ];
        let loaded = kinds.into_iter().find_map(|(signing, algorithm)| {
            Some((PqdsaKeyPair::from_pkcs8(signing, der).ok()?, algorithm))
        });
        let (pair, algorithm) = loaded?;
        let document = SecretDocument::try_from(der).ok()?;
        let pem = document.to_pem("PRIVATE KEY", LineEnding::LF).ok()?;
        Some(Self { pair, algorithm, pem })
    }
}

impl PublicKeyData for AuthorityKey {
    fn der_bytes(&self) -> &[u8] {
        match self {
            Self::General(key) => key.der_bytes(),
            Self::MlDsa(key) => key.pair.public_key().as_ref(),
        }
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        match self {
            Self::General(key) => key.algorithm(),
            Self::MlDsa(key) => key.algorithm,
        }
    }
}

impl SigningKey for AuthorityKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let key = match self {
            Self::General(key) => return key.sign(message),
            Self::MlDsa(key) => key,
        };
        let mut signature = vec![0; key.pair.algorithm().signature_len()];
        let length = key.pair.sign(message, &mut signature);
        let length = length.map_err(|_| rcgen::Error::RingUnspecified)?;
        signature.truncate(length);
        Ok(signature)
    }
}
