// SPDX-License-Identifier: Apache-2.0 OR MIT
use alloc::boxed::Box;
use alloc::vec;

use proptest::prelude::*;
use smt_wire::Kind;

use super::*;
use crate::aead::AeadProvider;
use crate::aws_lc::AwsLc;
use crate::frozen_message::FrozenMessage;
use crate::key_limits::KeyLimits;
use crate::key_schedule::{SessionSecrets, Side};
use crate::seal_keys::SealKeys;
use crate::suite::Suite;
use crate::testing::{body, geometry, header, index_bits, message, secrets};

mod message_as_a_whole;
mod open_first;

fn keys_of(suite: Suite, side: Side) -> SealKeys {
    SealKeys::new(secrets(suite, side), suite, KeyLimits::default(), None)
}

fn keys() -> SealKeys {
    keys_of(Suite::Aes128Gcm, Side::Client)
}

fn sequence(message: &FrozenMessage, index: u32) -> u64 {
    index_bits().sequence(message.id(), index).unwrap()
}

fn sealed(message: &mut FrozenMessage, keys: &mut SealKeys) -> Vec<Vec<u8>> {
    (0..message.records()).map(|i| crate::testing::sealed(message, i, keys)).collect()
}

/// A record as a carrier hands it over that has opened it; `None` if it does not open.
fn opened_by_carrier(aead: &dyn Aead, sequence: u64, record: &[u8]) -> Option<Vec<u8>> {
    let mut opened = record.to_vec();
    let (header, rest) = opened.split_at_mut_checked(5)?;
    aead.open_in_place(sequence, header, rest).ok()?;
    Some(opened)
}

/// Asserts that record 0, if a carrier opens it, is taken or refused as it was when opened here.
fn assert_taken_alike(
    record: Option<Vec<u8>>,
    padded: u32,
    here: (&Result<InnerHeader, OpenError>, &[u8]),
) {
    let Some(record) = record else {
        return;
    };
    let mut body = b"before".to_vec();
    let taken = take_opened_first(geometry(), padded, &record, &mut body);
    assert_eq!((&taken, &body[..]), here);
}

/// Asserts that a further record was taken or refused as it was when opened here.
fn assert_rest_taken_alike(
    taken: (&Result<(), OpenError>, &[u8]),
    here: (&Result<(), OpenError>, &[u8]),
) {
    assert_eq!(taken.0, here.0);
    assert!(taken.0.is_err() || taken.1 == here.1);
}

/// Opens all records, those after the first in the order given, as a receiver would: into one
/// buffer, with the byte behind as spare where there is one.
fn open_all(
    aead: &dyn Aead,
    message: &FrozenMessage,
    records: &[Vec<u8>],
    order: &[usize],
) -> Result<Vec<u8>, OpenError> {
    let mut body = Vec::new();
    let padded = message.padded_length();
    let first = sequence(message, 0);
    let header = open_first(aead, first, geometry(), padded, &records[0], &mut body)?;
    let true_inner = 40 + header.true_length;
    body.resize(header.true_length as usize, 0);
    let mut scratch = Vec::new();
    for index in order {
        let place = geometry().record(padded, *index as u32);
        let start = place.inner_start.min(true_inner) as usize - 40;
        let end = (start + place.content(true_inner) + 1).min(body.len());
        let sequence = sequence(message, *index as u32);
        let record = &records[*index];
        let content = &mut body[start..end];
        let mut taken_content = content.to_vec();
        let opened = open_rest(aead, sequence, &place, true_inner, record, content, &mut scratch);
        if let Some(record) = opened_by_carrier(aead, sequence, record) {
            let taken = take_opened_rest(&place, true_inner, &record, &mut taken_content);
            assert_rest_taken_alike((&taken, &taken_content), (&opened, content));
        }
        opened?;
    }
    Ok(body)
}

/// A record of any plaintext, sealed by a peer that keeps no rule.
fn forged(sequence: u64, plaintext: &[u8]) -> (Box<dyn Aead>, Vec<u8>) {
    let aead = AwsLc.aead(Suite::Aes128Gcm, &[1; 16], [2; 12]).unwrap();
    let mut record = record_header(u16::try_from(plaintext.len() - 1).unwrap()).to_vec();
    let aad = record.clone();
    record.extend_from_slice(plaintext);
    let tag = aead.seal(sequence, &aad, &mut record[5..]).unwrap();
    record.extend_from_slice(&tag);
    (aead, record)
}

mod open_rest {
    use super::*;

    #[test]
    fn the_byte_behind_is_preserved_also_on_failure() {
        let mut keys = keys();
        let mut message = message(1, &body(224), 0);
        let records = sealed(&mut message, &mut keys);
        let place = geometry().record(264, 1);
        let aead = keys.data(0).unwrap();
        let mut content = [0xEE; 101];
        let mut scratch = Vec::new();
        let number = sequence(&message, 1);
        let mut bad = records[1].clone();
        bad[50] ^= 1;
        let failed = open_rest(aead, number, &place, 264, &bad, &mut content, &mut scratch);
        assert_eq!(failed, Err(OpenError::Failed(OpenFailed::Forged)));
        assert_eq!(content[100], 0xEE);
        let good = &records[1];
        open_rest(aead, number, &place, 264, good, &mut content, &mut scratch).unwrap();
        assert_eq!((&content[..100], content[100]), (&body(224)[24..124], 0xEE));
        assert_eq!(scratch.capacity(), 0, "no copy was needed");
        let mut exact = [0; 100];
        open_rest(aead, number, &place, 264, good, &mut exact, &mut scratch).unwrap();
        assert_eq!(exact, content[..100]);
    }

    // SMT [5.3-3]
    #[test]
    fn what_stands_behind_the_content_must_be_type_and_zeros() {
        let place = geometry().record(400, 1);
        for content_length in [0, 1, 50, 99, 100] {
            let true_inner = 64 + content_length as u32;
            let mut plaintext = vec![0xAA; content_length];
            plaintext.push(0x17);
            plaintext.resize(101, 0);
            let open = |plaintext: &[u8]| {
                let (aead, record) = forged(9, plaintext);
                let mut content = vec![0; content_length + 1];
                let scratch = &mut Vec::new();
                open_rest(&*aead, 9, &place, true_inner, &record, &mut content, scratch)
            };
            assert_eq!(open(&plaintext), Ok(()));
            for place in content_length..101 {
                let mut plaintext = plaintext.clone();
                plaintext[place] ^= 1;
                assert_eq!(open(&plaintext), Err(OpenError::End), "{content_length} {place}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "record 0 is opened by open_first")]
    fn record_0_is_a_mistake() {
        let (aead, record) = forged(9, &[0x17; 65]);
        let place = geometry().record(400, 0);
        let _ = open_rest(&*aead, 9, &place, 400, &record, &mut [0; 64], &mut Vec::new());
    }
}

mod past_the_end {
    use super::*;

    #[test]
    fn a_record_past_the_padded_length_is_never_opened() {
        let (aead, record) = forged(9, &[0x17]);
        let place = geometry().record(264, 3);
        let opened = open_rest(&*aead, 9, &place, 264, &record, &mut [0], &mut Vec::new());
        assert_eq!(opened, Err(OpenError::Form));
    }
}

mod unavailable {
    use alloc::sync::Arc;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::testing::Unsteady;

    #[test]
    fn a_record_that_could_not_be_tried_is_neither_forged_nor_authentic() {
        let library = Unsteady::default();
        let can_try = Arc::clone(&library.can_try);
        can_try.store(true, Ordering::Relaxed);
        let aead = library.aead(Suite::Aes128Gcm, &[1; 16], [2; 12]).unwrap();
        let (_, record) = forged(7, b"a\x17");
        can_try.store(false, Ordering::Relaxed);
        let place = geometry().record(1, 0);
        let sealed = Sealed::new(&place, &record);
        let error = sealed.and_then(|sealed| sealed.open(&*aead, 7, &mut [0; 2]));
        let error = error.unwrap_err();
        assert!(error.is_unavailable() && !error.is_authentic(), "{error}");
        assert!(!OpenError::Failed(OpenFailed::Forged).is_unavailable());
        assert!(!OpenError::Form.is_unavailable());
    }
}
