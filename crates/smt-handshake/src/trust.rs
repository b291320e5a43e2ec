// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whom an endpoint believes: roots, or certificates or public keys known one by one.
//!
//! Flow: 1. read certificates (PEM text, PEM files or DER)  2. as *roots* they vouch for every
//! chain that ends in them; as *pinned* each is accepted itself and nothing else is.
//! Not here: the checks themselves (`tls/verify_chain.rs`, `tls/verify_pinned.rs`).

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;

use crate::credential_error::CredentialError;
use crate::pem::Pem;
use crate::revocation::RevocationLists;
use crate::tls::certificate_refusal;
use crate::tls::verify::Form;
use crate::tls::verify_pinned::Known;

/// The certificates by which a peer's certificate is judged. Cheap to clone.
#[derive(Clone)]
pub struct Trust {
    pub(crate) anchors: Anchors,
    pub(crate) revocation: Option<RevocationLists>,
}

/// The two ways to trust.
#[derive(Clone)]
pub(crate) enum Anchors {
    /// A peer's chain must end in one of these, be valid now, and (a server's) have the name.
    Roots(Arc<RootCertStore>),
    /// A peer's leaf, a certificate or a public key, must be one of these, byte for byte.
    Pinned(Known),
}

impl Trust {
    /// Roots from PEM text, one or more.
    ///
    /// # Errors
    /// [`CredentialError`] names what was found instead.
    pub fn roots_from_pem(roots: &[u8]) -> Result<Self, CredentialError> {
        Self::roots(&[Pem::text("the given roots", roots)])
    }

    /// Roots from PEM files, one or more in each; all of them are trusted.
    ///
    /// # Errors
    /// [`CredentialError`] names the file and what was found in it.
    pub fn roots_from_pem_files<P: AsRef<Path>>(paths: &[P]) -> Result<Self, CredentialError> {
        let pems = paths.iter().map(|path| Pem::read(path.as_ref()));
        Self::roots(&pems.collect::<Result<Vec<_>, _>>()?)
    }

    /// Pinned certificates from PEM text: exactly these leaves are accepted, whatever their
    /// names, dates and issuers say. For self-signed certificates that are known one by one.
    ///
    /// With public keys in the place of certificates (`PUBLIC KEY`), exactly the peers with these
    /// keys are accepted, who show a key and no certificate (RFC 7250, [`Identity::from_pem`]). A
    /// text has either certificates or keys.
    ///
    /// [`Identity::from_pem`]: crate::Identity::from_pem
    ///
    /// # Errors
    /// [`CredentialError`] names what was found instead.
    pub fn pinned_from_pem(certificates: &[u8]) -> Result<Self, CredentialError> {
        Self::pinned(&Pem::text("the given pinned certificates", certificates))
    }

    /// Pinned certificates or public keys from a PEM file, as [`Self::pinned_from_pem`].
    ///
    /// # Errors
    /// [`CredentialError`] names the file and what was found in it.
    pub fn pinned_from_pem_file(path: impl AsRef<Path>) -> Result<Self, CredentialError> {
        Self::pinned(&Pem::read(path.as_ref())?)
    }

    /// Refuses the certificates that these lists revoke, and all of whose issuers no list tells
    /// (see [`RevocationLists`]). They go with roots; an endpoint with pinned certificates and
    /// lists is not opened, since a pinned certificate has no authority that could revoke it.
    #[must_use]
    pub fn with_revocation_lists(mut self, lists: RevocationLists) -> Self {
        self.revocation = Some(lists);
        self
    }

    /// Whether dates of certificates matter: those of pinned ones do not.
    pub(crate) fn judges_dates(&self) -> bool {
        matches!(self.anchors, Anchors::Roots(_))
    }

    /// The last second in which its revocation lists count, if it has some.
    pub(crate) fn last_second(&self) -> Option<u64> {
        self.revocation.as_ref().map(RevocationLists::last_second)
    }

    /// The form in which peers show their keys.
    pub(crate) fn form(&self) -> Form {
        match &self.anchors {
            Anchors::Roots(_) => Form::Certificate,
            Anchors::Pinned(known) => known.form,
        }
    }

    /// The memory for sessions that may be resumed, of so much that is wanted: with public keys
    /// none, since a resumed session would save no certificate.
    pub(crate) fn sessions_memory(&self, wanted: usize) -> usize {
        match self.form() {
            Form::Certificate => wanted,
            Form::RawPublicKey => 0,
        }
    }

    fn roots(pems: &[Pem]) -> Result<Self, CredentialError> {
        let mut store = RootCertStore::empty();
        for pem in pems {
            for certificate in pem.certificates()? {
                store.add(certificate.clone()).map_err(|error| {
                    CredentialError::BadCertificate {
                        place: pem.place().to_owned(),
                        reason: certificate_refusal::own(&error, &certificate),
                    }
                })?;
            }
        }
        if store.is_empty() {
            return Err(CredentialError::Missing {
                wanted: "certificate",
                place: "the given list of root files".to_owned(),
                found: "no file".to_owned(),
            });
        }
        Ok(Self { anchors: Anchors::Roots(Arc::new(store)), revocation: None })
    }

    fn pinned(pem: &Pem) -> Result<Self, CredentialError> {
        let known = match pem.public_keys()? {
            Some(keys) => Known {
                form: Form::RawPublicKey,
                leaves: keys.iter().map(|key| CertificateDer::from(key.to_vec())).collect(),
            },
            None => Known { form: Form::Certificate, leaves: pem.certificates()?.into() },
        };
        Ok(Self { anchors: Anchors::Pinned(known), revocation: None })
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, number) = match &self.anchors {
            Anchors::Roots(roots) => ("roots", roots.len()),
            Anchors::Pinned(known) => match known.form {
                Form::Certificate => ("pinned", known.leaves.len()),
                Form::RawPublicKey => ("public keys", known.leaves.len()),
            },
        };
        write!(f, "Trust {{ {what}: {number} }}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smt_pki::EphemeralCa;

    mod roots_from_pem {
        use super::*;

        #[test]
        fn several_roots_are_all_taken() {
            let one = EphemeralCa::new().unwrap();
            let other = EphemeralCa::new().unwrap();
            let both =
                [one.authority().certificate_pem(), other.authority().certificate_pem()].concat();
            let trust = Trust::roots_from_pem(both.as_bytes()).unwrap();
            assert_eq!(format!("{trust:?}"), "Trust { roots: 2 }");
        }

        #[test]
        fn bytes_that_are_no_certificate_are_refused() {
            let pem = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
            let error = Trust::roots_from_pem(pem).unwrap_err();
            assert!(matches!(error, CredentialError::BadCertificate { .. }), "{error}");
        }
    }

    mod roots_from_pem_files {
        use super::*;

        #[test]
        fn no_file_at_all_is_refused() {
            let error = Trust::roots_from_pem_files::<&str>(&[]).unwrap_err();
            assert!(error.to_string().contains("it holds no file"), "{error}");
        }
    }
}
