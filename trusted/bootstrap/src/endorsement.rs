// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of endorsement keys, by which vendors of TPMs say that a key is in a TPM of theirs.

use aws_lc_rs::rsa::{OAEP_SHA256_MGF1SHA256, OaepPublicEncryptingKey, PublicEncryptingKey};
use data_encoding::HEXLOWER;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use smt_device::tpm::EndorsementKind;
use smt_device::tpm::derivation::SharedSecret;
use webpki::EndEntityCert;
use zeroize::Zeroizing;

use crate::error::BootstrapError;

/// The purpose tcg-kp-EKCertificate (2.23.133.8.1), in DER.
pub(crate) const PURPOSE: [u8; 5] = [0x67, 0x81, 0x05, 0x08, 0x01];
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
    /// No chain leads to an authority that was given.
    #[error("its certificate does not lead to the authorities that you gave: {0}")]
    Chain(webpki::Error),
    /// The certificate, or one on its chain, has expired or is not valid yet.
    #[error("its certificate, or one on the way to your authorities, is not of this date: {0}")]
    Date(webpki::Error),
    /// The certificate, or one on its chain, is on a list of withdrawn ones.
    #[error("its authority has withdrawn its certificate, or one on the way to your authorities")]
    Withdrawn,
    /// The list of an authority on the chain is old.
    #[error("your list of withdrawn certificates is old: get the authority's newest one")]
    OldList,
    /// The list of an authority on the chain is not signed by its key, or that key signs no lists.
    #[error("your list of withdrawn certificates is not signed by the authority of its name: {0}")]
    ForeignList(webpki::Error),
    /// The key is neither of RSA with 2,048 bits nor of P-256.
    #[error("its endorsement key is neither of RSA with 2,048 bits nor of P-256")]
    Kind,
    /// The key is another TPM's than the one that was asked for.
    #[error("it is another TPM than the one you asked for: its endorsement key has the digest {0}")]
    Other(String),
}

impl EndorsementError {
    /// Whose fault it is, and what it means.
    pub(crate) fn fault(&self) -> &'static str {
        match self {
            Self::OldList | Self::ForeignList(_) => {
                "your request: whether the TPM's certificate was withdrawn cannot be told"
            }
            _ => "the device's TPM: nothing proves that it is a genuine one",
        }
    }

    pub(crate) fn of_chain(error: webpki::Error) -> Self {
        use webpki::Error as Chain;
        match error {
            Chain::CertExpired { .. } | Chain::CertNotValidYet { .. } => Self::Date(error),
            Chain::CertRevoked => Self::Withdrawn,
            Chain::CrlExpired { .. } => Self::OldList,
            Chain::InvalidCrlSignatureForPublicKey
            | Chain::IssuerNotCrlSigner
            | Chain::UnsupportedCrlSignatureAlgorithmContext(_)
            | Chain::UnsupportedCrlSignatureAlgorithmForPublicKeyContext(_) => {
                Self::ForeignList(error)
            }
            Chain::RequiredEkuNotFoundContext(_) => Self::Purpose,
            _ => Self::Chain(error),
        }
    }
}

/// Whether a certificate is one of an endorsement key.
pub(crate) fn has_purpose(certificate: &[u8]) -> Result<bool, EndorsementError> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
        .map_err(|_| EndorsementError::Malformed)?;
    let purposes = parsed.extended_key_usage().map_err(|_| EndorsementError::Malformed)?;
    let is_ours = |oid: &x509_parser::oid_registry::Oid<'_>| oid.as_bytes() == PURPOSE;
    Ok(purposes.is_some_and(|it| it.value.other.iter().any(is_ours)))
}

/// The kind of the key in a certificate, which nobody has verified yet: its owner has the TPM make
/// the key of this kind.
///
/// # Errors
/// [`EndorsementError::Malformed`], also with bytes behind it; [`EndorsementError::Kind`].
pub fn endorsement_kind(certificate: &[u8]) -> Result<EndorsementKind, EndorsementError> {
    let der = CertificateDer::from(certificate);
    let parsed = EndEntityCert::try_from(&der).map_err(|_| EndorsementError::Malformed)?;
    let key = EndorsementKey::of_spki(&parsed.subject_public_key_info());
    let key = key.ok_or(EndorsementError::Kind)?;
    Ok(if key.spki.starts_with(&ECC_SPKI) { EndorsementKind::Ecc } else { EndorsementKind::Rsa })
}

/// The public part of an endorsement key (SubjectPublicKeyInfo).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EndorsementKey {
    spki: Vec<u8>,
}

impl EndorsementKey {
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

    /// A secret for the key's TPM alone (*TPM 2.0 Library Specification*, part 1, sections B.10.4
    /// and C.6.4).
    ///
    /// # Errors
    /// [`BootstrapError::EndorsementKey`], [`BootstrapError::Cryptography`].
    pub(crate) fn secret(&self) -> Result<SharedSecret, BootstrapError> {
        if let Some(point) = self.spki.strip_prefix(&ECC_SPKI) {
            let point = point.try_into().map_err(|_| BootstrapError::EndorsementKey)?;
            return SharedSecret::with_point(point, LABEL).ok_or(BootstrapError::EndorsementKey);
        }
        let key = PublicEncryptingKey::from_der(&self.spki);
        let key = key.map_err(|_| BootstrapError::EndorsementKey)?;
        let key = OaepPublicEncryptingKey::new(key).map_err(|_| BootstrapError::EndorsementKey)?;
        let mut secret = Zeroizing::new([0; 32]);
        aws_lc_rs::rand::fill(&mut *secret).map_err(|_| BootstrapError::Cryptography)?;
        let mut encrypted = vec![0; key.ciphertext_size()];
        key.encrypt(&OAEP_SHA256_MGF1SHA256, &*secret, &mut encrypted, Some(LABEL))
            .map_err(|_| BootstrapError::Cryptography)?;
        Ok(SharedSecret { secret, encrypted })
    }
}
