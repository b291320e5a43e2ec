// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates of endorsement keys, without a TPM.

use std::time::Duration;

use rcgen::{ExtendedKeyUsagePurpose, KeyPair, PKCS_ECDSA_P384_SHA384, date_time_ymd};
use smt_bootstrap::{
    Authorities, BootstrapError, EndorsementError, EndorsementKey, UnixTime, endorsement_kind,
};
use smt_device::tpm::EndorsementKind;

use crate::authority::{Authority, ECC, ISSUER_SERIAL, RSA};

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
    ours.alone().verify(&ours.certify(RSA), now()).unwrap();
    let refused = ours.alone().verify(&other.certify(RSA), now());
    assert!(matches!(refused, Err(EndorsementError::Chain(_))), "{refused:?}");
    let none = Authorities::default().verify(&ours.certify(RSA), now());
    assert!(matches!(none, Err(EndorsementError::Chain(_))), "{none:?}");
}

#[test]
fn a_certificate_that_is_not_of_its_date_is_refused() {
    let authority = Authority::new("vendor");
    let dated = |begin, end| {
        let certificate = authority.certify_with(ECC, |it| {
            it.not_before = date_time_ymd(begin, 12, 31);
            it.not_after = date_time_ymd(end, 12, 31);
        });
        authority.alone().verify(&certificate, now())
    };
    dated(2026, 2027).unwrap();
    for refused in [dated(2025, 2026), dated(2027, 2028)] {
        assert!(matches!(refused, Err(EndorsementError::Date(_))), "{refused:?}");
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

/// A certificate with this number.
fn numbered(authority: &Authority, serial: u64) -> Vec<u8> {
    authority.certify_with(ECC, |it| it.serial_number = Some(serial.into()))
}

/// The judgement of a certificate with such a number, by an authority with these lists.
fn with_lists(
    authority: &Authority,
    lists: &[&str],
    serial: u64,
) -> Result<EndorsementKey, EndorsementError> {
    let mut authorities = authority.alone();
    for list in lists {
        authorities.add_withdrawn(list.as_bytes()).unwrap();
    }
    authorities.verify(&numbered(authority, serial), now())
}

#[test]
fn a_certificate_that_its_authority_has_withdrawn_is_refused() {
    let authority = Authority::new("vendor");
    let list = authority.withdraw(7, 2030);
    with_lists(&authority, &[&list], 8).unwrap();
    let refused = with_lists(&authority, &[&list], 7);
    assert!(matches!(refused, Err(EndorsementError::Withdrawn)), "{refused:?}");
}

#[test]
fn a_certificate_below_an_authority_that_was_withdrawn_is_refused() {
    let root = Authority::new("root");
    let issuer = root.certify_authority("issuer");
    let verify = |serial: u64| {
        let mut authorities = root.alone();
        authorities.add_between(issuer.pem.as_bytes()).unwrap();
        authorities.add_withdrawn(root.withdraw(serial, 2030).as_bytes()).unwrap();
        authorities.verify(&numbered(&issuer, 7), now())
    };
    // A list of another authority than the certificate's own says nothing of its number.
    verify(7).unwrap();
    let refused = verify(ISSUER_SERIAL);
    assert!(matches!(refused, Err(EndorsementError::Withdrawn)), "{refused:?}");
}

#[test]
fn a_certificate_that_any_list_of_its_authority_names_is_refused() {
    let authority = Authority::new("vendor");
    let (one, other) = (authority.withdraw(7, 2030), authority.withdraw(9, 2030));
    for lists in [[&one[..], &other], [&other, &one]] {
        with_lists(&authority, &lists, 8).unwrap();
        for serial in [7, 9] {
            let refused = with_lists(&authority, &lists, serial);
            assert!(matches!(refused, Err(EndorsementError::Withdrawn)), "{refused:?}");
        }
    }
    // Both in one file.
    let both = [one, other].concat();
    let refused = with_lists(&authority, &[&both], 9);
    assert!(matches!(refused, Err(EndorsementError::Withdrawn)), "{refused:?}");
}

#[test]
fn an_old_list_is_refused_also_beside_a_newer_one() {
    let authority = Authority::new("vendor");
    let (old, new) = (authority.withdraw(7, 2026), authority.withdraw(7, 2030));
    with_lists(&authority, &[&new], 8).unwrap();
    for lists in [&[&old[..]][..], &[&old, &new], &[&new, &old]] {
        let refused = with_lists(&authority, lists, 8);
        assert!(matches!(refused, Err(EndorsementError::OldList)), "{refused:?}");
    }
}

#[test]
fn a_list_that_another_key_of_the_authoritys_name_has_signed_is_refused() {
    let [ours, other] = ["vendor", "vendor"].map(Authority::new);
    let lists = [&ours, &other].map(|it| it.withdraw(9, 2030));
    with_lists(&ours, &[&lists[0]], 8).unwrap();
    // Neither list hides behind the other one, for the one that is taken first is not chosen.
    for lists in [&[&lists[1][..]][..], &[&lists[0], &lists[1]], &[&lists[1], &lists[0]]] {
        let refused = with_lists(&ours, lists, 8);
        assert!(matches!(refused, Err(EndorsementError::ForeignList(_))), "{refused:?}");
    }
}

#[test]
fn a_bad_list_is_told_as_the_callers_fault_and_a_bad_certificate_as_the_tpms() {
    let authority = Authority::new("vendor");
    let (old, new) = (authority.withdraw(7, 2026), authority.withdraw(7, 2030));
    let foreign = Authority::new("vendor").withdraw(7, 2030);
    let told = |lists: &[&str], serial| {
        BootstrapError::from(with_lists(&authority, lists, serial).unwrap_err()).to_string()
    };
    for list in [old, foreign] {
        assert!(told(&[&list], 8).starts_with("your request: "), "{}", told(&[&list], 8));
    }
    assert!(told(&[&new], 7).starts_with("the device's TPM: "), "{}", told(&[&new], 7));
}

#[test]
fn authorities_of_several_files_are_all_taken_and_a_damaged_file_adds_none() {
    let [one, other] = ["one", "other"].map(Authority::new);
    let mut authorities = one.alone();
    let damaged = format!("{}{}", other.pem, other.pem.replace("MII", "MI!"));
    authorities.add_roots(damaged.as_bytes()).unwrap_err();
    let refused = authorities.verify(&other.certify(ECC), now());
    assert!(matches!(refused, Err(EndorsementError::Chain(_))), "{refused:?}");
    authorities.add_roots(other.pem.as_bytes()).unwrap();
    for authority in [&one, &other] {
        authorities.verify(&authority.certify(ECC), now()).unwrap();
    }
}

#[test]
fn the_kind_of_a_certificate_with_bytes_behind_it_is_not_told() {
    let authority = Authority::new("vendor");
    for (key, kind) in [(RSA, EndorsementKind::Rsa), (ECC, EndorsementKind::Ecc)] {
        let certificate = authority.certify(key);
        assert_eq!(endorsement_kind(&certificate).unwrap(), kind);
        let padded = endorsement_kind(&[&certificate[..], &[0xff; 50]].concat());
        assert!(matches!(padded, Err(EndorsementError::Malformed)), "{padded:?}");
    }
}

#[test]
fn a_file_without_certificates_gives_no_authorities() {
    for text in ["", "no PEM", ECC] {
        assert!(Authorities::default().add_roots(text.as_bytes()).is_err(), "{text}");
        assert!(Authorities::default().add_between(text.as_bytes()).is_err(), "{text}");
        assert!(Authorities::default().add_withdrawn(text.as_bytes()).is_err(), "{text}");
    }
}
