// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records that are left to a carrier (`FrozenMessage::place`).

use std::collections::BTreeMap;
use std::sync::Mutex;

use bytes::Bytes;
use smt_carrier::{KeyStore, NoRoom};

use super::*;
use crate::aead::AeadProvider;
use crate::aws_lc::AwsLc;

/// The keys of a carrier, with room for `room` of them.
struct CarrierKeys {
    room: usize,
    installed: Mutex<BTreeMap<u64, KeyAndIv>>,
}

type KeyAndIv = (Vec<u8>, [u8; 12]);

impl CarrierKeys {
    fn new(room: usize) -> Arc<Self> {
        let installed = Mutex::default();
        Arc::new(Self { room, installed })
    }

    fn count(&self) -> usize {
        self.installed.lock().unwrap().len()
    }

    /// Seals a record that was left to the carrier, as a carrier does.
    fn seal(&self, key: KeyHandle, number: u64, record: &mut [u8]) {
        let (key, iv) = self.installed.lock().unwrap()[&key.0].clone();
        let aead = AwsLc.aead(Suite::Aes128Gcm, &key, iv).unwrap();
        let (header, rest) = record.split_at_mut(RECORD_HEADER_LEN);
        let (plaintext, tag) = rest.split_at_mut(rest.len() - TAG_LEN);
        tag.copy_from_slice(&aead.seal(number, header, plaintext).unwrap());
    }
}

impl KeyStore for CarrierKeys {
    fn install(&self, suite: u16, key: &[u8], iv: [u8; 12]) -> Result<KeyHandle, NoRoom> {
        let mut installed = self.installed.lock().unwrap();
        if installed.len() >= self.room || suite != Suite::Aes128Gcm.code() {
            return Err(NoRoom);
        }
        let handle = installed.keys().last().map_or(1, |last| last + 1);
        installed.insert(handle, (key.to_vec(), iv));
        Ok(KeyHandle(handle))
    }

    fn remove(&self, key: KeyHandle) {
        self.installed.lock().unwrap().remove(&key.0);
    }
}

/// The keys of `seal_keys`, which the carrier gets.
fn keys_at(carrier: &Arc<CarrierKeys>) -> SealKeys {
    let suite = Suite::Aes128Gcm;
    let crypto = CryptoProvider::aws_lc().with_key_store(Arc::<CarrierKeys>::clone(carrier));
    let secrets = secrets(suite, Side::Client);
    SealKeys::with_provider(secrets, suite, small_limits(), None, crypto)
}

/// Places a record, and lets the carrier seal it if it was left to the carrier. Tells whether it
/// was.
fn placed(
    message: &mut FrozenMessage,
    index: u32,
    keys: &mut SealKeys,
    carrier: &CarrierKeys,
) -> (Vec<u8>, bool) {
    let mut out = vec![0xEE; 200];
    match message.place(index, keys, &mut out).unwrap() {
        Placed::Sealed(length) => {
            out.truncate(length);
            (out, false)
        }
        Placed::Plain { length, key, number } => {
            out.truncate(length);
            carrier.seal(key, number, &mut out);
            (out, true)
        }
    }
}

#[test]
fn carrier_and_message_seal_the_same_bytes_in_any_order_and_count_once() {
    let carrier = CarrierKeys::new(1);
    let mut keys = keys_at(&carrier);
    let mut own_keys = seal_keys(Suite::Aes128Gcm);
    let mut twin = message(0, &body(333), 50);
    let mut message = message(0, &body(333), 50);
    let left = keys.records_left();
    for index in 0..message.records() {
        let expected = sealed(&mut twin, index, &mut own_keys);
        assert_eq!(placed(&mut message, index, &mut keys, &carrier), (expected.clone(), true));
        assert_eq!(sealed(&mut message, index, &mut keys), expected);
        assert_eq!(placed(&mut message, index, &mut keys, &carrier), (expected, true));
        assert_eq!(keys.records_left(), left - u64::from(index) - 1);
        assert_eq!(message.epoch_of(index), Some(0));
    }
}

#[test]
fn a_carrier_without_room_is_not_asked_to_seal() {
    let carrier = CarrierKeys::new(0);
    let mut keys = keys_at(&carrier);
    let mut message = message(0, &body(333), 0);
    assert!(!placed(&mut message, 0, &mut keys, &carrier).1);
}

#[test]
fn a_key_is_the_carriers_until_its_epoch_is_finished() {
    let carrier = CarrierKeys::new(2);
    let mut keys = keys_at(&carrier);
    let mut message = message(0, &body(333), 0);
    let (first, _) = placed(&mut message, 0, &mut keys, &carrier);
    keys.update();
    placed(&mut message, 1, &mut keys, &carrier);
    assert_eq!(carrier.count(), 2);
    assert_eq!(placed(&mut message, 0, &mut keys, &carrier), (first, true), "its own epoch's key");
    keys.finish_previous();
    assert_eq!(carrier.count(), 1);
    let id = message.id();
    let finished = SealError::EpochFinished { id, index: 0 };
    let again = message.place(0, &mut keys, &mut [0; 200]);
    assert_eq!(again, Err(finished));
    drop(keys);
    assert_eq!(carrier.count(), 0);
}

#[test]
fn a_session_at_rest_takes_its_key_back() {
    let carrier = CarrierKeys::new(1);
    let mut keys = keys_at(&carrier);
    let mut message = message(0, &body(333), 0);
    placed(&mut message, 0, &mut keys, &carrier);
    keys.hibernate();
    assert_eq!(carrier.count(), 0);
    assert!(placed(&mut message, 1, &mut keys, &carrier).1);
    assert_eq!(carrier.count(), 1);
}

#[test]
fn a_body_that_others_can_reach_is_copied_before_its_first_record_is_left_to_the_carrier() {
    let carrier = CarrierKeys::new(1);
    let mut keys = keys_at(&carrier);
    let mut message = message(0, &[], 0);
    let theirs = Bytes::from(body(333));
    message.header = header_of(&theirs.clone().into(), &header(333, 373));
    (message.body, message.padded_length) = (theirs.clone().into(), 373);
    sealed(&mut message, 0, &mut seal_keys(Suite::Aes128Gcm));
    let place = |message: &FrozenMessage| message.body.buffers().next().unwrap().as_ptr();
    assert_eq!(place(&message), theirs.as_ptr());
    placed(&mut message, 1, &mut keys, &carrier);
    assert_ne!(place(&message), theirs.as_ptr());
    assert!(message.body.buffers().all(Bytes::is_unique));
}

#[test]
fn a_record_that_was_sealed_from_memory_of_others_is_never_left_to_the_carrier() {
    let carrier = CarrierKeys::new(1);
    let mut keys = keys_at(&carrier);
    let mut message = message(0, &body(333), 0);
    let first = sealed(&mut message, 0, &mut seal_keys(Suite::Aes128Gcm));
    assert!(placed(&mut message, 1, &mut keys, &carrier).1);
    assert_eq!(
        placed(&mut message, 0, &mut keys, &carrier),
        (first, false),
        "its tag shows that the body is the same"
    );
}

#[test]
fn a_body_that_changed_before_it_was_copied_is_refused() {
    let carrier = CarrierKeys::new(1);
    let mut keys = keys_at(&carrier);
    let mut message = message(0, &body(333), 0);
    sealed(&mut message, 0, &mut seal_keys(Suite::Aes128Gcm));
    message.body = vec![0xEE; 333].into();
    placed(&mut message, 1, &mut keys, &carrier);
    let id = message.id();
    let changed = SealError::BodyChanged { id, index: 0 };
    let again = message.place(0, &mut keys, &mut [0; 200]);
    assert_eq!(again, Err(changed));
}

proptest! {
    /// Any mix of carrier and message, epochs and repetitions: each record has one ciphertext, the
    /// one that the message would have sealed alone.
    #[test]
    fn every_record_has_one_ciphertext_by_either_way(
        steps in prop::collection::vec((0_u32..8, any::<bool>(), 0_u8..8), 1..60),
    ) {
        let carrier = CarrierKeys::new(2);
        let mut keys = keys_at(&carrier);
        let mut message = message(0, &body(600), 0);
        let mut seen: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for (index, by_carrier, step) in steps {
            let index = index.min(message.sealed_records()).min(message.records() - 1);
            let mut out = vec![0; 200];
            let outcome = match by_carrier {
                true => message.place(index, &mut keys, &mut out),
                false => message.seal(index, &mut keys, &mut out).map(Placed::Sealed),
            };
            let length = match outcome {
                Ok(Placed::Sealed(length)) => length,
                Ok(Placed::Plain { length, key, number }) => {
                    carrier.seal(key, number, &mut out[..length]);
                    length
                }
                Err(error) => {
                    let is_over = matches!(error, SealError::EpochFinished { .. });
                    prop_assert!(is_over, "{error}");
                    continue;
                }
            };
            out.truncate(length);
            let first = seen.entry(index).or_insert_with(|| out.clone());
            prop_assert_eq!(&*first, &out);
            match step {
                0 if keys.can_update() => keys.update(),
                1 => keys.finish_previous(),
                _ => {}
            }
        }
    }
}
