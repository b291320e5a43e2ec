// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The content of a peer's certificate, as a program reads it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use smt_handshake::{CredentialError, PeerCertificate};
use smt_pki::{CertificatePlan, EphemeralCa};

/// The certificate of this plan, in DER.
fn der(plan: &CertificatePlan) -> Vec<u8> {
    let identity = EphemeralCa::new().unwrap().identity(plan).unwrap();
    identity.certificates().next().unwrap().to_vec()
}

#[test]
fn a_certificate_tells_its_names_by_kind() {
    let names = ["a.example", "*.b.example", "10.1.2.3", "fd00::7", "spiffe://example/db"];
    let read = PeerCertificate::from_der(&der(&CertificatePlan::server(&names).unwrap())).unwrap();
    assert_eq!(read.dns_names, ["a.example", "*.b.example"]);
    let addresses: Vec<String> = read.ip_addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.1.2.3", "fd00::7"]);
    assert_eq!(read.uris, ["spiffe://example/db"]);
    assert_eq!(read.spiffe_id(), Some("spiffe://example/db"));
}

#[test]
fn a_clients_certificate_tells_its_common_name_and_no_spiffe_id() {
    let read =
        PeerCertificate::from_der(&der(&CertificatePlan::client("writer").unwrap())).unwrap();
    assert_eq!(read.common_name.as_deref(), Some("writer"));
    assert_eq!(read.spiffe_id(), None);
    assert!(read.ip_addresses.is_empty());
}

#[test]
fn a_certificate_with_two_uris_has_no_spiffe_id() {
    let names = ["spiffe://example/a", "spiffe://example/b"];
    let read = PeerCertificate::from_der(&der(&CertificatePlan::server(&names).unwrap())).unwrap();
    assert_eq!((read.uris.len(), read.spiffe_id()), (2, None));
}

#[test]
fn equal_keys_are_told_by_the_certificates_of_one_key_alone() {
    let plan = CertificatePlan::client("writer").unwrap();
    let (first, second) = (der(&plan), der(&plan));
    let key = |der: &[u8]| PeerCertificate::from_der(der).unwrap().public_key;
    assert_eq!(key(&first), key(&first));
    assert_ne!(key(&first), key(&second));
    assert_eq!(key(&first)[0], 0x30, "it is a SEQUENCE");
}

#[test]
fn a_certificate_that_is_cut_or_changed_is_refused_or_read_without_a_panic() {
    let whole = der(&CertificatePlan::server(&["a.example", "10.1.2.3"]).unwrap());
    for length in 0..whole.len() {
        let read = PeerCertificate::from_der(&whole[..length]);
        assert!(matches!(read, Err(CredentialError::BadCertificate { .. })));
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x41;
        let _ = PeerCertificate::from_der(&changed);
    }
}
