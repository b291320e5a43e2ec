// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of endorsement keys, by which vendors of TPMs say that a key is in a TPM of theirs.

use std::fmt;

use aws_lc_rs::rsa::{OAEP_SHA256_MGF1SHA256, OaepPublicEncryptingKey, PublicEncryptingKey};
use data_encoding::HEXLOWER;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, TrustAnchor, UnixTime};
use sha2::{Digest, Sha256};
use smt_device::tpm::derivation::SharedSecret;
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationOptionsBuilder, UnknownStatusPolicy, anchor_from_trusted_cert,
};
use zeroize::Zeroizing;

/// The purpose tcg-kp-EKCertificate (2.23.133.8.1), in DER.
const PURPOSE: [u8; 5] = [0x67, 0x81, 0x05, 0x08, 0x01];
/// A key of RSA with 2,048 bits as SubjectPublicKeyInfo begins so, up to the modulus.
const RSA_SPKI: [u8; 33] = [
    0x30, 0x82, 0x01, 0x22, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01,
    0x01, 0x05, 0x00, 0x03, 0x82, 0x01, 0x0f, 0x00, 0x30, 0x82, 0x01, 0x0a, 0x02, 0x82, 0x01, 0x01,
    0x00,
];
/// Bytes of such a key: the modulus has 256, and the usual exponent 5.
const RSA_SPKI_LEN: usize = RSA_SPKI.len() + 256 + 5;
/// A key of P-256 as SubjectPublicKeyInfo is this and two coordinates.
const ECC_SPKI: [u8; 27] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
];
/// The purpose of a secret for an endorsement key.
const LABEL: &[u8] = b"IDENTITY\0";

/// Why a certificate of an endorsement key is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndorsementError {
    /// The bytes are no certificate.
    #[error("its certificate is none of X.509")]
    Malformed,
    /// The certificate is for something else, for example for a server.
    #[error("its certificate is none of an endorsement key")]
    Purpose,
    /// No chain leads to an authority that was given; or a certificate is not of its date, or was
    /// withdrawn; or a list of withdrawn ones is old.
    #[error("its certificate does not lead to the authorities that you gave: {0}")]
    Chain(webpki::Error),
    /// The key is neither of RSA with 2,048 bits nor of P-256.
    #[error("its endorsement key is neither of RSA with 2,048 bits nor of P-256")]
    Kind,
    /// The key is another TPM's than the one that was asked for.
    #[error("it is another TPM than the one you asked for: its endorsement key has the digest {0}")]
    Other(String),
}

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
    withdrawn: Vec<OwnedCertRevocationList>,
}

impl fmt::Debug for Authorities {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} authorities and {} between", self.roots.len(), self.between.len())
    }
}

impl Authorities {
    /// Takes the certificates of a text in PEM. Each of them is trusted as it is, whatever its
    /// dates; it need not be a root.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn of_pem(text: &[u8]) -> Result<Self, AuthorityError> {
        let certificates = certificates(text)?;
        let roots = certificates.iter().map(|it| Ok(anchor_from_trusted_cert(it)?.to_owned()));
        let roots = roots.collect::<Result<_, webpki::Error>>().map_err(|_| AuthorityError)?;
        Ok(Self { roots, between: Vec::new(), withdrawn: Vec::new() })
    }

    /// Adds the certificates of a text in PEM that lead from an authority to endorsement keys.
    /// They are verified, not trusted.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn add_between(&mut self, text: &[u8]) -> Result<(), AuthorityError> {
        self.between.extend(certificates(text)?);
        Ok(())
    }

    /// Adds the lists, in PEM, of certificates that their authorities have withdrawn. Authorities
    /// without a list are believed to have withdrawn none.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn add_withdrawn(&mut self, text: &[u8]) -> Result<(), AuthorityError> {
        let lists: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(text).collect();
        for list in lists.ok().filter(|all| !all.is_empty()).ok_or(AuthorityError)? {
            let list = OwnedCertRevocationList::from_der(&list).map_err(|_| AuthorityError)?;
            self.withdrawn.push(list);
        }
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
    ) -> Result<Endorsement, EndorsementError> {
        let (rest, parsed) = x509_parser::parse_x509_certificate(certificate)
            .map_err(|_| EndorsementError::Malformed)?;
        let purposes = parsed.extended_key_usage().map_err(|_| EndorsementError::Malformed)?;
        // Authorities need not have the purpose, but the certificate itself does.
        let is_of = |oid: &x509_parser::oid_registry::Oid<'_>| oid.as_bytes() == PURPOSE;
        if !purposes.is_some_and(|it| it.value.other.iter().any(is_of)) {
            return Err(EndorsementError::Purpose);
        }
        if !rest.is_empty() {
            return Err(EndorsementError::Malformed);
        }
        let der = CertificateDer::from(certificate);
        let algorithms = default_provider().signature_verification_algorithms.all;
        let usage = KeyUsage::required_if_present(&PURPOSE);
        let lists: Vec<_> = self.withdrawn.iter().cloned().map(CertRevocationList::from).collect();
        let lists: Vec<_> = lists.iter().collect();
        // Without a list there is nothing to build.
        let withdrawn = RevocationOptionsBuilder::new(&lists).ok().map(|options| {
            let options = options.with_status_policy(UnknownStatusPolicy::Allow);
            options.with_expiration_policy(ExpirationPolicy::Enforce).build()
        });
        EndEntityCert::try_from(&der)
            .and_then(|it| {
                let (roots, between) = (&self.roots, &self.between);
                it.verify_for_usage(algorithms, roots, between, now, usage, withdrawn, None)
                    .map(|_| ())
            })
            .map_err(EndorsementError::Chain)?;
        Endorsement::of_spki(parsed.public_key().raw).ok_or(EndorsementError::Kind)
    }
}

/// The public part of an endorsement key (SubjectPublicKeyInfo).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Endorsement {
    spki: Vec<u8>,
}

impl Endorsement {
    /// Takes a key of RSA with 2,048 bits, or of P-256.
    #[must_use]
    pub fn of_spki(spki: &[u8]) -> Option<Self> {
        let is_rsa = spki.len() == RSA_SPKI_LEN && spki.starts_with(&RSA_SPKI);
        let is_ecc = spki.len() == ECC_SPKI.len() + 64 && spki.starts_with(&ECC_SPKI);
        (is_rsa || is_ecc).then(|| Self { spki: spki.to_vec() })
    }

    /// SHA-256 of the key, by which a manufacturer knows one TPM from all others.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.spki).into()
    }

    /// Whether this is the key with a digest.
    ///
    /// # Errors
    /// [`EndorsementError::Other`].
    pub fn is(&self, digest: &[u8; 32]) -> Result<(), EndorsementError> {
        let own = self.digest();
        let other = || EndorsementError::Other(HEXLOWER.encode(&own));
        (own == *digest).then_some(()).ok_or_else(other)
    }

    /// A secret for the key's TPM alone (part 1, sections B.10.4 and C.6.4).
    pub(crate) fn secret(&self) -> Option<SharedSecret> {
        if let Some(point) = self.spki.strip_prefix(&ECC_SPKI) {
            return SharedSecret::with_point(point.try_into().ok()?, LABEL);
        }
        let key = PublicEncryptingKey::from_der(&self.spki).ok()?;
        let key = OaepPublicEncryptingKey::new(key).ok()?;
        let mut secret = Zeroizing::new([0; 32]);
        aws_lc_rs::rand::fill(&mut *secret).ok()?;
        let mut encrypted = vec![0; key.ciphertext_size()];
        key.encrypt(&OAEP_SHA256_MGF1SHA256, &*secret, &mut encrypted, Some(LABEL)).ok()?;
        Some(SharedSecret { secret, encrypted })
    }
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    all.ok().filter(|all| !all.is_empty()).ok_or(AuthorityError)
}
