// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Making certificates: an authority, and leaves that it signs.
//!
//! Flow: 1. make a [`CertificateAuthority`], or load one from PEM  2. describe a leaf by a
//! [`CertificatePlan`]  3. [`CertificateAuthority::issue`] makes its key and certificate (PEM).
//! For a private authority of a cluster, for tests and examples. Not here: revocation, requests
//! signed elsewhere (CSR), storing keys; files are the caller's.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SanType,
};
use rustls_pki_types::{CertificateDer, DnsName};
use smt_handshake::{CredentialError, Pem};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use zeroize::Zeroizing;

use crate::limits::{CERTIFICATE_BACKDATE_S, CERTIFICATE_DAYS_MAX};

/// Signs certificates: the certificate and private key of a CA.
pub struct CertificateAuthority {
    certificate_pem: String,
    certificate: CertificateDer<'static>,
    key: Zeroizing<KeyPair>,
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
        let key = key_kind.generate()?;
        let mut params = validity.params();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&*key)?;
        Ok(Self {
            certificate_pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key,
            not_after_s: unix_s(validity.not_after),
        })
    }

    /// Loads an authority from the PEM text of its certificate and private key (PKCS#8).
    ///
    /// # Errors
    /// [`MakeCertificateError`] if a part cannot be used, the two do not belong together, or the
    /// certificate is not that of an authority.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, MakeCertificateError> {
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
        let key_pem = Pem::text("the authority's key", key.as_bytes());
        let key = key_pair(&key_pem)?;
        if key.public_key_raw() != parsed.public_key().subject_public_key.data.as_ref() {
            return Err(CredentialError::KeyMismatch {
                certificate_place: pem.place().to_owned(),
                key_place: key_pem.place().to_owned(),
            }
            .into());
        }
        let not_after_s = parsed.validity().not_after.timestamp();
        Ok(Self {
            certificate_pem: certificate.to_owned(),
            certificate: der,
            key,
            not_after_s,
        })
    }

    /// The authority's certificate in PEM: what peers take as root.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The authority's private key in PEM (PKCS#8). Who has it can be anyone.
    pub fn key_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.key.serialize_pem())
    }

    /// Makes a leaf: a new key, and a certificate for it as planned.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if the plan has no name, or would outlive this authority.
    pub fn issue(&self, plan: &CertificatePlan) -> Result<IssuedCertificate, MakeCertificateError> {
        if plan.names.is_empty() && plan.purpose != Purpose::Client {
            return Err(MakeCertificateError::NoName);
        }
        if unix_s(plan.validity.not_after) > self.not_after_s {
            return Err(MakeCertificateError::OutlivesAuthority {
                days: (self.not_after_s - unix_s(SystemTime::now())).max(0) / DAY_S as i64,
            });
        }
        let key = plan.key_kind.generate()?;
        let mut params = plan.validity.params();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, plan.common_name.as_str());
        let names = plan.names.iter().map(SubjectName::to_san);
        params.subject_alt_names = names.collect::<Result<_, _>>()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = plan.purpose.extended_key_usages();
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::from_ca_cert_der(&self.certificate, &*self.key)?;
        let certificate = params.signed_by(&*key, &issuer)?;
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

/// What a leaf certificate is to say.
#[derive(Clone, Debug)]
pub struct CertificatePlan {
    /// Subject, for people; peers compare `names`.
    pub common_name: String,
    /// Whom it speaks for: what a client calls a server by. A client may have none.
    pub names: Vec<SubjectName>,
    /// Whether its owner answers calls, makes them, or both.
    pub purpose: Purpose,
    /// From when until when.
    pub validity: Validity,
    /// Kind of the key that is made for it.
    pub key_kind: KeyKind,
}

impl CertificatePlan {
    /// A server's certificate for these names, for [`DAYS_DEFAULT`] days, with a P-256 key.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if a name is none, or there is none.
    pub fn server(names: &[&str]) -> Result<Self, MakeCertificateError> {
        let first = names.first().ok_or(MakeCertificateError::NoName)?;
        Ok(Self {
            common_name: (*first).to_owned(),
            names: names
                .iter()
                .map(|name| SubjectName::parse(name))
                .collect::<Result<_, _>>()?,
            purpose: Purpose::Server,
            validity: Validity::days(DAYS_DEFAULT)?,
            key_kind: KeyKind::default(),
        })
    }

    /// A client's certificate of this subject, for [`DAYS_DEFAULT`] days, with a P-256 key.
    ///
    /// # Errors
    /// None for [`DAYS_DEFAULT`]; the system's clock must be sane.
    pub fn client(common_name: &str) -> Result<Self, MakeCertificateError> {
        Ok(Self {
            common_name: common_name.to_owned(),
            names: SubjectName::parse(common_name).into_iter().collect(),
            purpose: Purpose::Client,
            validity: Validity::days(DAYS_DEFAULT)?,
            key_kind: KeyKind::default(),
        })
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

/// A name in a certificate (subject alternative name).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SubjectName {
    /// A DNS name; its first label may be `*`.
    Dns(String),
    /// An IP address.
    Ip(IpAddr),
    /// A URI, e.g. `spiffe://cluster.example/service`.
    Uri(String),
}

impl SubjectName {
    /// Tells the kind by the looks: an IP address, a URI if it has `://`, else a DNS name.
    ///
    /// # Errors
    /// [`MakeCertificateError::BadName`] if it is none of them.
    pub fn parse(name: &str) -> Result<Self, MakeCertificateError> {
        let bad = || MakeCertificateError::BadName {
            name: name.to_owned(),
        };
        if let Ok(address) = name.parse() {
            return Ok(Self::Ip(address));
        }
        if let Some((scheme, rest)) = name.split_once("://") {
            let is_uri = !scheme.is_empty() && !rest.is_empty() && name.bytes().all(is_uri_byte);
            return if is_uri {
                Ok(Self::Uri(name.to_owned()))
            } else {
                Err(bad())
            };
        }
        DnsName::try_from(name.strip_prefix("*.").unwrap_or(name)).map_err(|_| bad())?;
        Ok(Self::Dns(name.to_owned()))
    }

    fn to_san(&self) -> Result<SanType, MakeCertificateError> {
        Ok(match self {
            Self::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
            Self::Ip(address) => SanType::IpAddress(*address),
            Self::Uri(uri) => SanType::URI(uri.as_str().try_into()?),
        })
    }
}

/// What a certificate may be used for (its extended key usages).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// Making calls only.
    Client,
    /// Answering calls only.
    Server,
    /// Both: for endpoints that are client and server.
    ServerAndClient,
}

impl Purpose {
    fn extended_key_usages(self) -> Vec<ExtendedKeyUsagePurpose> {
        match self {
            Self::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Self::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Self::ServerAndClient => {
                vec![
                    ExtendedKeyUsagePurpose::ServerAuth,
                    ExtendedKeyUsagePurpose::ClientAuth,
                ]
            }
        }
    }
}

/// The kind of a private key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KeyKind {
    /// ECDSA with P-256 and SHA-256: what everything accepts.
    #[default]
    EcdsaP256,
    /// Ed25519.
    Ed25519,
}

impl KeyKind {
    fn generate(self) -> Result<Zeroizing<KeyPair>, MakeCertificateError> {
        let algorithm = match self {
            Self::EcdsaP256 => &PKCS_ECDSA_P256_SHA256,
            Self::Ed25519 => &PKCS_ED25519,
        };
        Ok(Zeroizing::new(KeyPair::generate_for(algorithm)?))
    }
}

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    not_before: SystemTime,
    not_after: SystemTime,
}

impl Validity {
    /// From an hour ago (peers' clocks differ) for this many days, 1 to [`CERTIFICATE_DAYS_MAX`].
    ///
    /// # Errors
    /// [`MakeCertificateError::BadValidity`] out of range.
    pub fn days(days: u32) -> Result<Self, MakeCertificateError> {
        if !(1..=CERTIFICATE_DAYS_MAX).contains(&days) {
            return Err(MakeCertificateError::BadValidity);
        }
        let now = SystemTime::now();
        Self::between(
            now - Duration::from_secs(CERTIFICATE_BACKDATE_S),
            now + Duration::from_secs(u64::from(days) * DAY_S),
        )
    }

    /// Between two times, both after 1970 and before the year 2500, in this order.
    ///
    /// # Errors
    /// [`MakeCertificateError::BadValidity`] otherwise.
    pub fn between(
        not_before: SystemTime,
        not_after: SystemTime,
    ) -> Result<Self, MakeCertificateError> {
        let in_range = unix_s(not_before) >= 0 && unix_s(not_after) < TIME_S_MAX;
        if !in_range || not_before >= not_after {
            return Err(MakeCertificateError::BadValidity);
        }
        Ok(Self {
            not_before,
            not_after,
        })
    }

    fn params(self) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.not_before = self.not_before.into();
        params.not_after = self.not_after.into();
        params
    }
}

/// Why a certificate could not be made. All of it is local.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum MakeCertificateError {
    /// A name is no DNS name, IP address or URI.
    #[error("{name:?} is no DNS name, IP address or URI")]
    BadName {
        /// The name.
        name: String,
    },
    /// The dates are impossible.
    #[error(
        "a certificate must be valid for 1 to {CERTIFICATE_DAYS_MAX} days, after 1970 and before \
        2500"
    )]
    BadValidity,
    /// A given certificate or key cannot be used.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// A server's certificate needs a name, or no client could call it.
    #[error("a server's certificate needs at least one name that clients call it by")]
    NoName,
    /// The given certificate may not sign others: give that of an authority.
    #[error(
        "the given certificate is not that of an authority, so nothing that it signs is accepted"
    )]
    NotAnAuthority,
    /// Peers stop accepting a leaf when its authority expires: ask for fewer days.
    #[error(
        "the certificate would outlive its authority, which is valid for {days} more days; ask \
        for at most that"
    )]
    OutlivesAuthority {
        /// Whole days that the authority is still valid.
        days: i64,
    },
    /// The library refused; the text says why.
    #[error("the certificate could not be made: {0}")]
    Refused(#[from] rcgen::Error),
}

fn key_pair(pem: &Pem) -> Result<Zeroizing<KeyPair>, CredentialError> {
    let der = Zeroizing::new(pem.private_key()?);
    let key = KeyPair::try_from(&*der).map_err(|error| CredentialError::BadKey {
        place: pem.place().to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Zeroizing::new(key))
}

fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`')
}

/// Seconds since 1970, negative before.
fn unix_s(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => {
            // Rounded down, so that a fraction of a second before 1970 is still before it.
            i64::try_from(before.duration().as_secs()).map_or(i64::MIN, |seconds| -seconds - 1)
        }
    }
}

/// Days for which a planned certificate is valid if nothing else is said.
pub const DAYS_DEFAULT: u32 = 365;
/// Seconds of a day.
const DAY_S: u64 = 86_400;
/// The year 2500 in Unix seconds: far from the end of what dates in certificates can say.
const TIME_S_MAX: i64 = 16_725_225_600;

#[cfg(test)]
mod tests;
