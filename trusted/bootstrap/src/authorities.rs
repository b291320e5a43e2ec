// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The authorities that certify endorsement keys, and their judgement of a certificate.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, TrustAnchor, UnixTime};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationOptions, RevocationOptionsBuilder, UnknownStatusPolicy, anchor_from_trusted_cert,
};

use crate::endorsement::{EndorsementError, EndorsementKey, PURPOSE, has_purpose};

/// Why a file has no authorities.
#[derive(Debug, thiserror::Error)]
#[error("no certificates or lists of X.509 in PEM, or one that is damaged")]
pub struct AuthorityError;

/// The authorities of TPMs' vendors that a manufacturer takes, and certificates between those and
/// endorsement keys.
#[derive(Clone, Default)]
pub struct Authorities {
    roots: Vec<TrustAnchor<'static>>,
    between: Vec<CertificateDer<'static>>,
    withdrawn: Vec<Arc<CertRevocationList<'static>>>,
}

impl fmt::Debug for Authorities {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} authorities and {} between", self.roots.len(), self.between.len())
    }
}

impl Authorities {
    /// Adds the certificates of a text in PEM as authorities. Each of them is trusted as it is,
    /// whatever its dates; it need not be a root.
    ///
    /// # Errors
    /// [`AuthorityError`]. Nothing of the text is added then.
    pub fn add_roots(&mut self, text: &[u8]) -> Result<(), AuthorityError> {
        let certificates = certificates(text)?;
        let roots = certificates.iter().map(|it| Ok(anchor_from_trusted_cert(it)?.to_owned()));
        let roots = roots.collect::<Result<Vec<_>, webpki::Error>>();
        self.roots.extend(roots.map_err(|_| AuthorityError)?);
        Ok(())
    }

    /// Adds the certificates of a text in PEM that lead from an authority to endorsement keys.
    /// They are verified, not trusted.
    ///
    /// # Errors
    /// [`AuthorityError`]. Nothing of the text is added then.
    pub fn add_between(&mut self, text: &[u8]) -> Result<(), AuthorityError> {
        self.between.extend(certificates(text)?);
        Ok(())
    }

    /// Adds the lists, in PEM, of certificates that their authorities have withdrawn. Authorities
    /// without a list are believed to have withdrawn none. If an authority has several lists, each
    /// of them counts: none may name the certificate, be old or be signed by another key of the
    /// authority's name.
    ///
    /// # Errors
    /// [`AuthorityError`]. Nothing of the text is added then.
    pub fn add_withdrawn(&mut self, text: &[u8]) -> Result<(), AuthorityError> {
        let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(text).collect();
        let lists = lists.ok().filter(|all| !all.is_empty()).ok_or(AuthorityError)?;
        let parsed = lists.iter().map(|list| OwnedCertRevocationList::from_der(list));
        let parsed = parsed.collect::<Result<Vec<_>, webpki::Error>>();
        let parsed = parsed.map_err(|_| AuthorityError)?;
        self.withdrawn.extend(parsed.into_iter().map(|list| Arc::new(list.into())));
        Ok(())
    }

    /// The key of a certificate that one of these authorities has signed, or one below it.
    ///
    /// # Errors
    /// [`EndorsementError`].
    pub fn verify(
        &self,
        certificate: &[u8],
        now: UnixTime,
    ) -> Result<EndorsementKey, EndorsementError> {
        let der = CertificateDer::from(certificate);
        let parsed = EndEntityCert::try_from(&der).map_err(|_| EndorsementError::Malformed)?;
        self.verify_chain(&parsed, now, None)?;
        // One by one: webpki looks at no list of an issuer but the first one that it is given.
        for list in &self.withdrawn {
            let lists = [&**list];
            let options = RevocationOptionsBuilder::new(&lists);
            let options = options.unwrap_or_else(|_| unreachable!("there is a list"));
            let options = options.with_status_policy(UnknownStatusPolicy::Allow);
            let options = options.with_expiration_policy(ExpirationPolicy::Enforce).build();
            self.verify_chain(&parsed, now, Some(options))?;
        }
        // Authorities need not have the purpose, but the certificate itself does.
        if !has_purpose(certificate)? {
            return Err(EndorsementError::Purpose);
        }
        EndorsementKey::of_spki(&parsed.subject_public_key_info()).ok_or(EndorsementError::Kind)
    }

    fn verify_chain(
        &self,
        certificate: &EndEntityCert<'_>,
        now: UnixTime,
        withdrawn: Option<RevocationOptions<'_>>,
    ) -> Result<(), EndorsementError> {
        let algorithms = default_provider().signature_verification_algorithms.all;
        let usage = KeyUsage::required_if_present(&PURPOSE);
        let (roots, between) = (&self.roots, &self.between);
        certificate
            .verify_for_usage(algorithms, roots, between, now, usage, withdrawn, None)
            .map(|_| ())
            .map_err(EndorsementError::of_chain)
    }
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    all.ok().filter(|all| !all.is_empty()).ok_or(AuthorityError)
}
