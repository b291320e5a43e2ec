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
    (0..message.records())
        .map(|i| crate::testing::sealed(message, i, keys))
        .collect()
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
        open_rest(
            aead,
            sequence,
            &place,
            true_inner,
            record,
            content,
            &mut scratch,
        )?;
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

mod open_first {
    use super::*;

    fn open(aead: &dyn Aead, padded: u32, record: &[u8]) -> Result<InnerHeader, OpenError> {
        let mut body = b"before".to_vec();
        let opened = open_first(aead, 7, geometry(), padded, record, &mut body);
        check_untouched(&opened, &body);
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
        for claimed in (0..1_000)
            .chain([u32::MAX])
            .filter(|claimed| *claimed != 340)
        {
            let expected = match claimed {
                0..64 => OpenError::Form,
                _ => OpenError::PaddedLength {
                    claimed,
                    authentic: 340,
                },
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
        assert_eq!(
            open(&*aead, 60, &[&record[..], &[0]].concat()),
            Err(OpenError::Form)
        );
    }

    #[test]
    fn any_flipped_bit_fails() {
        let (aead, record) = forged(7, &first_plaintext(10, 60));
        for bit in 5 * 8..record.len() * 8 {
            let mut record = record.clone();
            record[bit / 8] ^= 1 << (bit % 8);
            let error = open(&*aead, 60, &record).unwrap_err();
            assert_eq!(
                (error, error.is_authentic()),
                (OpenError::Failed(OpenFailed::Forged), false)
            );
        }
    }
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
                open_rest(
                    &*aead,
                    9,
                    &place,
                    true_inner,
                    &record,
                    &mut content,
                    scratch,
                )
            };
            assert_eq!(open(&plaintext), Ok(()));
            for place in content_length..101 {
                let mut plaintext = plaintext.clone();
                plaintext[place] ^= 1;
                assert_eq!(
                    open(&plaintext),
                    Err(OpenError::End),
                    "{content_length} {place}"
                );
            }
        }
    }

    #[test]
    #[should_panic(expected = "record 0 is opened by open_first")]
    fn record_0_is_a_mistake() {
        let (aead, record) = forged(9, &[0x17; 65]);
        let place = geometry().record(400, 0);
        let _ = open_rest(
            &*aead,
            9,
            &place,
            400,
            &record,
            &mut [0; 64],
            &mut Vec::new(),
        );
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

mod message_as_a_whole {
    use super::*;

    /// Every key and number but the right one fails: another record of the message, another
    /// message, the other direction, the other purpose, another epoch, another suite.
    #[test]
    fn a_record_of_another_place_never_opens() {
        for suite in Suite::ALL {
            let mut keys = keys_of(suite, Side::Client);
            let mut message = message(1, &body(424), 0);
            let records = sealed(&mut message, &mut keys);
            let place = geometry().record(464, 1);
            let right = sequence(&message, 1);
            let open = |aead: &dyn Aead, sequence, record| {
                let (mut content, mut scratch) = ([0; 101], Vec::new());
                open_rest(
                    aead,
                    sequence,
                    &place,
                    464,
                    record,
                    &mut content,
                    &mut scratch,
                )
            };
            let aead = keys.data(0).unwrap();
            assert_eq!(open(aead, right, &records[1]), Ok(()));
            let failed = Err(OpenError::Failed(OpenFailed::Forged));
            assert_eq!(open(aead, right, &records[2]), failed, "another index");
            for bit in 0..64 {
                assert_eq!(
                    open(aead, right ^ (1 << bit), &records[1]),
                    failed,
                    "number, {bit}"
                );
            }
            assert_eq!(
                open(keys.control().unwrap(), right, &records[1]),
                failed,
                "another purpose"
            );
            let server = keys_of(suite, Side::Server);
            assert_eq!(
                open(server.data(0).unwrap(), right, &records[1]),
                failed,
                "reflected"
            );
            assert_eq!(open(server.control().unwrap(), right, &records[1]), failed);
            keys.update();
            assert_eq!(
                open(keys.data(1).unwrap(), right, &records[1]),
                failed,
                "another epoch"
            );
            for other in Suite::ALL.into_iter().filter(|other| *other != suite) {
                let other = keys_of(other, Side::Client);
                assert_eq!(open(other.data(0).unwrap(), right, &records[1]), failed);
            }
        }
    }

    /// Cut at any record boundary, the claimed length made to fit: record 0 refuses.
    // SMT [5.4-13]
    #[test]
    fn truncation_at_a_record_boundary_never_yields_a_message() {
        let mut keys = keys();
        let mut message = message(1, &body(424), 100);
        let records = sealed(&mut message, &mut keys);
        let aead = keys.data(0).unwrap();
        for cut in 1..records.len() as u32 {
            let claimed = geometry().record(message.padded_length(), cut).inner_start;
            assert_eq!(geometry().records(claimed), cut);
            let number = sequence(&message, 0);
            let opened = open_first(
                aead,
                number,
                geometry(),
                claimed,
                &records[0],
                &mut Vec::new(),
            );
            let authentic = message.padded_length();
            assert_eq!(opened, Err(OpenError::PaddedLength { claimed, authentic }));
        }
    }

    // SMT [5.3-1]
    #[test]
    fn an_empty_message_is_one_record() {
        let mut keys = keys();
        let mut message = message(0, b"", 0);
        let records = sealed(&mut message, &mut keys);
        assert_eq!((records.len(), records[0].len()), (1, 62));
        assert_eq!(
            open_all(keys.data(0).unwrap(), &message, &records, &[]),
            Ok(Vec::new())
        );
    }

    #[test]
    fn the_plaintext_version_keeps_every_rule_but_secrecy() {
        let secrets = SessionSecrets::plaintext();
        let suite = secrets.suite;
        let mut keys = SealKeys::new(secrets.client, suite, KeyLimits::default(), None);
        let mut message = message(0, &body(300), 20);
        let records = sealed(&mut message, &mut keys);
        assert_eq!(records[1][5..105], body(300)[24..124]);
        let opened = open_all(keys.data(0).unwrap(), &message, &records, &[1, 2, 3]);
        assert_eq!(opened, Ok(body(300)));
    }

    #[test]
    fn largest_records_work() {
        let geometry = Geometry::new(1_142, 16_384).unwrap();
        let bytes = body(50_000);
        let header = InnerHeader {
            kind: Kind::OneWay,
            ..header(50_000, 52_000)
        };
        let id = crate::IdAllocator::new(crate::testing::LAYOUT, Side::Server, 0)
            .next(1)
            .unwrap();
        let mut message =
            FrozenMessage::new(id, &header, bytes.clone().into(), geometry, index_bits()).unwrap();
        let mut keys = keys();
        let mut out = vec![0; 16_406];
        let mut scratch = Vec::new();
        let mut opened = Vec::new();
        for index in 0..message.records() {
            let length = message.seal(index, &mut keys, &mut out).unwrap();
            let (aead, record) = (keys.data(0).unwrap(), &out[..length]);
            let number = sequence(&message, index);
            if index == 0 {
                open_first(aead, number, geometry, 52_000, record, &mut opened).unwrap();
                continue;
            }
            let place = geometry.record(52_000, index);
            let start = opened.len();
            opened.resize(start + place.content(50_040), 0);
            let content = &mut opened[start..];
            open_rest(aead, number, &place, 50_040, record, content, &mut scratch).unwrap();
        }
        assert_eq!(opened, bytes);
        assert!(scratch.len() <= 16_385);
    }

    proptest! {
        #[test]
        fn records_open_in_any_order_to_the_bytes_that_were_sent(
            length in 0_usize..600, padding in 0_u32..300, seed: u64,
        ) {
            let mut keys = keys_of(Suite::ChaCha20Poly1305, Side::Client);
            let mut message = message(seed >> 30, &body(length), padding);
            let records = sealed(&mut message, &mut keys);
            let mut order: Vec<usize> = (1..records.len()).collect();
            order.sort_by_key(|index| (*index as u64 + 1).wrapping_mul(seed | 1));
            let opened = open_all(keys.data(0).unwrap(), &message, &records, &order);
            prop_assert_eq!(opened, Ok(body(length)));
        }

        #[test]
        fn random_bytes_never_panic(
            record in prop::collection::vec(any::<u8>(), 0..200), claimed in 0_u32..300,
            fits: bool,
        ) {
            let keys = keys();
            let aead = keys.data(0).unwrap();
            let mut record = record;
            let place = geometry().record(claimed, 0);
            if fits {
                record.resize(place.stream_len(), 7);
                record[..5].copy_from_slice(&record_header(place.extent));
            }
            let mut body = Vec::new();
            let opened = open_first(aead, 1, geometry(), claimed, &record, &mut body);
            prop_assert!(opened.is_err() && body.is_empty());
            let place = geometry().record(400, 1);
            let mut content = [0; 101];
            let opened =
                open_rest(aead, 1, &place, 400, &record, &mut content, &mut Vec::new());
            prop_assert!(opened.is_err());
        }
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
