// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates, keys and names from files, which may be anything (`smt-handshake`).
//!
//! The first byte says what the rest is: PEM text, DER, or a name. Nothing panics, an input that is
//! read in one form is read in the other, and texts about it are safe to print: no certificate puts
//! a control character on a terminal. Not here: whom to trust; webpki decides that.

use smt_handshake::{Identity, Trust};
use smt_pki::{CertificateAuthority, CertificateText, SubjectName};

/// Checks one file.
pub fn check(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    match kind % 3 {
        0 => check_pem(rest),
        1 => check_der(rest),
        _ => check_name(rest),
    }
}

fn check_pem(text: &[u8]) {
    let described = CertificateText::from_pem(text);
    if let Ok(certificates) = &described {
        assert!(!certificates.is_empty(), "no certificate is an error");
        certificates.iter().for_each(check_text);
    }
    let pinned = Trust::pinned_from_pem(text);
    assert!(described.is_err() || pinned.is_ok(), "every certificate can be pinned");
    let roots = Trust::roots_from_pem(text);
    assert!(roots.is_err() || pinned.is_ok(), "every root is a certificate");
    let identity = Identity::from_pem(text, text);
    if let Ok(identity) = &identity {
        let chain = identity.certificates().map(<[u8]>::to_vec).collect();
        let key = text.to_vec();
        assert!(Identity::from_der(chain, key).is_err(), "PEM is no DER");
    }
    check_error(described.err());
    check_error(pinned.err());
    check_error(roots.err());
    check_error(identity.err());
    if let Ok(text) = std::str::from_utf8(text) {
        check_error(CertificateAuthority::from_pem(text, text).err());
    }
}

fn check_der(der: &[u8]) {
    let described = CertificateText::from_der(der);
    let pem = pem(der);
    let from_pem = CertificateText::from_pem(pem.as_bytes());
    match (&described, &from_pem) {
        (Ok(one), Ok(all)) => assert_eq!(std::slice::from_ref(one), all),
        (Err(_), Err(_)) => {}
        other => panic!("DER and PEM of it differ: {other:?}"),
    }
    if let Ok(text) = &described {
        check_text(text);
    }
    check_error(described.err());
    check_error(Trust::roots_from_pem(pem.as_bytes()).err());
    check_error(Identity::from_der(vec![der.to_vec()], der.to_vec()).err());
}

fn check_name(name: &[u8]) {
    let Ok(name) = std::str::from_utf8(name) else {
        return;
    };
    match SubjectName::parse(name) {
        Ok(SubjectName::Dns(dns)) => assert_eq!(dns, name),
        Ok(SubjectName::Uri(uri)) => assert!(uri == name && uri.contains("://")),
        Ok(SubjectName::Ip(address)) => assert_eq!(name.parse(), Ok(address)),
        Err(error) => check_error(Some(error)),
    }
}

/// Ten lines, one for each field, and one more for a SPIFFE ID and for unknown extensions.
fn check_text(text: &CertificateText) {
    let shown = text.to_string();
    let more = |start: &str| shown.lines().filter(|line| line.starts_with(start)).count();
    let (ids, unusable) = (more("spiffe id"), more("unusable"));
    assert!(ids <= 1 && unusable <= 1, "{shown:?}");
    assert_eq!(shown.lines().count(), 10 + ids + unusable, "{shown:?}");
    let is_safe = shown.chars().all(|char| char == '\n' || !char.is_control());
    assert!(is_safe, "{shown:?}");
}

fn check_error(error: Option<impl std::fmt::Display>) {
    if let Some(error) = error {
        let shown = error.to_string();
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
    }
}

/// A certificate's PEM text (RFC 7468).
fn pem(der: &[u8]) -> String {
    let mut digits = String::new();
    for bytes in der.chunks(3) {
        let group = bytes.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - bytes.len()));
        for place in 0..4 {
            let digit = group >> (18 - 6 * place) & 63;
            let is_filled = place <= bytes.len();
            digits.push(if is_filled { char::from(ALPHABET[digit as usize]) } else { '=' });
        }
    }
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in digits.as_bytes().chunks(64) {
        text.extend(line.iter().copied().map(char::from));
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}

/// The alphabet of base64 (RFC 4648 §4).
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
