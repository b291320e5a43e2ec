// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The content of a certificate in words, for people who look for the reason of a refusal.
//!
//! Flow: 1. take a certificate in DER, or all of a PEM text  2. read subject, names, dates,
//! issuer, key and fingerprint  3. `Display` prints them, one per line.
//! Not here: any judgement whether it is to be trusted.

use std::fmt;
use std::net::IpAddr;

use aws_lc_rs::digest::{SHA256, digest};
use smt_handshake::{CredentialError, PeerCertificate, Pem};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521,
    OID_PKCS1_RSAENCRYPTION, OID_SIG_ED25519,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::plan::DAY_S;
use crate::serial::CertificateSerial;

/// A certificate's content in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateText {
    /// Subject, e.g. `CN=a.example`.
    pub subject: String,
    /// Issuer, e.g. `CN=cluster authority`.
    pub issuer: String,
    /// Serial number in hexadecimal, by which its issuer's revocation list names it.
    pub serial: String,
    /// Subject alternative names: DNS names, IP addresses and URIs as such, others with their
    /// kind.
    pub names: Vec<String>,
    /// The SPIFFE ID, if it proves one.
    pub spiffe_id: Option<String>,
    /// First moment of validity, UTC.
    pub not_before: String,
    /// The same in Unix seconds, to compare with a clock.
    pub not_before_s: i64,
    /// Last moment of validity, UTC.
    pub not_after: String,
    /// The last moment in Unix seconds.
    pub not_after_s: i64,
    /// Whether it may sign others.
    pub is_authority: bool,
    /// Permitted uses, e.g. `server, client`; `any` if the certificate does not say.
    pub purposes: String,
    /// Critical extensions that are not known here, by name and object identifier. With any of them
    /// the certificate cannot be used (RFC 5280 §4.2).
    pub unknown_critical: Vec<String>,
    /// Kind of the public key, e.g. `ECDSA P-256`.
    pub key_kind: String,
    /// SHA-256 of the DER, lower-case hex.
    pub fingerprint: String,
}

impl CertificateText {
    /// All certificates of a PEM text, in order; at least one.
    ///
    /// # Errors
    /// [`CredentialError`] says what was found instead, or what cannot be parsed.
    pub fn from_pem(pem: &[u8]) -> Result<Vec<Self>, CredentialError> {
        let certificates = Pem::text("the given text", pem).certificates()?;
        certificates.iter().map(|certificate| Self::from_der(certificate)).collect()
    }

    /// A certificate in DER.
    ///
    /// # Errors
    /// [`CredentialError::BadCertificate`] if it is none.
    pub fn from_der(der: &[u8]) -> Result<Self, CredentialError> {
        let (_, certificate) =
            X509Certificate::from_der(der).map_err(|error| CredentialError::BadCertificate {
                place: "the given bytes".to_owned(),
                reason: error.to_string(),
            })?;
        let validity = certificate.validity();
        Ok(Self {
            // Control characters never reach a terminal.
            subject: certificate.subject().to_string().escape_debug().to_string(),
            issuer: certificate.issuer().to_string().escape_debug().to_string(),
            serial: serial_text(certificate.raw_serial()),
            names: names(&certificate),
            spiffe_id: spiffe_id(der),
            not_before: validity.not_before.to_string(),
            not_before_s: validity.not_before.timestamp(),
            not_after: validity.not_after.to_string(),
            not_after_s: validity.not_after.timestamp(),
            is_authority: certificate.is_ca(),
            purposes: purposes(&certificate),
            unknown_critical: PeerCertificate::unknown_critical_extensions(der),
            key_kind: key_kind(certificate.public_key()),
            fingerprint: hex(digest(&SHA256, der).as_ref()),
        })
    }

    /// Whole days for which it is still valid at a time in Unix seconds; negative after its end.
    pub fn days_left(&self, now_s: i64) -> i64 {
        self.not_after_s.saturating_sub(now_s).div_euclid(DAY_S as i64)
    }
}

impl fmt::Display for CertificateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = if self.names.is_empty() { "none".to_owned() } else { self.names.join(", ") };
        writeln!(f, "subject      {}", self.subject)?;
        writeln!(f, "names        {names}")?;
        if let Some(id) = &self.spiffe_id {
            writeln!(f, "spiffe id    {id}")?;
        }
        writeln!(f, "issuer       {}", self.issuer)?;
        writeln!(f, "serial       {}", self.serial)?;
        writeln!(f, "not before   {}", self.not_before)?;
        writeln!(f, "not after    {}", self.not_after)?;
        writeln!(f, "authority    {}", if self.is_authority { "yes" } else { "no" })?;
        writeln!(f, "purposes     {}", self.purposes)?;
        if !self.unknown_critical.is_empty() {
            let unknown = self.unknown_critical.join("; ");
            writeln!(f, "unusable     critical extensions that are not known here: {unknown}")?;
        }
        writeln!(f, "key          {}", self.key_kind)?;
        write!(f, "fingerprint  sha256 {}", self.fingerprint)
    }
}

/// A public key without a certificate, in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PublicKeyText {
    /// Its kind, e.g. `ECDSA P-256`.
    pub key_kind: String,
    /// SHA-256 of the DER (SubjectPublicKeyInfo), lower-case hex.
    pub fingerprint: String,
}

impl PublicKeyText {
    /// All public keys of a PEM text, in order; none if it has none.
    ///
    /// # Errors
    /// [`CredentialError`] says what cannot be parsed.
    pub fn from_pem(pem: &[u8]) -> Result<Vec<Self>, CredentialError> {
        let keys = Pem::text("the given text", pem).public_keys()?.unwrap_or_default();
        keys.iter().map(|key| Self::from_der(key)).collect()
    }

    fn from_der(der: &[u8]) -> Result<Self, CredentialError> {
        let (_, key) =
            SubjectPublicKeyInfo::from_der(der).map_err(|error| CredentialError::NotPem {
                place: "the given text".to_owned(),
                reason: format!("a public key in it cannot be read: {error}"),
            })?;
        let fingerprint = hex(digest(&SHA256, der).as_ref());
        Ok(Self { key_kind: key_kind(&key), fingerprint })
    }
}

impl fmt::Display for PublicKeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "public key   without a certificate")?;
        writeln!(f, "key          {}", self.key_kind)?;
        write!(f, "fingerprint  sha256 {}", self.fingerprint)
    }
}

/// A serial number as people see it, also one that no authority should give.
pub(crate) fn serial_text(content: &[u8]) -> String {
    let serial = CertificateSerial::from_der_integer(content);
    serial.map_or_else(|| hex(content), |serial| serial.to_string())
}

/// The SPIFFE ID as a handshake sees it. Its letters are plain ones.
fn spiffe_id(der: &[u8]) -> Option<String> {
    let certificate = PeerCertificate::from_der(der).ok()?;
    certificate.spiffe_id().map(str::to_owned)
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    extension.value.general_names.iter().map(name).collect()
}

fn name(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(text) | GeneralName::URI(text) => text.escape_debug().to_string(),
        GeneralName::IPAddress(bytes) => ip(bytes).unwrap_or_else(|| name.to_string()),
        other => other.to_string().escape_debug().to_string(),
    }
}

fn ip(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4.or(v6).ok().map(|address| address.to_string())
}

fn purposes(certificate: &X509Certificate<'_>) -> String {
    let Ok(Some(extension)) = certificate.extended_key_usage() else {
        return "any".to_owned();
    };
    let usage = extension.value;
    let known = [(usage.any, "any"), (usage.server_auth, "server"), (usage.client_auth, "client")];
    let words: Vec<&str> = known.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
    if words.is_empty() { "neither server nor client".to_owned() } else { words.join(", ") }
}

fn key_kind(key: &SubjectPublicKeyInfo<'_>) -> String {
    let algorithm = &key.algorithm.algorithm;
    if *algorithm == OID_SIG_ED25519 {
        return "Ed25519".to_owned();
    }
    if *algorithm == OID_PKCS1_RSAENCRYPTION {
        let bits = key.parsed().map_or(0, |key| key.key_size());
        return format!("RSA {bits}");
    }
    if *algorithm != OID_KEY_TYPE_EC_PUBLIC_KEY {
        let id = algorithm.to_id_string();
        return ml_dsa(&id).map_or_else(|| id.clone(), str::to_owned);
    }
    let curve = key.algorithm.parameters.as_ref().and_then(|any| any.as_oid().ok());
    match curve {
        Some(curve) if curve == OID_EC_P256 => "ECDSA P-256".to_owned(),
        Some(curve) if curve == OID_NIST_EC_P384 => "ECDSA P-384".to_owned(),
        Some(curve) if curve == OID_NIST_EC_P521 => "ECDSA P-521".to_owned(),
        Some(curve) => format!("ECDSA {}", curve.to_id_string()),
        None => "ECDSA".to_owned(),
    }
}

/// The post-quantum signatures of FIPS 204, by their identifiers (RFC 9881 §2).
fn ml_dsa(id: &str) -> Option<&'static str> {
    match id {
        "2.16.840.1.101.3.4.3.17" => Some("ML-DSA-44"),
        "2.16.840.1.101.3.4.3.18" => Some("ML-DSA-65"),
        "2.16.840.1.101.3.4.3.19" => Some("ML-DSA-87"),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::CertificateAuthority;
    use crate::plan::{CertificatePlan, KeyKind, Validity};

    mod from_pem {
        use super::*;

        #[test]
        fn all_of_a_chain_is_described() {
            let validity = Validity::days(400).unwrap();
            let authority = CertificateAuthority::new("root", validity, KeyKind::Ed25519).unwrap();
            let leaf = authority.issue(&CertificatePlan::server(&["a.example"]).unwrap()).unwrap();
            let chain = leaf.certificate_pem + authority.certificate_pem();
            let [leaf, root] = &CertificateText::from_pem(chain.as_bytes()).unwrap()[..] else {
                panic!("two certificates")
            };
            assert_eq!((leaf.subject.as_str(), leaf.issuer.as_str()), ("CN=a.example", "CN=root"));
            assert_eq!((leaf.is_authority, leaf.purposes.as_str()), (false, "server"));
            assert_eq!((root.is_authority, root.purposes.as_str()), (true, "any"));
            assert_eq!(root.key_kind, "Ed25519");
            assert!(root.not_after_s > leaf.not_after_s);
            assert!(leaf.not_before_s < leaf.not_after_s);
            assert_ne!(root.fingerprint, leaf.fingerprint);
            assert_eq!(root.fingerprint.len(), 64);
        }
    }

    mod days_left {
        use super::*;

        #[test]
        fn are_whole_ones() {
            let authority =
                CertificateAuthority::new("root", Validity::days(9).unwrap(), KeyKind::default());
            let pem = authority.unwrap().certificate_pem().to_owned();
            let text = CertificateText::from_pem(pem.as_bytes()).unwrap().remove(0);
            let at = |before_s: i64| text.days_left(text.not_after_s - before_s);
            assert_eq!([at(86_400), at(86_399), at(0), at(-1)], [1, 0, 0, -1]);
            assert!(text.not_before_s < text.not_after_s);
        }
    }

    mod from_der {
        use super::*;

        #[test]
        fn garbage_is_refused() {
            for bytes in [&[][..], &[0x30], &[0x30, 0x03, 1, 2, 3], &[0xFF; 300]] {
                assert!(CertificateText::from_der(bytes).is_err());
            }
        }
    }

    mod display {
        use super::*;

        #[test]
        fn one_line_for_each_field() {
            let validity = Validity::days(2).unwrap();
            let authority =
                CertificateAuthority::new("root", validity, KeyKind::EcdsaP256).unwrap();
            let texts = CertificateText::from_pem(authority.certificate_pem().as_bytes()).unwrap();
            let text = texts[0].to_string();
            assert_eq!(text.lines().count(), 10);
            assert!(text.contains("key          ECDSA P-256\n"), "{text}");
            assert!(text.contains("names        none\n"), "{text}");
        }

        #[test]
        fn control_characters_of_names_reach_no_terminal() {
            let validity = Validity::days(2).unwrap();
            let named = "ro\u{1B}[31mot\n";
            let authority = CertificateAuthority::new(named, validity, KeyKind::Ed25519).unwrap();
            let texts = CertificateText::from_pem(authority.certificate_pem().as_bytes()).unwrap();
            let text = texts[0].to_string();
            assert!(text.contains("CN=ro\\u{1b}[31mot\\n\n"), "{text:?}");
            assert!(!text.contains('\u{1B}') && text.lines().count() == 10);
        }
    }
}
