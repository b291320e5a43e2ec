// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The plan of a leaf certificate: names, purpose, validity, kind of its key.
//!
//! Not here: signing (see `authority.rs`).

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use rcgen::{
    CertificateParams, ExtendedKeyUsagePurpose, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519,
    PKCS_ML_DSA_44, PKCS_ML_DSA_65, PKCS_ML_DSA_87, SanType,
};
use rustls_pki_types::DnsName;
use zeroize::Zeroizing;

use crate::error::MakeCertificateError;
use crate::limits::{CERTIFICATE_BACKDATE_S, CERTIFICATE_DAYS_MAX};

/// The content of a leaf certificate that is to be made.
#[derive(Clone, Debug)]
pub struct CertificatePlan {
    /// Subject, for people; peers compare `names`.
    pub common_name: String,
    /// The names that it speaks for: those by which a client calls a server. A client may have
    /// none.
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
            names: names.iter().map(|name| SubjectName::parse(name)).collect::<Result<_, _>>()?,
            purpose: Purpose::Server,
            validity: Validity::days(DAYS_DEFAULT)?,
            key_kind: KeyKind::default(),
        })
    }

    /// A client's certificate of this subject, for [`DAYS_DEFAULT`] days, with a P-256 key.
    ///
    /// # Errors
    /// [`DAYS_DEFAULT`] days give no error while the system's clock is sane.
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
        let bad = || MakeCertificateError::BadName { name: name.to_owned() };
        if let Ok(address) = name.parse() {
            return Ok(Self::Ip(address));
        }
        if let Some((scheme, rest)) = name.split_once("://") {
            let is_uri = !scheme.is_empty() && !rest.is_empty() && name.bytes().all(is_uri_byte);
            return if is_uri { Ok(Self::Uri(name.to_owned())) } else { Err(bad()) };
        }
        DnsName::try_from(name.strip_prefix("*.").unwrap_or(name)).map_err(|_| bad())?;
        Ok(Self::Dns(name.to_owned()))
    }

    /// The name in the form that rcgen takes.
    pub(crate) fn to_san(&self) -> Result<SanType, MakeCertificateError> {
        Ok(match self {
            Self::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
            Self::Ip(address) => SanType::IpAddress(*address),
            Self::Uri(uri) => SanType::URI(uri.as_str().try_into()?),
        })
    }
}

/// The permitted uses of a certificate (its extended key usages).
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
    /// The purpose in the form that rcgen takes.
    pub(crate) fn extended_key_usages(self) -> Vec<ExtendedKeyUsagePurpose> {
        match self {
            Self::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Self::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Self::ServerAndClient => {
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth]
            }
        }
    }
}

/// The kind of a private key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KeyKind {
    /// ECDSA with P-256 and SHA-256, which every implementation accepts.
    #[default]
    EcdsaP256,
    /// Ed25519.
    Ed25519,
    /// ML-DSA-44 (FIPS 204): safe against quantum computers to come, as the two below. A
    /// certificate is some 4 KB, and a handshake grows by each certificate and signature in it.
    MlDsa44,
    /// ML-DSA-65: certificates of some 5.5 KB.
    MlDsa65,
    /// ML-DSA-87: certificates of some 7.4 KB.
    MlDsa87,
}

impl KeyKind {
    /// Each of them.
    pub const ALL: [Self; 5] =
        [Self::EcdsaP256, Self::Ed25519, Self::MlDsa44, Self::MlDsa65, Self::MlDsa87];

    /// The kind in lower case, e.g. `ml-dsa-65`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ecdsa-p256",
            Self::Ed25519 => "ed25519",
            Self::MlDsa44 => "ml-dsa-44",
            Self::MlDsa65 => "ml-dsa-65",
            Self::MlDsa87 => "ml-dsa-87",
        }
    }

    /// Makes a key of this kind.
    pub(crate) fn generate(self) -> Result<Zeroizing<KeyPair>, MakeCertificateError> {
        let algorithm = match self {
            Self::EcdsaP256 => &PKCS_ECDSA_P256_SHA256,
            Self::Ed25519 => &PKCS_ED25519,
            Self::MlDsa44 => &PKCS_ML_DSA_44,
            Self::MlDsa65 => &PKCS_ML_DSA_65,
            Self::MlDsa87 => &PKCS_ML_DSA_87,
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
        Ok(Self { not_before, not_after })
    }

    /// The first moment and the last.
    pub(crate) fn bounds(self) -> (SystemTime, SystemTime) {
        (self.not_before, self.not_after)
    }

    /// The last moment, in Unix seconds.
    pub(crate) fn not_after_s(self) -> i64 {
        unix_s(self.not_after)
    }

    /// The plan as parameters of rcgen.
    pub(crate) fn params(self) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.not_before = self.not_before.into();
        params.not_after = self.not_after.into();
        params
    }
}

fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`')
}

/// Seconds since 1970, negative before.
pub(crate) fn unix_s(time: SystemTime) -> i64 {
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
pub(crate) const DAY_S: u64 = 86_400;
/// The year 2500 in Unix seconds: far from the last date that a certificate can have.
const TIME_S_MAX: i64 = 16_725_225_600;

#[cfg(test)]
mod tests;
