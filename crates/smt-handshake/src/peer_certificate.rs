// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The names and the key in a peer's certificate, for programs that decide by them.
//!
//! Flow: 1. webpki parses the certificate, as in the handshake  2. it gives DNS names, URIs,
//! subject and key  3. IP addresses and the common name are looked for in the DER, and webpki
//! confirms the addresses.
//! Not here: whether the certificate is to be trusted, which the handshake has decided.

use std::net::IpAddr;

use rustls_pki_types::{CertificateDer, ServerName};
use smt_proto::WallTime;
use webpki::EndEntityCert;

use crate::certificate_extensions::{extensions, unknown_critical};
use crate::credential_error::CredentialError;
use crate::der::{Elements, OBJECT_ID, SEQUENCE, first};
use crate::der_time::time;
use crate::spiffe_id::SpiffeId;

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
    /// The last second in which the certificate is valid.
    pub not_after: WallTime,
    /// The subject, in DER without the outer SEQUENCE.
    pub subject: Vec<u8>,
    /// The public key (SubjectPublicKeyInfo), in DER.
    pub public_key: Vec<u8>,
    /// URIs among the subject alternative names, those too that webpki takes for none.
    uris_len: usize,
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
        let not_after = not_after(&der).ok_or_else(|| CredentialError::BadCertificate {
            place: "the peer's certificate".to_owned(),
            reason: "it has no date on which it ends".to_owned(),
        })?;
        let is_for = |address: &IpAddr| {
            let name = ServerName::IpAddress((*address).into());
            certificate.verify_is_valid_for_subject_name(&name).is_ok()
        };
        let mut ip_addresses = ip_addresses(&der).unwrap_or_default();
        ip_addresses.retain(is_for);
        Ok(Self {
            not_after,
            uris_len: alternative_names(&der, URI).map_or(0, Iterator::count),
            dns_names: certificate.valid_dns_names().map(str::to_owned).collect(),
            ip_addresses,
            uris: certificate.valid_uri_names().map(str::to_owned).collect(),
            common_name: common_name(certificate.subject()),
            subject: certificate.subject().to_vec(),
            public_key: certificate.subject_public_key_info().to_vec(),
        })
    }

    /// The critical extensions of a certificate in DER that are not known here, by name and object
    /// identifier. With any of them it cannot be used (RFC 5280 §4.2).
    #[must_use]
    pub fn unknown_critical_extensions(der: &[u8]) -> Vec<String> {
        unknown_critical(der)
    }

    /// The first second in which a certificate in DER counts no more.
    pub(crate) fn expiry(der: &[u8]) -> Option<WallTime> {
        let last = not_after(der)?;
        Some(WallTime::from_secs(last.as_secs() + 1))
    }

    /// The SPIFFE ID, if this is an X.509-SVID: its only URI, which is a valid ID
    /// ([`crate::SpiffeId`]). A certificate with several URIs has none (X.509-SVID §2).
    #[must_use]
    pub fn spiffe_id(&self) -> Option<&str> {
        match self.uris.as_slice() {
            [uri] if self.uris_len == 1 && SpiffeId::parse(uri).is_ok() => Some(uri),
            _ => None,
        }
    }
}

/// The subject alternative names of one kind (RFC 5280 §4.2.1.6).
fn alternative_names(certificate: &[u8], kind: u8) -> Option<impl Iterator<Item = &[u8]>> {
    let names = extensions(certificate)?
        .find(|extension| extension.id == SUBJECT_ALTERNATIVE_NAMES)
        .and_then(|extension| first(extension.value, SEQUENCE))?;
    let names = Elements(names).filter(move |(tag, _)| *tag == kind);
    Some(names.map(|(_, content)| content))
}

/// Addresses among the subject alternative names.
fn ip_addresses(certificate: &[u8]) -> Option<Vec<IpAddr>> {
    Some(alternative_names(certificate, IP_ADDRESS)?.filter_map(address).collect())
}

/// The end of the validity (RFC 5280 §4.1.2.5).
pub(crate) fn not_after(certificate: &[u8]) -> Option<WallTime> {
    let to_be_signed = first(first(certificate, SEQUENCE)?, SEQUENCE)?;
    // Signature algorithm, issuer, validity.
    let mut sequences = Elements(to_be_signed).filter(|(tag, _)| *tag == SEQUENCE);
    let (_, validity) = sequences.nth(2)?;
    let (tag, text) = Elements(validity).nth(1)?;
    time(tag, text)
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

const UTF8: u8 = 0x0C;
const PRINTABLE: u8 = 0x13;
const IA5: u8 = 0x16;
/// `iPAddress [7]` of a general name.
const IP_ADDRESS: u8 = 0x87;
/// `uniformResourceIdentifier [6]` of a general name.
const URI: u8 = 0x86;
/// 2.5.29.17.
const SUBJECT_ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1D, 0x11];
/// 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der_time::{GENERALIZED_TIME, UTC_TIME};

    fn element(tag: u8, content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        [&[tag, u8::try_from(content.len()).unwrap()], &content[..]].concat()
    }

    /// The end of a certificate that has nothing else.
    fn end_of(tag: u8, text: &str) -> Option<u64> {
        let begin = element(UTC_TIME, &[b"200101000000Z"]);
        let validity = element(SEQUENCE, &[&begin, &element(tag, &[text.as_bytes()])]);
        let (version, other) = (element(0xA0, &[]), element(SEQUENCE, &[]));
        let content = element(SEQUENCE, &[&version, &other, &other, &validity]);
        not_after(&element(SEQUENCE, &[&content])).map(WallTime::as_secs)
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_forms_of_time() {
        assert_eq!(end_of(UTC_TIME, "261126015300Z"), Some(1_795_657_980));
        assert_eq!(end_of(UTC_TIME, "700101000001Z"), Some(1));
        assert_eq!(end_of(GENERALIZED_TIME, "20261126015300Z"), Some(1_795_657_980));
        assert_eq!(end_of(GENERALIZED_TIME, "99991231235959Z"), Some(253_402_300_799));
        for text in [
            "",
            "Z",
            "261126015300",
            "261126015300A",
            "2611260153Z",
            "261326015300Z",
            "26112601530\u{fc}Z",
        ] {
            assert_eq!(end_of(UTC_TIME, text), None, "{text}");
        }
        assert_eq!(end_of(UTC_TIME, "500101000000Z"), None, "it ended before 1970");
    }
}
