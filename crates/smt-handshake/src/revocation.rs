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
use smt_proto::WallTime;
use webpki::{
    CertRevocationList, ExpirationPolicy, OwnedCertRevocationList, RevocationOptions,
    RevocationOptionsBuilder, UnknownStatusPolicy,
};

use crate::credential_error::CredentialError;
use crate::der::{Elements, OBJECT_ID, OCTETS, SEQUENCE, first};
use crate::der_time::{GENERALIZED_TIME, UTC_TIME, time};
use crate::pem::Pem;

/// Revocation lists, and what is done with a certificate of which no list tells. Cheap to clone.
///
/// A certificate is refused if a list has it, if no list of its issuer is there, and if the list of
/// its issuer is expired: lists that are not renewed in time let nobody in. There is one list of an
/// issuer, unless it says by a distribution point that it is about a part of its certificates. A
/// list counts only with the signature of the issuer that it names.
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
        let mut scopes: Vec<(Scope, &str)> = Vec::new();
        for file in files {
            for der in file.revocation_lists()? {
                // TLS's library would look at the first one alone.
                let scope = Scope::of(&der);
                if let Some((_, first)) = scopes.iter().find(|(known, _)| *known == scope) {
                    return Err(CredentialError::TwoRevocationLists {
                        place: file.place().to_owned(),
                        first: (*first).to_owned(),
                    });
                }
                scopes.push((scope, file.place()));
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

    /// The last second before the next of these lists is due; 0 if one does not say when that is.
    pub(crate) fn last_second(&self) -> u64 {
        self.ders.iter().map(|der| next_update(der).map_or(0, WallTime::as_secs)).min().unwrap_or(0)
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

/// When the next list is due (RFC 5280 §5.1.2.5).
fn next_update(list: &[u8]) -> Option<WallTime> {
    let to_be_signed = first(first(list, SEQUENCE)?, SEQUENCE)?;
    let mut times =
        Elements(to_be_signed).filter(|(tag, _)| [UTC_TIME, GENERALIZED_TIME].contains(tag));
    // After the moment at which this one was made.
    let (tag, text) = times.nth(1)?;
    time(tag, text)
}

/// The certificates that a list is about: those of its issuer, or a part of them (RFC 5280
/// §5.2.5).
#[derive(Debug, Eq, PartialEq)]
struct Scope {
    issuer: Vec<u8>,
    distribution_point: Option<Vec<u8>>,
}

impl Scope {
    /// The scope of a list, as far as it can be read.
    fn of(list: &[u8]) -> Self {
        let list = first(list, SEQUENCE).and_then(|list| first(list, SEQUENCE)).unwrap_or_default();
        // The algorithm comes before the issuer.
        let mut sequences = Elements(list).filter(|(tag, _)| *tag == SEQUENCE);
        let issuer = sequences.nth(1).map(|(_, issuer)| issuer.to_vec()).unwrap_or_default();
        let extensions = first(list, EXTENSIONS).and_then(|all| first(all, SEQUENCE));
        let mut extensions = Elements(extensions.unwrap_or_default());
        let distribution_point = extensions.find_map(|(_, extension)| {
            first(extension, OBJECT_ID).filter(|id| *id == ISSUING_DISTRIBUTION_POINT)?;
            first(extension, OCTETS).map(<[u8]>::to_vec)
        });
        Self { issuer, distribution_point }
    }
}

/// The tag of a list's extensions, and 2.5.29.28 (RFC 5280 §5.1, §5.2.5).
const EXTENSIONS: u8 = 0xA0;
const ISSUING_DISTRIBUTION_POINT: &[u8] = &[0x55, 0x1D, 0x1C];

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
    fn two_lists_of_one_authority_are_refused_and_those_of_two_are_not() {
        use smt_pki::{CertificateAuthority, KeyKind, RevokedCertificates, Validity};
        let list = |name: &str| {
            let days = || Validity::days(9).unwrap();
            let authority = CertificateAuthority::new(name, days(), KeyKind::default()).unwrap();
            authority.revocation_list(&RevokedCertificates::default(), days()).unwrap()
        };
        let (one, other) = (list("one"), list("other"));
        RevocationLists::from_bytes([&one[..], &other].concat().as_bytes()).unwrap();
        let both = [&one[..], &other, &list("one")].concat();
        let error = RevocationLists::from_bytes(both.as_bytes()).unwrap_err();
        assert!(matches!(error, CredentialError::TwoRevocationLists { .. }), "{error}");
    }

    /// A list that names its issuer and a part of its certificates, and has nothing else.
    fn list_of_part(issuer: &[u8], part: &[u8]) -> Vec<u8> {
        let element = |tag: u8, content: &[&[u8]]| {
            let content = content.concat();
            [&[tag, u8::try_from(content.len()).unwrap()], &content[..]].concat()
        };
        let id = element(OBJECT_ID, &[ISSUING_DISTRIBUTION_POINT]);
        let extension = element(SEQUENCE, &[&id, &element(OCTETS, &[part])]);
        let extensions = element(EXTENSIONS, &[&element(SEQUENCE, &[&extension])]);
        let (algorithm, issuer) = (element(SEQUENCE, &[]), element(SEQUENCE, &[issuer]));
        let signed = element(SEQUENCE, &[&algorithm, &issuer, &extensions]);
        element(SEQUENCE, &[&signed])
    }

    #[test]
    fn lists_of_two_parts_of_an_authoritys_certificates_stand_beside_each_other() {
        let scope = |issuer: &[u8], part: &[u8]| Scope::of(&list_of_part(issuer, part));
        assert_eq!(scope(b"it", b"users"), scope(b"it", b"users"));
        assert_ne!(scope(b"it", b"users"), scope(b"it", b"hosts"));
        assert_ne!(scope(b"it", b"users"), scope(b"other", b"users"));
    }

    #[test]
    fn lists_count_until_the_first_of_the_next_ones_is_due() {
        use std::time::{Duration, UNIX_EPOCH};

        use smt_pki::{CertificateAuthority, KeyKind, RevokedCertificates, Validity};
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let list = |name: &str, end: u64| {
            let days = Validity::between(at(1_700_000_000), at(5_000_000_000)).unwrap();
            let authority = CertificateAuthority::new(name, days, KeyKind::default()).unwrap();
            let validity = Validity::between(at(1_700_000_000), at(end)).unwrap();
            authority.revocation_list(&RevokedCertificates::default(), validity).unwrap()
        };
        // The later one is written as GeneralizedTime.
        let both = [list("one", 1_800_000_000), list("other", 4_000_000_000)].concat();
        let lists = RevocationLists::from_bytes(both.as_bytes()).unwrap();
        assert_eq!(lists.last_second(), 1_800_000_000);
        let other = RevocationLists::from_bytes(list("other", 4_000_000_000).as_bytes()).unwrap();
        assert_eq!(other.last_second(), 4_000_000_000);
    }

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
