// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of endorsement keys, without a TPM.

use std::time::Duration;

use rcgen::{ExtendedKeyUsagePurpose, KeyPair, PKCS_ECDSA_P384_SHA384, date_time_ymd};
use smt_bootstrap::{Authorities, EndorsementError, UnixTime};

use crate::authority::{Authority, ECC, RSA};

/// In the year 2027.
fn now() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000))
}

#[test]
fn a_certificate_gives_the_endorsement_key_if_its_chain_leads_to_an_authority() {
    let root = Authority::new("root");
    let issuer = root.certify_authority("issuer");
    let mut authorities = root.alone();
    authorities.add_between(issuer.pem.as_bytes()).unwrap();
    let keys = [RSA, ECC].map(|key| {
        let certificate = issuer.certify(key);
        let key = authorities.verify(&certificate, now()).unwrap();
        // An authority in the middle may be the one that is trusted.
        assert_eq!(issuer.alone().verify(&certificate, now()).unwrap(), key);
        // A chain with a gap leads nowhere.
        let gap = root.alone().verify(&certificate, now());
        assert!(matches!(gap, Err(EndorsementError::Chain(_))), "{gap:?}");
        key
    });
    assert_ne!(keys[0].digest(), keys[1].digest());
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    // It has the same name, and another key.
    let [ours, other] = ["vendor", "vendor"].map(Authority::new);
    let refused = ours.alone().verify(&other.certify(RSA), now());
    assert!(matches!(refused, Err(EndorsementError::Chain(_))), "{refused:?}");
    let none = Authorities::default().verify(&ours.certify(RSA), now());
    assert!(matches!(none, Err(EndorsementError::Chain(_))), "{none:?}");
}

#[test]
fn a_certificate_that_is_not_of_its_date_is_refused() {
    let authority = Authority::new("vendor");
    let expired = authority.certify_with(ECC, |it| it.not_after = date_time_ymd(2026, 12, 31));
    let early = authority.certify_with(ECC, |it| it.not_before = date_time_ymd(2027, 12, 31));
    for certificate in [expired, early] {
        let refused = authority.alone().verify(&certificate, now());
        assert!(matches!(refused, Err(EndorsementError::Chain(_))), "{refused:?}");
    }
}

#[test]
fn a_certificate_for_something_else_is_refused() {
    let authority = Authority::new("vendor");
    for purposes in [vec![], vec![ExtendedKeyUsagePurpose::ServerAuth]] {
        let certificate = authority.certify_with(ECC, |it| it.extended_key_usages = purposes);
        let refused = authority.alone().verify(&certificate, now());
        assert!(matches!(refused, Err(EndorsementError::Purpose)), "{refused:?}");
    }
}

#[test]
fn an_endorsement_key_of_another_kind_is_refused() {
    let authority = Authority::new("vendor");
    let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap().public_key_pem();
    let refused = authority.alone().verify(&authority.certify(&key), now());
    assert!(matches!(refused, Err(EndorsementError::Kind)), "{refused:?}");
}

#[test]
fn an_altered_certificate_is_refused_at_each_byte() {
    let authority = Authority::new("vendor");
    let (authorities, certificate) = (authority.alone(), authority.certify(ECC));
    authorities.verify(&certificate, now()).unwrap();
    for place in 0..certificate.len() {
        let mut altered = certificate.clone();
        altered[place] ^= 1 << (place % 8);
        assert!(authorities.verify(&altered, now()).is_err(), "byte {place}");
        assert!(authorities.verify(&certificate[..place], now()).is_err(), "{place} bytes");
    }
    assert!(authorities.verify(&[&certificate[..], &[0]].concat(), now()).is_err());
}

#[test]
fn a_certificate_that_its_authority_has_withdrawn_is_refused() {
    let root = Authority::new("root");
    let issuer = root.certify_authority("issuer");
    let made = |serial: u64| issuer.certify_with(ECC, |it| it.serial_number = Some(serial.into()));
    let verify = |list: &str, serial| {
        let mut authorities = root.alone();
        authorities.add_between(issuer.pem.as_bytes()).unwrap();
        authorities.add_withdrawn(list.as_bytes()).unwrap();
        authorities.verify(&made(serial), now())
    };
    let list = issuer.withdraw(7, 2030);
    verify(&list, 8).unwrap();
    // The list of another authority says nothing of this one's certificates.
    verify(&root.withdraw(7, 2030), 7).unwrap();
    // A withdrawn one; one of whom nobody knows, for the list is of last year; a list that is not
    // the authority's own.
    let forged = Authority::new("issuer").withdraw(9, 2030);
    for refused in [verify(&list, 7), verify(&issuer.withdraw(7, 2026), 8), verify(&forged, 8)] {
        assert!(matches!(refused, Err(EndorsementError::Chain(_))), "{refused:?}");
    }
}

#[test]
fn a_file_without_certificates_gives_no_authorities() {
    for text in ["", "no PEM", ECC] {
        assert!(Authorities::of_pem(text.as_bytes()).is_err(), "{text}");
        assert!(Authorities::default().add_between(text.as_bytes()).is_err(), "{text}");
        assert!(Authorities::default().add_withdrawn(text.as_bytes()).is_err(), "{text}");
    }
}
