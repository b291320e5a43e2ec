// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The names and the key in a peer's certificate, for programs that decide by them.
//!
//! Flow: 1. webpki parses the certificate, as in the handshake  2. it gives DNS names, URIs,
//! subject and key  3. IP addresses and the common name are looked for in the DER, and webpki
//! confirms the addresses.
//! Not here: whether the certificate is to be trusted, which the handshake has decided.

use std::net::IpAddr;

use rustls_pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;

use crate::der::{Elements, SEQUENCE, first};
use crate::pem::CredentialError;

/// The content of a peer's certificate.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PeerCertificate {
    /// DNS names among the subject alternative names, wildcards as they stand (`*.db.example`).
    pub dns_names: Vec<String>,
    /// IP addresses among the subject alternative names.
    pub ip_addresses: Vec<IpAddr>,
    /// URIs among the subject alternative names.
    pub uris: Vec<String>,
    /// Common name of the subject: the last one, if there are several. Text for people mostly;
    /// authorities check alternative names, and may not check this.
    pub common_name: Option<String>,
    /// The subject, in DER without the outer SEQUENCE.
    pub subject: Vec<u8>,
    /// The public key (SubjectPublicKeyInfo), in DER.
    pub public_key: Vec<u8>,
}

impl PeerCertificate {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// [`CredentialError::BadCertificate`] if it is none.
    pub fn from_der(der: &[u8]) -> Result<Self, CredentialError> {
        let der = CertificateDer::from(der);
        let certificate =
            EndEntityCert::try_from(&der).map_err(|error| CredentialError::BadCertificate {
                place: "the peer's certificate".to_owned(),
                reason: error.to_string(),
            })?;
        let is_for = |address: &IpAddr| {
            let name = ServerName::IpAddress((*address).into());
            certificate.verify_is_valid_for_subject_name(&name).is_ok()
        };
        let mut ip_addresses = ip_addresses(&der).unwrap_or_default();
        ip_addresses.retain(is_for);
        Ok(Self {
            dns_names: certificate.valid_dns_names().map(str::to_owned).collect(),
            ip_addresses,
            uris: certificate.valid_uri_names().map(str::to_owned).collect(),
            common_name: common_name(certificate.subject()),
            subject: certificate.subject().to_vec(),
            public_key: certificate.subject_public_key_info().to_vec(),
        })
    }

    /// The SPIFFE id, if this is an X.509-SVID: its only URI, which begins with `spiffe://`.
    #[must_use]
    pub fn spiffe_id(&self) -> Option<&str> {
        match self.uris.as_slice() {
            [uri] if uri.starts_with("spiffe://") => Some(uri),
            _ => None,
        }
    }
}

/// Addresses among the subject alternative names (RFC 5280 §4.2.1.6).
fn ip_addresses(certificate: &[u8]) -> Option<Vec<IpAddr>> {
    let to_be_signed = first(first(certificate, SEQUENCE)?, SEQUENCE)?;
    let extensions = first(first(to_be_signed, EXTENSIONS)?, SEQUENCE)?;
    let names = Elements(extensions).find_map(|(_, extension)| {
        let is_names = first(extension, OBJECT_ID)? == SUBJECT_ALTERNATIVE_NAMES;
        is_names.then(|| first(first(extension, OCTETS)?, SEQUENCE))?
    })?;
    let addresses = Elements(names).filter(|(tag, _)| *tag == IP_ADDRESS);
    Some(
        addresses
            .filter_map(|(_, octets)| address(octets))
            .collect(),
    )
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(octets).map(IpAddr::from);
    v4.or(v6).ok()
}

/// The last common name of a subject that is text.
fn common_name(subject: &[u8]) -> Option<String> {
    let attributes = Elements(subject).flat_map(|(_, relative)| Elements(relative));
    let names =
        attributes.filter(|(_, attribute)| first(attribute, OBJECT_ID) == Some(COMMON_NAME));
    let texts = names.filter_map(|(_, attribute)| Elements(attribute).nth(1));
    let texts = texts.filter(|(tag, _)| [UTF8, PRINTABLE, IA5].contains(tag));
    let last = texts.last().map(|(_, text)| text.to_vec())?;
    String::from_utf8(last).ok()
}

const OBJECT_ID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const UTF8: u8 = 0x0C;
const PRINTABLE: u8 = 0x13;
const IA5: u8 = 0x16;
/// `extensions [3]` of a certificate.
const EXTENSIONS: u8 = 0xA3;
/// `iPAddress [7]` of a general name.
const IP_ADDRESS: u8 = 0x87;
/// 2.5.29.17.
const SUBJECT_ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1D, 0x11];
/// 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
