// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reasons to refuse a peer's certificate, in words: what is wrong with it, and what makes a
//! good one.
//!
//! Most certificates that are refused were made by openssl as its tutorials say: an authority's
//! where a server's belongs (`openssl req -x509`), one of version 1 (`openssl x509 -req`), one
//! whose only name is its common name. The text of each says which option was missing.
//! Not here: the texts of alerts, which say that the peer refuses us (`failure.rs`).

use std::net::IpAddr;

use rustls::{CertRevocationListError, CertificateError, Error, ExtendedKeyPurpose};
use smt_record::Side;
use webpki::Error as Defect;

use crate::certificate_extensions::unknown_critical;
use crate::tls::verify_chain::ChainSignature;
use crate::tls::verify_server_id::WrongId;

/// Why the certificate of `peer` is refused, and what to do, in one line.
pub(crate) fn text(error: &CertificateError, peer: Side) -> String {
    use CertificateError as C;
    let subject = format!("the {peer}'s certificate");
    match error {
        C::ExpiredContext { time, not_after } => {
            let ago = duration(time.as_secs().saturating_sub(not_after.as_secs()));
            format!("{subject} expired {ago} ago; renew it, or set this host's clock")
        }
        C::Expired => format!("{subject} has expired; renew it, or set this host's clock"),
        C::NotValidYetContext { time, not_before } => {
            let until = duration(not_before.as_secs().saturating_sub(time.as_secs()));
            format!(
                "{subject} is not yet valid: it begins in {until}; set this host's clock, or wait"
            )
        }
        C::NotValidYet => format!("{subject} is not yet valid; set this host's clock, or wait"),
        C::UnknownIssuer => format!(
            "{subject} comes from an unknown issuer; trust its authority here, or give the {peer} \
            a certificate of a trusted one, with all intermediates"
        ),
        // Bad signatures of chains are told as others: see `verify_chain.rs`.
        C::BadSignature => format!(
            "the {peer} does not hold the private key of the certificate that it shows: it is an \
            impostor, or has a wrong key file; find out which, and trust nothing that it says"
        ),
        // webpki finds roots by name: this is what another authority of a trusted one's name gives.
        C::Other(error) if ChainSignature::is_in(error) => format!(
            "{subject} is not signed by the trusted authority that it names; another authority of \
            the same name issued it, or it is damaged: trust that one, or renew it"
        ),
        C::Other(error) => match (error.0.downcast_ref(), error.0.downcast_ref()) {
            (Some(wrong), _) => wrong_id(wrong, peer),
            (_, Some(defect)) => of_defect(defect, peer),
            _ => damaged(peer),
        },
        C::NotValidForNameContext { expected, presented } => format!(
            "the {peer} was called by the name {:?}, but its certificate is for {}; call it by a \
            name that it has, or give it a certificate with this one",
            expected.to_str(),
            names(presented)
        ),
        C::InvalidPurpose => wrong_purpose("something else", peer),
        C::InvalidPurposeContext { presented, .. } => wrong_purpose(&purposes(presented), peer),
        C::ApplicationVerificationFailure => {
            format!("{subject} is none of the pinned ones; pin it, if it is known to be right")
        }
        C::Revoked => format!("{subject} is revoked; renew it"),
        C::UnknownRevocationStatus => format!(
            "no revocation list here tells of {subject}, or of one of its issuers'; give the lists of \
            all authorities of its chain but the root's own (--crl)"
        ),
        C::ExpiredRevocationListContext { time, next_update } => {
            let ago = duration(time.as_secs().saturating_sub(next_update.as_secs()));
            format!(
                "the revocation list that tells of {subject} expired {ago} ago; give the present list \
                of its authority, or set this host's clock"
            )
        }
        C::ExpiredRevocationList => format!(
            "the revocation list that tells of {subject} is expired; give the present list of its \
            authority, or set this host's clock"
        ),
        C::UnsupportedSignatureAlgorithmContext { .. }
        | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => format!(
            "{subject} is signed in a way that is not accepted here, e.g. with SHA-1 or an RSA key \
            below 2048 bits; renew it with SHA-256 and a key of ECDSA P-256, Ed25519 or RSA 2048"
        ),
        _ => damaged(peer),
    }
}

/// Why the revocation list that tells of the certificate of `peer` cannot be used.
pub(crate) fn list(error: &CertRevocationListError, peer: Side) -> String {
    let why = match error {
        CertRevocationListError::BadSignature => {
            "is not signed by the authority that it names: another of the same name made it"
                .to_owned()
        }
        CertRevocationListError::IssuerInvalidForCrl => {
            "is of an authority that may not sign lists (key usage cRLSign)".to_owned()
        }
        other => format!("cannot be used: {other:?}"),
    };
    format!(
        "the revocation list that tells of the {peer}'s certificate {why}; give the list that its authority made"
    )
}

/// The server is another than the one that was called by its SPIFFE ID.
fn wrong_id(wrong: &WrongId, peer: Side) -> String {
    let presented = match wrong.presented.as_slice() {
        [] => "it has no URI at all".to_owned(),
        all => {
            let shown: Vec<String> =
                all.iter().take(SHOWN_MAX).map(|uri| format!("{uri:?}")).collect();
            format!("it has {}, and exactly one counts", shown.join(", "))
        }
    };
    format!(
        "the {peer} was called by the SPIFFE ID {}, but its certificate does not have it: {presented}; call \
        it by its own, or give it a certificate with that URI, e.g. by `smt keys {peer} --uri`",
        wrong.expected
    )
}

/// Why a certificate of one's own, or one that is to be trusted, cannot be used. It is in DER.
pub(crate) fn own(error: &Error, certificate: &[u8]) -> String {
    let defect = match error {
        Error::InvalidCertificate(CertificateError::Other(error)) => {
            error.0.downcast_ref::<Defect>()
        }
        _ => None,
    };
    match defect {
        Some(Defect::UnsupportedCertVersion) => VERSION_1.to_owned(),
        Some(Defect::UnsupportedCriticalExtension) => format!(
            "it has a critical extension that is not known here ({}), and so must not be used \
            (RFC 5280 section 4.2); let its authority issue it without that, or not as critical",
            unknown_critical(certificate).join("; ")
        ),
        _ => "it is damaged, or breaks the rules of RFC 5280; `openssl x509 -text` shows it"
            .to_owned(),
    }
}

/// A defect that webpki finds and TLS's library has no name for.
fn of_defect(defect: &Defect, peer: Side) -> String {
    let subject = format!("the {peer}'s certificate");
    match defect {
        Defect::CaUsedAsEndEntity => {
            let pin = match peer {
                Side::Server => {
                    "pin it (--pin in the place of --ca, `Trust::pinned_from_pem_file`)"
                }
                Side::Client => "pin it (`Trust::pinned_from_pem_file`)",
            };
            format!(
                "{subject} is that of an authority (CA:TRUE), as `openssl req -x509` makes it unless \
                told otherwise, and no {peer}'s; {pin}, or make another: add -addext \
                basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:NAME to that \
                command, or use `smt keys {peer}`"
            )
        }
        Defect::EndEntityUsedAsCa => format!(
            "the certificate that signed {subject} is no authority's (CA:FALSE); let an authority \
            sign it, e.g. by `smt keys {peer}`"
        ),
        Defect::UnsupportedCertVersion => format!("{subject}: {VERSION_1}"),
        Defect::PathLenConstraintViolated => format!(
            "{subject} has more intermediates than an authority of its chain allows (pathlen); let \
            that authority sign it directly"
        ),
        Defect::NameConstraintViolation => format!(
            "{subject} has a name that an authority of its chain may not sign (name constraints); \
            let another authority sign it"
        ),
        Defect::UnsupportedCriticalExtension => format!(
            "{subject}, or one of its issuers', has a critical extension that is not known here \
            (`openssl x509 -text` lists them); renew it without"
        ),
        _ => damaged(peer),
    }
}

fn damaged(peer: Side) -> String {
    format!(
        "the {peer}'s certificate, or one of its issuers', is damaged or breaks the rules of \
        RFC 5280 (`openssl x509 -text` shows it); make another, e.g. by `smt keys {peer}`"
    )
}

fn wrong_purpose(presented: &str, peer: Side) -> String {
    format!(
        "the {peer}'s certificate is not made for a {peer}, but for {presented}; give it one whose \
        extended key usage allows that, e.g. by `smt keys {peer}` or openssl's \
        extendedKeyUsage={peer}Auth"
    )
}

/// The uses that a certificate has.
fn purposes(presented: &[ExtendedKeyPurpose]) -> String {
    let word = |purpose: &ExtendedKeyPurpose| match purpose {
        ExtendedKeyPurpose::ClientAuth => "clients".to_owned(),
        ExtendedKeyPurpose::ServerAuth => "servers".to_owned(),
        other => other.to_string(),
    };
    let words: Vec<String> = presented.iter().take(SHOWN_MAX).map(word).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// The names that a certificate has. webpki gives them as `DnsName("a.example")`, and IPv6
/// addresses not as RFC 5952 writes them.
fn names(presented: &[String]) -> String {
    let plain = presented.iter().take(SHOWN_MAX).map(|name| {
        let plain = match name.split_once('(') {
            Some((_, rest)) => rest.trim_end_matches(')'),
            None => name.as_str(),
        };
        // Zeros at the end of an address are left out.
        let address = plain.parse().or_else(|_| format!("{plain}::").parse());
        match address {
            Ok(IpAddr::V6(address)) => address.to_string(),
            _ => plain.to_owned(),
        }
    });
    let plain: Vec<String> = plain.collect();
    match presented.len().checked_sub(SHOWN_MAX) {
        _ if plain.is_empty() => {
            "no name at all (subjectAltName; its common name does not count)".to_owned()
        }
        None | Some(0) => plain.join(", "),
        Some(more) => format!("{}, and {more} more", plain.join(", ")),
    }
}

/// A time span in its largest unit.
fn duration(seconds: u64) -> String {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let (size, unit) =
        units.into_iter().find(|(size, _)| seconds >= *size).unwrap_or((1, "second"));
    let count = seconds / size;
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// The defect of a certificate without extensions, and the option that was missing.
const VERSION_1: &str = "it has version 1, without extensions, as older `openssl x509 -req` \
    makes it, and TLS needs version 3; repeat that command with `-extfile FILE`, where FILE has the \
    line subjectAltName=DNS:NAME, or use `smt keys`";
/// Names and purposes that a text lists at most: it stays one line.
const SHOWN_MAX: usize = 8;

#[cfg(test)]
mod tests {
    mod duration {
        #[test]
        fn the_largest_unit_is_used() {
            let spans = [(0, "0 seconds"), (1, "1 second"), (119, "1 minute"), (7_200, "2 hours")];
            for (seconds, text) in spans {
                assert_eq!(super::super::duration(seconds), text);
            }
            assert_eq!(super::super::duration(3 * 86_400 + 5), "3 days");
        }
    }

    mod names {
        use super::super::*;

        #[test]
        fn addresses_are_written_as_rfc_5952_says() {
            let presented = [
                r#"DnsName("localhost")"#,
                "IpAddress(127.0.0.1)",
                "IpAddress(0::1)",
                "IpAddress(2001:db8::7)",
                "IpAddress(2001:db8)",
            ]
            .map(str::to_owned);
            assert_eq!(
                names(&presented),
                r#""localhost", 127.0.0.1, ::1, 2001:db8::7, 2001:db8::"#
            );
        }

        #[test]
        fn a_list_of_names_has_an_end() {
            let presented: Vec<String> = (0..900).map(|n| format!("DnsName(\"{n}.x\")")).collect();
            assert!(names(&presented).ends_with(r#""7.x", and 892 more"#));
        }
    }

    mod text {
        use std::sync::Arc;

        use rustls::OtherError;

        use super::super::*;

        #[test]
        fn no_defect_is_told_as_debug_text() {
            for defect in [
                Defect::BadDer,
                Defect::CaUsedAsEndEntity,
                Defect::EmptyEkuExtension,
                Defect::EndEntityUsedAsCa,
                Defect::ExtensionValueInvalid,
                Defect::MalformedExtensions,
                Defect::NameConstraintViolation,
                Defect::PathLenConstraintViolated,
                Defect::SignatureAlgorithmMismatch,
                Defect::UnsupportedCertVersion,
                Defect::UnsupportedCriticalExtension,
                Defect::UnsupportedNameType,
            ] {
                let debug = format!("{defect:?}");
                let error = CertificateError::Other(OtherError(Arc::new(defect)));
                let text = text(&error, Side::Server);
                assert!(!text.contains(&debug) && !text.contains("Other("), "{text}");
                assert_eq!(text.lines().count(), 1);
            }
        }
    }
}
