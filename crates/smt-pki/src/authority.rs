// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An authority, and the leaves that it signs.
//!
//! Flow: 1. make a [`CertificateAuthority`], or load one from PEM  2. describe a leaf by a
//! [`CertificatePlan`]  3. [`CertificateAuthority::issue`] makes its key and certificate (PEM).
//! For a private authority of a cluster, for tests and examples. Revocation lists are in
//! `revocation_list.rs`. Not here: requests signed elsewhere (CSR), storing keys; files are the
//! caller's.

use std::time::SystemTime;

use rcgen::{BasicConstraints, DnType, IsCa, Issuer, KeyUsagePurpose, PublicKeyData};
use rustls_pki_types::CertificateDer;
use smt_handshake::{CredentialError, Pem};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use zeroize::Zeroizing;

use crate::authority_key::AuthorityKey;
use crate::error::MakeCertificateError;
use crate::plan::{CertificatePlan, DAY_S, KeyKind, Purpose, SubjectName, Validity, unix_s};

/// Signs certificates: the certificate and private key of a CA.
pub struct CertificateAuthority {
    certificate_pem: String,
    certificate: CertificateDer<'static>,
    key: AuthorityKey,
    /// Unix seconds after which nothing that it signed is accepted any more.
    not_after_s: i64,
}

impl CertificateAuthority {
    /// Makes a new authority with a key of its own. It signs leaves only, no further authorities.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if a name or the validity is impossible.
    pub fn new(
        common_name: &str,
        validity: Validity,
        key_kind: KeyKind,
    ) -> Result<Self, MakeCertificateError> {
        let key = AuthorityKey::General(key_kind.generate()?);
        let mut params = validity.params();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            certificate_pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key,
            not_after_s: validity.not_after_s(),
        })
    }

    /// Loads an authority from the PEM text of its certificate and private key (PKCS#8).
    ///
    /// # Errors
    /// [`MakeCertificateError`] if a part cannot be used, the two do not belong together, or the
    /// certificate is not that of an authority.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, MakeCertificateError> {
        let key = Pem::text("the authority's key", key.as_bytes());
        Self::from_pem_and_key(certificate, &key)
    }

    /// The same with a key that was read before, and decrypted if need be
    /// ([`decrypt_key`](crate::decrypt_key)).
    ///
    /// # Errors
    /// As [`Self::from_pem`].
    pub fn from_pem_and_key(
        certificate: &str,
        key_pem: &Pem,
    ) -> Result<Self, MakeCertificateError> {
        let pem = Pem::text("the authority's certificate", certificate.as_bytes());
        let der = pem.certificates()?.swap_remove(0);
        let (_, parsed) =
            X509Certificate::from_der(&der).map_err(|error| CredentialError::BadCertificate {
                place: pem.place().to_owned(),
                reason: error.to_string(),
            })?;
        if !parsed.is_ca() {
            return Err(MakeCertificateError::NotAnAuthority);
        }
        let key = AuthorityKey::load(key_pem)?;
        if key.der_bytes() != parsed.public_key().subject_public_key.data.as_ref() {
            return Err(CredentialError::KeyMismatch {
                certificate_place: pem.place().to_owned(),
                key_place: key_pem.place().to_owned(),
            }
            .into());
        }
        let not_after_s = parsed.validity().not_after.timestamp();
        Ok(Self { certificate_pem: certificate.to_owned(), certificate: der, key, not_after_s })
    }

    /// The authority's certificate in PEM, which peers take as root.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The authority's private key in PEM (PKCS#8). Its owner can take any identity.
    pub fn key_pem(&self) -> Zeroizing<String> {
        self.key.pem()
    }

    /// The authority as rcgen signs with it.
    pub(crate) fn issuer(&self) -> Result<Issuer<'_, &AuthorityKey>, MakeCertificateError> {
        Ok(Issuer::from_ca_cert_der(&self.certificate, &self.key)?)
    }

    pub(crate) fn key(&self) -> &AuthorityKey {
        &self.key
    }

    pub(crate) fn certificate_der(&self) -> &[u8] {
        &self.certificate
    }

    /// Makes a leaf: a new key, and a certificate for it as planned.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if the plan has no name, or would outlive this authority.
    pub fn issue(&self, plan: &CertificatePlan) -> Result<IssuedCertificate, MakeCertificateError> {
        if plan.names.is_empty() && plan.purpose != Purpose::Client {
            return Err(MakeCertificateError::NoName);
        }
        if plan.validity.not_after_s() > self.not_after_s {
            return Err(MakeCertificateError::OutlivesAuthority {
                days: (self.not_after_s - unix_s(SystemTime::now())).max(0) / DAY_S as i64,
            });
        }
        let key = plan.key_kind.generate()?;
        let mut params = plan.validity.params();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, plan.common_name.as_str());
        let names = plan.names.iter().map(SubjectName::to_san);
        params.subject_alt_names = names.collect::<Result<_, _>>()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = plan.purpose.extended_key_usages();
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&*key, &self.issuer()?)?;
        Ok(IssuedCertificate {
            certificate_pem: certificate.pem(),
            key_pem: Zeroizing::new(key.serialize_pem()),
        })
    }
}

impl std::fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key stays out of logs.
        f.debug_struct("CertificateAuthority")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

/// A certificate and its private key, both PEM text.
#[derive(Clone)]
pub struct IssuedCertificate {
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key (PKCS#8), cleared when dropped.
    pub key_pem: Zeroizing<String>,
}

impl std::fmt::Debug for IssuedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuedCertificate")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
