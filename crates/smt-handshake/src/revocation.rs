// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Revocation lists (CRLs, RFC 5280 §5): the certificates of a trusted authority that count no
//! more.
//!
//! Flow: 1. read lists (PEM or DER), each parsed at once  2. [`crate::Trust`] takes them along, for
//! TLS and for tickets alike  3. a handshake looks up each certificate of the peer's chain but the
//! root.
//! Not here: fetching lists. Their files are the operator's, and are read again with all else.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::CertificateRevocationListDer;
use webpki::{
    CertRevocationList, ExpirationPolicy, OwnedCertRevocationList, RevocationOptions,
    RevocationOptionsBuilder, UnknownStatusPolicy,
};

use crate::pem::{CredentialError, Pem};

/// Revocation lists, and what is done with a certificate of which no list tells. Cheap to clone.
///
/// A certificate is refused if a list has it, if no list of its issuer is there, and if the list of
/// its issuer is expired: lists that are not renewed in time let nobody in. A list counts only with
/// the signature of the issuer that it names.
#[derive(Clone)]
pub struct RevocationLists {
    ders: Arc<[CertificateRevocationListDer<'static>]>,
    parsed: Arc<[CertRevocationList<'static>]>,
    accepts_unknown: bool,
}

impl RevocationLists {
    /// Lists from files, each in DER, or one or more in PEM (`X509 CRL`).
    ///
    /// # Errors
    /// [`CredentialError`] names the file, and what was found in it.
    pub fn from_files<P: AsRef<Path>>(paths: &[P]) -> Result<Self, CredentialError> {
        let files = paths.iter().map(|path| Pem::read(path.as_ref()));
        Self::new(&files.collect::<Result<Vec<_>, _>>()?)
    }

    /// Lists from bytes: one in DER, or one or more in PEM.
    ///
    /// # Errors
    /// [`CredentialError`] names what was found instead.
    pub fn from_bytes(lists: &[u8]) -> Result<Self, CredentialError> {
        Self::new(&[Pem::text("the given revocation lists", lists)])
    }

    /// Accepts certificates whose issuer has no list here. By default they are refused: a list that
    /// is missing is as good as one that an attacker has kept away.
    #[must_use]
    pub fn accepting_unknown_status(mut self) -> Self {
        self.accepts_unknown = true;
        self
    }

    fn new(files: &[Pem]) -> Result<Self, CredentialError> {
        let (mut ders, mut parsed) = (Vec::new(), Vec::new());
        for file in files {
            for der in file.revocation_lists()? {
                let list = OwnedCertRevocationList::from_der(&der);
                let list = list.map_err(|error| CredentialError::BadRevocationList {
                    place: file.place().to_owned(),
                    reason: error.to_string(),
                })?;
                parsed.push(list.into());
                ders.push(der);
            }
        }
        if ders.is_empty() {
            return Err(CredentialError::Missing {
                wanted: "revocation list",
                place: "the given list of files".to_owned(),
                found: "no file".to_owned(),
            });
        }
        Ok(Self { ders: ders.into(), parsed: parsed.into(), accepts_unknown: false })
    }

    /// The lists as TLS's library takes them.
    pub(crate) fn ders(&self) -> Vec<CertificateRevocationListDer<'static>> {
        self.ders.to_vec()
    }

    pub(crate) fn accepts_unknown(&self) -> bool {
        self.accepts_unknown
    }

    /// The lists by reference, for [`Self::options`].
    pub(crate) fn parsed(&self) -> Vec<&CertRevocationList<'static>> {
        self.parsed.iter().collect()
    }

    /// The rules of this module as webpki has them; `None` without any list.
    pub(crate) fn options<'a>(
        &self,
        lists: &'a [&'a CertRevocationList<'a>],
    ) -> Option<RevocationOptions<'a>> {
        let unknown = match self.accepts_unknown {
            true => UnknownStatusPolicy::Allow,
            false => UnknownStatusPolicy::Deny,
        };
        let builder = RevocationOptionsBuilder::new(lists).ok()?;
        let builder = builder.with_status_policy(unknown);
        Some(builder.with_expiration_policy(ExpirationPolicy::Enforce).build())
    }
}

impl fmt::Debug for RevocationLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevocationLists")
            .field("lists", &self.ders.len())
            .field("accepts_unknown", &self.accepts_unknown)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_list_are_refused_with_their_place() {
        let der = RevocationLists::from_bytes(&[0x30, 0x03, 1, 2, 3]).unwrap_err();
        assert!(matches!(der, CredentialError::BadRevocationList { .. }), "{der}");
        let pem = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let error = RevocationLists::from_bytes(pem).unwrap_err().to_string();
        assert_eq!(
            error,
            "no revocation list in the given revocation lists: it holds 1 CERTIFICATE"
        );
        let error = RevocationLists::from_files::<&str>(&[]).unwrap_err();
        assert!(error.to_string().contains("it holds no file"), "{error}");
    }
}
