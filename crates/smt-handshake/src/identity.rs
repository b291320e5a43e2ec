// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The identity that an endpoint proves: a certificate chain and the private key of its leaf, or a
//! key pair alone.
//!
//! Flow: 1. read chain and key (PEM text, PEM files or DER)  2. parse the key  3. check that it
//! belongs to the leaf, so that a mixed-up pair is found at start and not by the first peer.
//! Not here: whom to trust (see `trust.rs`), making certificates (see the crate `smt-pki`).

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::{AlwaysResolvesClientRawPublicKeys, ResolvesClientCert};
use rustls::crypto::aws_lc_rs;
use rustls::server::{AlwaysResolvesServerRawPublicKeys, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use smt_proto::WallTime;

use crate::credential_error::CredentialError;
use crate::limits::CHAIN_LEN_MAX;
use crate::peer_certificate::PeerCertificate;
use crate::pem::Pem;
use crate::private_key_kind;
use crate::tls::certificate_refusal;
use crate::tls::verify::Form;

/// A certificate chain (leaf first) and the leaf's private key, or a key pair alone. Cheap to
/// clone.
#[derive(Clone)]
pub struct Identity {
    /// With a key pair alone, the public key in the place of the chain.
    certified: CertifiedKey,
    form: Form,
}

impl Identity {
    /// From PEM text: the chain with the leaf first, and the leaf's private key (PKCS#8, PKCS#1
    /// or SEC1, not encrypted).
    ///
    /// With a public key in the place of the chain (`PUBLIC KEY`) the endpoint shows that key and
    /// no certificate (RFC 7250), to peers that know it: see
    /// [`Trust::pinned_from_pem`](crate::Trust::pinned_from_pem).
    ///
    /// # Errors
    /// [`CredentialError`] names what was found instead.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CredentialError> {
        Self::from_pems(
            &Pem::text("the given certificate chain", chain),
            &Pem::text("the given private key", key),
        )
    }

    /// From PEM files, as [`Self::from_pem`].
    ///
    /// # Errors
    /// [`CredentialError`] names the file and what was found in it.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, CredentialError> {
        Self::from_pems(&Pem::read(chain.as_ref())?, &Pem::read(key.as_ref())?)
    }

    /// From PEM that was read before: the chain with the leaf first, and the leaf's private key,
    /// which may have been decrypted meanwhile (`smt_pki::decrypt_key`).
    ///
    /// # Errors
    /// [`CredentialError`] names the places and what was found in them.
    pub fn from_pems(chain: &Pem, key: &Pem) -> Result<Self, CredentialError> {
        let places = Places { chain: chain.place(), key: key.place() };
        match chain.public_keys()? {
            Some(mut keys) => {
                let own = CertificateDer::from(keys.swap_remove(0).as_ref().to_vec());
                Self::new(Form::RawPublicKey, vec![own], key.private_key()?, &places)
            }
            None => {
                Self::new(Form::Certificate, chain.certificates()?, key.private_key()?, &places)
            }
        }
    }

    /// From DER: the chain with the leaf first, and the leaf's private key (PKCS#8, PKCS#1 or
    /// SEC1).
    ///
    /// # Errors
    /// [`CredentialError`] if a part cannot be used or the two do not belong together.
    pub fn from_der(chain: Vec<Vec<u8>>, key: Vec<u8>) -> Result<Self, CredentialError> {
        let places = Places { chain: "the given certificate chain", key: "the given private key" };
        let key = PrivateKeyDer::try_from(key).map_err(|reason| CredentialError::BadKey {
            place: places.key.to_owned(),
            reason: reason.to_owned(),
        })?;
        Self::new(
            Form::Certificate,
            chain.into_iter().map(CertificateDer::from).collect(),
            key,
            &places,
        )
    }

    /// The chain in DER, leaf first; none with a key pair alone.
    pub fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        let chain = self.certified.cert.iter().map(AsRef::as_ref);
        chain.filter(|_| self.form == Form::Certificate)
    }

    /// The public key that it shows in the place of a certificate, in DER.
    pub fn raw_public_key(&self) -> Option<&[u8]> {
        let shown = self.certified.cert.first().map(AsRef::as_ref);
        shown.filter(|_| self.form == Form::RawPublicKey)
    }

    /// When it counts no more; a key pair alone has no date.
    pub(crate) fn expires(&self) -> Option<WallTime> {
        PeerCertificate::expiry(self.certificates().next()?)
    }

    /// As TLS's library shows it to clients.
    pub(crate) fn as_server(&self) -> Arc<dyn ResolvesServerCert> {
        match self.form {
            Form::Certificate => Arc::new(SingleCertAndKey::from(self.certified())),
            Form::RawPublicKey => {
                Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(self.certified())))
            }
        }
    }

    /// As TLS's library shows it to servers.
    pub(crate) fn as_client(&self) -> Arc<dyn ResolvesClientCert> {
        match self.form {
            Form::Certificate => Arc::new(SingleCertAndKey::from(self.certified())),
            Form::RawPublicKey => {
                Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::new(self.certified())))
            }
        }
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn certified(&self) -> CertifiedKey {
        self.certified.clone()
    }

    fn new(
        form: Form,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        places: &Places<'_>,
    ) -> Result<Self, CredentialError> {
        let length: usize = chain.iter().map(|certificate| certificate.len()).sum();
        if length > CHAIN_LEN_MAX {
            return Err(CredentialError::BadCertificate {
                place: places.chain.to_owned(),
                reason: format!(
                    "its chain has {length} bytes, and a handshake takes at most {CHAIN_LEN_MAX}; leave out what \
                     peers have, the roots"
                ),
            });
        }
        let kind = private_key_kind::text(&key);
        let key =
            aws_lc_rs::default_provider().key_provider.load_private_key(key).map_err(|error| {
                let reason = match kind {
                    Some(kind) => format!("it is one of {kind}, or damaged"),
                    None => error.to_string(),
                };
                CredentialError::BadKey { place: places.key.to_owned(), reason }
            })?;
        let mismatch = || CredentialError::KeyMismatch {
            certificate_place: places.chain.to_owned(),
            key_place: places.key.to_owned(),
        };
        if form == Form::RawPublicKey {
            let own = key.public_key().ok_or_else(mismatch)?;
            if chain.first().map(AsRef::as_ref) != Some(own.as_ref()) {
                return Err(mismatch());
            }
        }
        let certified = CertifiedKey::new(chain, key);
        if form == Form::RawPublicKey {
            return Ok(Self { certified, form });
        }
        let leaf = certified.cert.first().map_or(&[][..], AsRef::as_ref);
        match certified.keys_match() {
            Ok(()) => Ok(Self { certified, form }),
            Err(rustls::Error::InconsistentKeys(_)) => Err(mismatch()),
            Err(error) => Err(CredentialError::BadCertificate {
                place: places.chain.to_owned(),
                reason: certificate_refusal::own(&error, leaf),
            }),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key stays out of logs.
        f.debug_struct("Identity")
            .field("certificates", &self.certified.cert.len())
            .finish_non_exhaustive()
    }
}

/// Names of where the two halves came from, for messages.
struct Places<'a> {
    chain: &'a str,
    key: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_pki::{CertificatePlan, EphemeralCa, IssuedCertificate};

    fn issued() -> IssuedCertificate {
        let plan = CertificatePlan::server(&["a.example"]).unwrap();
        EphemeralCa::new().unwrap().authority().issue(&plan).unwrap()
    }

    mod from_pem {
        use super::*;

        #[test]
        fn a_pair_made_together_is_taken() {
            let pair = issued();
            let identity =
                Identity::from_pem(pair.certificate_pem.as_bytes(), pair.key_pem.as_bytes());
            assert_eq!(identity.unwrap().certificates().count(), 1);
        }

        #[test]
        fn a_key_of_another_certificate_is_refused() {
            let (one, other) = (issued(), issued());
            let error =
                Identity::from_pem(one.certificate_pem.as_bytes(), other.key_pem.as_bytes());
            assert!(matches!(error.unwrap_err(), CredentialError::KeyMismatch { .. }));
        }

        #[test]
        fn swapped_arguments_are_explained() {
            let pair = issued();
            let error =
                Identity::from_pem(pair.key_pem.as_bytes(), pair.certificate_pem.as_bytes());
            assert_eq!(
                error.unwrap_err().to_string(),
                "no certificate in the given certificate chain: it holds 1 PRIVATE KEY"
            );
        }
    }

    mod from_der {
        use super::*;

        #[test]
        fn garbage_is_refused_as_key_and_as_certificate() {
            let bad_key = Identity::from_der(vec![vec![0x30, 0x00]], vec![1, 2, 3]).unwrap_err();
            assert!(matches!(bad_key, CredentialError::BadKey { .. }), "{bad_key}");
            let pair = issued();
            let key = Pem::text("key", pair.key_pem.as_bytes()).private_key().unwrap();
            let error = Identity::from_der(vec![vec![7; 40]], key.secret_der().to_vec());
            let error = error.unwrap_err();
            assert!(matches!(error, CredentialError::BadCertificate { .. }), "{error}");
        }
    }

    mod debug {
        use super::*;

        #[test]
        fn the_key_is_not_shown() {
            let pair = issued();
            let identity =
                Identity::from_pem(pair.certificate_pem.as_bytes(), pair.key_pem.as_bytes());
            assert_eq!(format!("{:?}", identity.unwrap()), "Identity { certificates: 1, .. }");
        }
    }
}
