// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Record 0.

use super::*;

fn open(aead: &dyn Aead, padded: u32, record: &[u8]) -> Result<InnerHeader, OpenError> {
    let mut body = b"before".to_vec();
    let opened = open_first(aead, 7, geometry(), padded, record, &mut body);
    check_untouched(&opened, &body);
    let by_carrier = opened_by_carrier(aead, 7, record);
    assert_taken_alike(by_carrier, padded, (&opened, &body));
    opened
}

fn check_untouched(opened: &Result<InnerHeader, OpenError>, body: &[u8]) {
    assert!(opened.is_ok() || body == b"before");
}

fn first_plaintext(true_length: u32, padded: u32) -> Vec<u8> {
    let mut inner = [0; 40];
    header(true_length, padded).emit(&mut inner);
    let extent = padded.min(64) as usize;
    let mut plaintext = inner.to_vec();
    plaintext.resize((40 + true_length as usize).min(extent), 0xAA);
    plaintext.push(0x17);
    plaintext.resize(extent + 1, 0);
    plaintext
}

#[test]
fn gives_the_header_and_appends_the_application_bytes() {
    let (aead, record) = forged(7, &first_plaintext(10, 60));
    let mut body = b"before".to_vec();
    let opened = open_first(&*aead, 7, geometry(), 60, &record, &mut body);
    assert_eq!(opened, Ok(header(10, 60)));
    assert_eq!(body, [&b"before"[..], &[0xAA; 10]].concat());
}

// SMT [5.2-2]
#[test]
fn another_claimed_length_never_yields_a_message() {
    let (aead, record) = forged(7, &first_plaintext(300, 340));
    assert!(open(&*aead, 340, &record).is_ok());
    for claimed in (0..1_000).chain([u32::MAX]).filter(|claimed| *claimed != 340) {
        let expected = match claimed {
            0..64 => OpenError::Form,
            _ => OpenError::PaddedLength { claimed, authentic: 340 },
        };
        assert_eq!(open(&*aead, claimed, &record), Err(expected), "{claimed}");
    }
}

// SMT [5.3-3]
#[test]
fn content_must_end_where_the_true_length_says() {
    let good = first_plaintext(10, 60);
    for (place, byte) in [(50, 0x16), (50, 0), (51, 1), (60, 0x17)] {
        let mut plaintext = good.clone();
        plaintext[place] = byte;
        let (aead, record) = forged(7, &plaintext);
        assert_eq!(open(&*aead, 60, &record), Err(OpenError::End));
    }
    let mut longer = good.clone();
    longer[3] = 11;
    let (aead, record) = forged(7, &longer);
    assert_eq!(open(&*aead, 60, &record), Err(OpenError::End));
}

#[test]
fn a_malformed_header_is_the_peers_fault() {
    for (place, byte) in [(8, 0), (8, 9), (3, 21), (0, 255)] {
        let mut plaintext = first_plaintext(10, 60);
        plaintext[place] = byte;
        let (aead, record) = forged(7, &plaintext);
        let error = open(&*aead, 60, &record).unwrap_err();
        assert!(matches!(error, OpenError::InnerHeader(_)), "{error}");
        assert!(error.is_authentic());
    }
}

// SMT [5.4-1]
#[test]
fn other_lengths_and_headers_are_refused_without_decrypting() {
    let (aead, record) = forged(7, &first_plaintext(10, 60));
    for length in 0..record.len() {
        assert_eq!(open(&*aead, 60, &record[..length]), Err(OpenError::Form));
    }
    for place in 0..5 {
        let mut record = record.clone();
        record[place] ^= 1;
        let error = open(&*aead, 60, &record).unwrap_err();
        assert_eq!((error, error.is_authentic()), (OpenError::Form, false));
    }
    assert_eq!(open(&*aead, 60, &[&record[..], &[0]].concat()), Err(OpenError::Form));
}

#[test]
fn any_flipped_bit_fails() {
    let (aead, record) = forged(7, &first_plaintext(10, 60));
    for bit in 5 * 8..record.len() * 8 {
        let mut record = record.clone();
        record[bit / 8] ^= 1 << (bit % 8);
        let error = open(&*aead, 60, &record).unwrap_err();
        assert_eq!((error, error.is_authentic()), (OpenError::Failed(OpenFailed::Forged), false));
    }
}
