// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All records of a message, in any order, by this side and by a carrier.

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
            open_rest(aead, sequence, &place, 464, record, &mut content, &mut scratch)
        };
        let aead = keys.data(0).unwrap();
        assert_eq!(open(aead, right, &records[1]), Ok(()));
        let failed = Err(OpenError::Failed(OpenFailed::Forged));
        assert_eq!(open(aead, right, &records[2]), failed, "another index");
        for bit in 0..64 {
            assert_eq!(open(aead, right ^ (1 << bit), &records[1]), failed, "number, {bit}");
        }
        assert_eq!(open(keys.control().unwrap(), right, &records[1]), failed, "another purpose");
        let server = keys_of(suite, Side::Server);
        assert_eq!(open(server.data(0).unwrap(), right, &records[1]), failed, "reflected");
        assert_eq!(open(server.control().unwrap(), right, &records[1]), failed);
        keys.update();
        assert_eq!(open(keys.data(1).unwrap(), right, &records[1]), failed, "another epoch");
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
        let opened = open_first(aead, number, geometry(), claimed, &records[0], &mut Vec::new());
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
    assert_eq!(open_all(keys.data(0).unwrap(), &message, &records, &[]), Ok(Vec::new()));
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
    let header = InnerHeader { kind: Kind::OneWay, ..header(50_000, 52_000) };
    let id = crate::IdAllocator::new(crate::testing::LAYOUT, Side::Server, 0).next(1).unwrap();
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
