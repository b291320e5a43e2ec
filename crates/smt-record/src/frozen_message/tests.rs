// SPDX-License-Identifier: Apache-2.0 OR MIT
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::crypto_provider::CryptoProvider;
use crate::key_schedule::Side;
use crate::numbers::IdAllocator;
use crate::suite::Suite;
use crate::testing::{
    LAYOUT, NonceWatch, body, geometry, header, index_bits, message, seal_keys, sealed, secrets,
    small_limits,
};

/// The plaintext that SPEC §5.3 demands of a record, written independently of `compose`.
fn expected_plaintext(message: &FrozenMessage, index: u32) -> Vec<u8> {
    let mut inner = message.header.to_vec();
    message.body().buffers().for_each(|buffer| inner.extend_from_slice(buffer));
    let place = message.geometry.record(message.padded_length(), index);
    let from = (place.inner_start as usize).min(inner.len());
    let to = (from + usize::from(place.extent)).min(inner.len());
    let mut plaintext = inner[from..to].to_vec();
    plaintext.push(0x17);
    plaintext.resize(usize::from(place.extent) + 1, 0);
    plaintext
}

mod place;

mod new {
    use super::*;

    // SMT [5.1-3]
    #[test]
    fn a_message_with_too_many_records_is_refused_before_sealing() {
        let id = || IdAllocator::new(LAYOUT, Side::Client, 0).next(1).unwrap();
        let bits = IndexBits::new(8).unwrap();
        let padded_max = geometry().padded_max(8);
        let new = |padded| {
            let body = Body::from(vec![0; 10]);
            FrozenMessage::new(id(), &header(10, padded), body, geometry(), bits)
        };
        assert_eq!(new(padded_max).unwrap().records(), 256);
        let error = new(padded_max + 1).unwrap_err();
        assert_eq!(error, NumberError::Index { id: MessageId(0), index: 256, index_bits: 8 });
        assert!(error.to_string().contains("256"));
    }

    // SMT [5.1-2]
    #[test]
    fn an_id_that_does_not_fit_is_refused_before_sealing() {
        let layout = crate::IdLayout { id_bits: 56, stripes_log2: 0 };
        let id = IdAllocator::starting_at(layout, Side::Client, 0, 1 << 50).next(1 << 51).unwrap();
        let error = FrozenMessage::new(id, &header(0, 40), Body::new(), geometry(), index_bits());
        assert!(matches!(error, Err(NumberError::Id { id_bits: 48, .. })));
    }

    #[test]
    #[should_panic(expected = "the header is that of the body")]
    fn a_header_of_another_body_panics() {
        let id = IdAllocator::new(LAYOUT, Side::Client, 0).next(1).unwrap();
        let _ = FrozenMessage::new(id, &header(9, 60), Body::new(), geometry(), index_bits());
    }
}

mod debug {
    use super::*;

    #[test]
    fn shows_no_byte_of_the_message() {
        let text = alloc::format!("{:?}", message(3, &[0xEE; 200], 0));
        let expected = "FrozenMessage { id: MessageId(6), padded_length: 240, records: 3, \
                        sealed: 0, .. }";
        assert_eq!(text, expected);
    }
}

mod seal {
    use super::*;

    #[test]
    fn is_refused_out_of_order_past_the_end_and_into_a_short_buffer() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        let mut message = message(0, &body(200), 0);
        let id = message.id();
        let mut out = [0xEE; 200];
        assert_eq!(
            message.seal(1, &mut keys, &mut out),
            Err(SealError::OutOfOrder { id, index: 1, expected: 0 })
        );
        assert_eq!(
            message.seal(3, &mut keys, &mut out),
            Err(SealError::NoSuchRecord { id, index: 3, records: 3 })
        );
        assert_eq!(
            message.seal(0, &mut keys, &mut out[..85]),
            Err(SealError::OutTooShort { needed: 86, available: 85 })
        );
        assert_eq!((message.sealed_records(), message.first_epoch()), (0, None));
        assert_eq!(out, [0xEE; 200]);
        assert_eq!(message.seal(0, &mut keys, &mut out), Ok(86));
        assert_eq!(out[86..], [0xEE; 114]);
    }

    // SMT [5.5-2], [5.5-1]
    #[test]
    fn again_gives_the_same_bytes_and_counts_nothing() {
        for suite in Suite::ALL {
            let mut keys = seal_keys(suite);
            let mut message = message(3, &body(200), 30);
            let first: Vec<_> =
                (0..message.records()).map(|i| sealed(&mut message, i, &mut keys)).collect();
            for _ in 0..20 {
                for (index, record) in (0..).zip(&first) {
                    assert_eq!(&sealed(&mut message, index, &mut keys), record);
                }
            }
            assert!(!keys.wants_update(), "3 records of 12");
        }
    }

    /// However the body is cut, within records and where they begin and end.
    #[test]
    fn a_chain_of_buffers_is_sealed_as_its_bytes_put_together_are() {
        let whole = body(500);
        for suite in Suite::ALL {
            for cuts in [vec![1], vec![24], vec![24, 124, 224], vec![123, 124, 125], vec![0, 499]] {
                let mut parts = Vec::new();
                let mut rest = bytes::Bytes::from(whole.clone());
                for (at, cut) in cuts.iter().enumerate() {
                    parts.push(rest.split_to(cut - if at == 0 { 0 } else { cuts[at - 1] }));
                }
                parts.push(rest);
                let (mut one, mut chain) = (message(3, &whole, 30), message(3, &whole, 30));
                chain.body = parts.into();
                let (mut keys, mut chain_keys) = (seal_keys(suite), seal_keys(suite));
                for index in 0..one.records() {
                    let expected = sealed(&mut one, index, &mut keys);
                    assert_eq!(sealed(&mut chain, index, &mut chain_keys), expected, "{cuts:?}");
                }
            }
        }
    }

    /// Stands for a body in memory that another owner has written to.
    fn change_body(message: &mut FrozenMessage, place: usize) {
        let whole = message.body.contiguous(0, message.body.len());
        let mut changed = whole.expect("one buffer").to_vec();
        changed[place] ^= 1;
        message.body = changed.into();
    }

    // SMT [5.5-3]
    #[test]
    fn a_record_whose_bytes_have_changed_is_not_sealed_again() {
        for (suite, padding) in Suite::ALL.into_iter().flat_map(|suite| [(suite, 0), (suite, 30)]) {
            let mut keys = seal_keys(suite);
            let mut message = message(3, &body(200), padding);
            let first: Vec<_> =
                (0..message.records()).map(|i| sealed(&mut message, i, &mut keys)).collect();
            // Byte 0 is in record 0, and the last one in the last record with any.
            for place in [0, 199] {
                change_body(&mut message, place);
                let mut refused = 0;
                for (index, before) in (0..).zip(&first) {
                    let mut out = [0xEE; 200];
                    match message.seal(index, &mut keys, &mut out) {
                        Ok(length) => assert_eq!(&out[..length], before),
                        Err(error) => {
                            let id = message.id();
                            assert_eq!(error, SealError::BodyChanged { id, index });
                            assert_eq!(out[..before.len()], vec![0; before.len()]);
                            refused += 1;
                        }
                    }
                }
                assert_eq!(refused, 1, "byte {place}");
                change_body(&mut message, place);
            }
            assert_eq!(sealed(&mut message, 0, &mut keys), first[0]);
        }
    }

    #[test]
    fn a_message_of_one_record_keeps_its_tag_without_allocating() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        let mut message = message(0, b"short", 0);
        sealed(&mut message, 0, &mut keys);
        assert_eq!(message.records(), 1);
        assert_eq!(message.tags.others.capacity(), 0);
    }

    // SMT [7.3-3]
    #[test]
    fn a_record_keeps_its_epoch_and_later_ones_use_the_new_key() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        let mut message = message(3, &body(300), 0);
        let old: Vec<_> = (0..2).map(|i| sealed(&mut message, i, &mut keys)).collect();
        keys.update();
        let new = sealed(&mut message, 2, &mut keys);
        let epochs: Vec<_> = (0..4).map(|i| message.epoch_of(i)).collect();
        assert_eq!(epochs, [Some(0), Some(0), Some(1), None]);
        assert_eq!(message.first_epoch(), Some(0));
        assert_eq!(sealed(&mut message, 1, &mut keys), old[1]);
        assert_eq!(sealed(&mut message, 2, &mut keys), new);
        assert_ne!(keys.epoch(), 0);
        keys.finish_previous();
        let mut out = [0; 200];
        assert_eq!(
            message.seal(0, &mut keys, &mut out),
            Err(SealError::EpochFinished { id: message.id(), index: 0 })
        );
        assert_eq!(sealed(&mut message, 2, &mut keys), new);
    }

    #[test]
    fn a_message_may_outlive_several_epochs() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        let mut message = message(3, &body(400), 0);
        for index in 0..4 {
            let record = sealed(&mut message, index, &mut keys);
            assert_eq!(message.epoch_of(index), Some(index));
            keys.update();
            assert_eq!(sealed(&mut message, index, &mut keys), record);
            keys.finish_previous();
        }
        let epochs: Vec<_> = (0..4).map(|i| message.epoch_of(i)).collect();
        assert_eq!(epochs, [None, None, Some(2), Some(3)]);
    }

    #[test]
    fn a_key_that_is_used_up_stops_new_records_but_not_repetitions() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        let mut message = message(3, &body(2_000), 0);
        let records: Vec<_> = (0..16).map(|i| sealed(&mut message, i, &mut keys)).collect();
        let mut out = [0; 200];
        let used_up = SealError::KeyUsedUp(KeyUsedUp { epoch: 0, sealed: 16 });
        assert_eq!(message.seal(16, &mut keys, &mut out), Err(used_up));
        assert_eq!(message.sealed_records(), 16);
        assert_eq!(sealed(&mut message, 15, &mut keys), records[15]);
        keys.update();
        sealed(&mut message, 16, &mut keys);
        assert_eq!(message.epoch_of(16), Some(1));
    }

    proptest! {
        // SMT [5.3-2]
        #[test]
        fn every_record_has_the_plaintext_of_the_specification(
            length in 0_usize..700, padding in 0_u32..400, counter in 0_u64..1 << 40,
        ) {
            let suite = Suite::ChaCha20Poly1305;
            let limits = crate::KeyLimits::default();
            let mut keys = SealKeys::new(secrets(suite, Side::Client), suite, limits, None);
            let mut message = message(counter, &body(length), padding);
            let mut stream = 0;
            for index in 0..message.records() {
                let mut record = sealed(&mut message, index, &mut keys);
                stream += record.len();
                let expected = expected_plaintext(&message, index);
                let (aad, rest) = record.split_at_mut(5);
                let length = u16::try_from(expected.len() + 16).unwrap().to_be_bytes();
                prop_assert_eq!(&*aad, &[0x17, 3, 3, length[0], length[1]][..]);
                let sequence = message.id().0 << 16 | u64::from(index);
                let aead = keys.data(0).unwrap();
                prop_assert_eq!(aead.open_in_place(sequence, aad, rest), Ok(()));
                prop_assert_eq!(&rest[..rest.len() - 16], &expected[..]);
            }
            prop_assert_eq!(stream, message.stream_length() as usize);
        }

        /// Any order of first sealings, repetitions, updates and finished epochs of many messages:
        /// no key ever meets a number with two plaintexts.
        #[test]
        fn no_nonce_is_reused(steps in prop::collection::vec((0_usize..5, 0_u32..6, 0_u8..8), 1..200)) {
            let watch = Arc::new(NonceWatch::default());
            let suite = Suite::Aes128Gcm;
            let (secrets, limits) = (secrets(suite, Side::Client), small_limits());
            let crypto = CryptoProvider::aws_lc().with_aead(Arc::clone(&watch) as _);
            let mut keys = SealKeys::with_provider(secrets, suite, limits, None, crypto);
            let mut ids = IdAllocator::new(LAYOUT, Side::Client, 0);
            let mut messages: Vec<_> = (0..5_u8)
                .map(|i| {
                    let body = Body::from(vec![i; 400]);
                    let id = ids.next(10).unwrap();
                    FrozenMessage::new(id, &header(400, 440), body, geometry(), index_bits())
                        .unwrap()
                })
                .collect();
            let mut out = [0; 200];
            let mut sealed_first = 0;
            for (which, index, step) in steps {
                let before = messages[which].sealed_records();
                let result = messages[which].seal(index, &mut keys, &mut out);
                let after = messages[which].sealed_records();
                prop_assert!(result.is_ok() || before == after);
                sealed_first += (after - before) as usize;
                if step == 0 && keys.can_update() {
                    keys.update();
                } else if step == 1 {
                    keys.finish_previous();
                }
            }
            prop_assert_eq!(watch.numbers(), sealed_first);
            prop_assert!(watch.keys() <= keys.epoch() as usize + 1);
        }
    }
}

mod unavailable {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::testing::Unsteady;

    #[test]
    fn a_record_that_could_not_be_sealed_is_not_counted_and_is_sealed_later() {
        let library = Unsteady::default();
        let can_try = Arc::clone(&library.can_try);
        let suite = Suite::Aes128Gcm;
        let crypto = CryptoProvider::aws_lc().with_aead(Arc::new(library));
        let own = secrets(suite, Side::Client);
        let mut keys = SealKeys::with_provider(own, suite, small_limits(), None, crypto);
        let mut message = message(0, &body(300), 0);
        let mut expected = seal_keys(suite);
        let mut twin = super::message(0, &body(300), 0);
        let left = keys.records_left();
        for index in 0..message.records() {
            // First its cipher cannot be made, then it cannot seal.
            can_try.store(false, Ordering::Relaxed);
            let mut out = [0xEE; 200];
            let sealing = message.seal(index, &mut keys, &mut out);
            assert_eq!(sealing, Err(SealError::Unavailable(Unavailable)));
            assert_eq!((message.sealed_records(), message.epoch_of(index)), (index, None));
            assert_eq!(keys.records_left(), left - u64::from(index));
            can_try.store(true, Ordering::Relaxed);
            for _ in 0..2 {
                let expected = sealed(&mut twin, index, &mut expected);
                assert_eq!(sealed(&mut message, index, &mut keys), expected);
            }
        }
    }
}
