// SPDX-License-Identifier: Apache-2.0 OR MIT
use alloc::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::aead::{AeadProvider, Unavailable};
use crate::aws_lc::AwsLc;
use crate::key_schedule::Side;
use crate::testing::{open_keys, secrets, small_limits};

fn epoch_of(keys: &mut OpenKeys, byte: u8) -> Option<u32> {
    keys.data(byte).ok().map(|(epoch, _)| epoch)
}

/// At epoch `epoch`, everything before it finished.
fn keys_at(epoch: u32) -> OpenKeys {
    let mut keys = open_keys(Suite::Aes128Gcm);
    for next in 1..=epoch {
        assert_eq!(epoch_of(&mut keys, next.to_le_bytes()[0]), Some(next));
        assert!(keys.opened(next));
        assert!(keys.finish(next - 1));
    }
    keys
}

/// Tags of nothing: they tell keys apart.
fn tags(keys: &mut OpenKeys, byte: u8) -> [[u8; 16]; 2] {
    let data = keys.data(byte).unwrap().1.seal(1, b"", &mut []).unwrap();
    let control = keys.control(byte).unwrap().1.seal(1, b"", &mut []).unwrap();
    [data, control]
}

mod leave_records_to_packets {
    use super::*;

    // SMT [15.4-6]
    #[test]
    fn records_have_no_seal_in_any_epoch_and_control_packets_have_theirs() {
        let mut keys = open_keys(Suite::Aes128Gcm).leave_records_to_packets();
        let [data, control] = tags(&mut keys, 0);
        assert_eq!(data, [0; 16]);
        assert_ne!(control, [0; 16]);
        let next = tags(&mut keys, 1);
        keys.opened(1);
        let [data, control] = tags(&mut keys, 0);
        assert_eq!((next[0], data), ([0; 16], [0; 16]));
        assert_ne!((next[1], control), ([0; 16], [0; 16]));
    }
}

mod hibernate {
    use super::*;

    #[test]
    fn changes_no_key_of_this_epoch_nor_of_the_one_before() {
        let mut keys = open_keys(Suite::Aes128Gcm);
        let (first, second) = (tags(&mut keys, 0), tags(&mut keys, 1));
        assert!(keys.has_ciphers());
        keys.hibernate();
        assert!(!keys.has_ciphers());
        assert_eq!(tags(&mut keys, 0), first);
        keys.hibernate();
        keys.opened(1);
        assert_eq!((tags(&mut keys, 0), tags(&mut keys, 1)), (first, second));
        keys.hibernate();
        assert_eq!((tags(&mut keys, 0), tags(&mut keys, 1)), (first, second));
    }
}

mod drop_ciphers {
    use super::*;

    #[test]
    fn gives_tables_up_and_changes_no_key() {
        let mut keys = open_keys(Suite::Aes128Gcm);
        assert!(!keys.has_ciphers());
        let (first, second) = (tags(&mut keys, 0), tags(&mut keys, 1));
        assert!(keys.has_ciphers());
        keys.drop_ciphers();
        assert!(!keys.has_ciphers(), "nor are the next epoch's");
        assert_eq!(tags(&mut keys, 0), first);
        keys.drop_ciphers();
        keys.opened(1);
        assert_eq!((tags(&mut keys, 0), tags(&mut keys, 1)), (first, second));
        keys.drop_ciphers();
        assert!(!keys.has_ciphers(), "nor are the previous epoch's");
        assert_eq!((tags(&mut keys, 0), tags(&mut keys, 1)), (first, second));
    }
}

mod data {
    use super::*;

    #[test]
    fn a_byte_is_the_current_or_next_epoch_or_nothing() {
        let mut keys = keys_at(5);
        for byte in 0..=255 {
            let expected = [5, 6].contains(&byte).then_some(u32::from(byte));
            assert_eq!(epoch_of(&mut keys, byte), expected);
        }
    }

    #[test]
    fn previous_is_open_until_done_and_there_is_no_next_meanwhile() {
        let mut keys = open_keys(Suite::Aes128Gcm);
        assert_eq!(epoch_of(&mut keys, 1), Some(1));
        keys.opened(1);
        assert_eq!((keys.epoch(), keys.previous()), (1, Some(0)));
        assert_eq!(epoch_of(&mut keys, 0), Some(0));
        assert_eq!(epoch_of(&mut keys, 2), None);
        keys.finish(0);
        assert_eq!(epoch_of(&mut keys, 0), None);
        assert_eq!(epoch_of(&mut keys, 2), Some(2));
    }

    #[test]
    fn bytes_wrap_and_epochs_do_not() {
        let mut keys = keys_at(255);
        assert_eq!(epoch_of(&mut keys, 0), Some(256));
        assert!(keys.opened(256));
        assert_eq!(epoch_of(&mut keys, 255), Some(255));
        keys.finish(255);
        assert_eq!(epoch_of(&mut keys, 1), Some(257));
    }

    // SMT [7.3-12]
    #[test]
    fn claims_derive_the_next_keys_once() {
        struct Counting(AtomicUsize);
        impl AeadProvider for Counting {
            fn aead(
                &self,
                suite: Suite,
                key: &[u8],
                iv: [u8; 12],
            ) -> Result<Box<dyn Aead>, Unavailable> {
                self.0.fetch_add(1, Ordering::Relaxed);
                AwsLc.aead(suite, key, iv)
            }
        }
        let counting = Arc::new(Counting(AtomicUsize::new(0)));
        let crypto = CryptoProvider::aws_lc().with_aead(Arc::clone(&counting) as _);
        let suite = Suite::Aes128Gcm;
        let secrets = secrets(suite, Side::Client);
        let mut keys = OpenKeys::with_provider(secrets, suite, small_limits(), None, crypto);
        for byte in (0..=255).cycle().take(5_000) {
            let _ = epoch_of(&mut keys, byte);
            let _ = keys.control(byte);
            keys.failed();
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 4, "data and control of epochs 0 and 1");
    }
}

mod opened {
    use super::*;

    // SMT [5.4-2]
    #[test]
    fn a_claimed_epoch_changes_nothing_until_something_opens() {
        let mut keys = open_keys(Suite::Aes128Gcm);
        let _ = epoch_of(&mut keys, 1);
        keys.failed();
        assert_eq!((keys.epoch(), keys.previous()), (0, None));
        assert!(!keys.opened(0));
        assert_eq!(keys.epoch(), 0);
        assert!(keys.opened(1));
        assert!(!keys.opened(1));
        assert!(!keys.opened(0));
        assert_eq!((keys.epoch(), keys.previous()), (1, Some(0)));
    }

    #[test]
    fn an_epoch_that_was_not_tried_cannot_begin() {
        let mut keys = open_keys(Suite::Aes128Gcm);
        assert!(!keys.opened(1) && !keys.opened(2));
        assert_eq!(keys.epoch(), 0);
    }
}

mod take_update_request {
    use super::*;

    fn fail(keys: &mut OpenKeys, byte: u8, times: usize) {
        for _ in 0..times {
            let _ = epoch_of(keys, byte);
            keys.failed();
        }
    }

    #[test]
    fn asks_once_per_epoch_at_the_limit() {
        let mut keys = open_keys(Suite::Aes128Gcm);
        fail(&mut keys, 0, 19);
        assert_eq!(keys.take_update_request(), None);
        fail(&mut keys, 0, 1);
        assert_eq!(keys.take_update_request(), Some(0));
        assert_eq!(keys.take_update_request(), None);
        let _ = epoch_of(&mut keys, 1);
        keys.opened(1);
        fail(&mut keys, 0, 100);
        assert_eq!(keys.take_update_request(), None, "failures of the old key");
        fail(&mut keys, 1, 20);
        assert_eq!(keys.take_update_request(), Some(1));
    }

    #[test]
    fn failures_before_an_epoch_began_count_for_it() {
        let mut keys = open_keys(Suite::Aes128Gcm);
        fail(&mut keys, 1, 20);
        // The peer is asked at once: the next key may reach its limit before its sender moves
        // there.
        assert_eq!(keys.take_update_request(), Some(0));
        assert_eq!(keys.take_update_request(), None);
        let _ = epoch_of(&mut keys, 1);
        keys.opened(1);
        assert_eq!(keys.take_update_request(), Some(1));
    }

    // SMT [7.3-8]
    #[test]
    fn a_key_at_its_integrity_limit_opens_nothing_more() {
        let mut keys = open_keys(Suite::ChaCha20Poly1305);
        assert_eq!(keys.integrity_limit, 1 << 36);
        keys.integrity_limit = 30;
        fail(&mut keys, 0, 29);
        assert_eq!(epoch_of(&mut keys, 0), Some(0));
        fail(&mut keys, 0, 1);
        assert_eq!(epoch_of(&mut keys, 0), None);
        assert!(keys.control(0).is_err());
        assert_eq!(epoch_of(&mut keys, 1), Some(1), "the peer's update is still heard");
    }

    #[test]
    fn the_keys_of_the_next_and_the_previous_epoch_have_integrity_limits_of_their_own() {
        let mut keys = open_keys(Suite::ChaCha20Poly1305);
        keys.integrity_limit = 30;
        fail(&mut keys, 1, 29);
        assert_eq!(epoch_of(&mut keys, 1), Some(1));
        fail(&mut keys, 1, 1);
        assert_eq!(epoch_of(&mut keys, 1), None, "the next epoch's");
        assert!(keys.control(1).is_err());
        assert_eq!(epoch_of(&mut keys, 0), Some(0));

        let mut keys = open_keys(Suite::ChaCha20Poly1305);
        keys.integrity_limit = 30;
        let _ = epoch_of(&mut keys, 1);
        keys.opened(1);
        fail(&mut keys, 0, 29);
        assert_eq!(epoch_of(&mut keys, 0), Some(0));
        fail(&mut keys, 0, 1);
        assert_eq!(epoch_of(&mut keys, 0), None, "the previous epoch's");
        assert!(keys.control(0).is_err());
        assert_eq!(epoch_of(&mut keys, 1), Some(1));
    }
}

mod finish {
    use super::*;

    // SMT [7.3-14]
    #[test]
    fn drops_what_is_over_and_answers_repetitions() {
        let mut keys = keys_at(3);
        let _ = epoch_of(&mut keys, 4);
        keys.opened(4);
        assert!(keys.finish(2), "an epoch long gone");
        assert_eq!(keys.previous(), Some(3));
        assert!(keys.finish(3));
        assert_eq!(keys.previous(), None);
        assert!(keys.finish(3));
    }

    // SMT [7.3-16]
    #[test]
    fn an_epoch_that_is_not_over_cannot_be_done() {
        let mut keys = keys_at(3);
        let _ = epoch_of(&mut keys, 4);
        keys.opened(4);
        for epoch in [4, 5, u32::MAX] {
            assert!(!keys.finish(epoch));
            assert_eq!(keys.previous(), Some(3));
        }
        assert_eq!(epoch_of(&mut keys, 4), Some(4));
    }
}

mod open_at_carrier {
    use super::*;
    use alloc::vec::Vec;
    use smt_carrier::{KeyStore, NoRoom, ReceivingKey};
    use std::sync::Mutex;

    /// A carrier that takes receiving keys, as many as there is room for.
    #[derive(Default)]
    struct Opener {
        room: usize,
        next: Mutex<u64>,
        installed: Mutex<Vec<(KeyHandle, u8, ReceivingFlow)>>,
    }

    impl KeyStore for Opener {
        fn install(&self, _: u16, _: &[u8], _: [u8; 12]) -> Result<KeyHandle, NoRoom> {
            Err(NoRoom)
        }

        fn install_receiving(&self, key: &ReceivingKey<'_>) -> Result<KeyHandle, NoRoom> {
            let mut installed = self.installed.lock().unwrap();
            if installed.len() >= self.room {
                return Err(NoRoom);
            }
            let mut next = self.next.lock().unwrap();
            *next += 1;
            installed.push((KeyHandle(*next), key.epoch, key.flow));
            Ok(KeyHandle(*next))
        }

        fn remove(&self, key: KeyHandle) {
            let mut installed = self.installed.lock().unwrap();
            installed.retain(|(handle, ..)| *handle != key);
        }
    }

    impl Opener {
        /// Handles and epoch bytes of the keys that it has.
        fn has(&self) -> Vec<(u64, u8)> {
            let installed = self.installed.lock().unwrap();
            installed.iter().map(|(key, epoch, _)| (key.0, *epoch)).collect()
        }
    }

    const FLOW: ReceivingFlow =
        ReceivingFlow { session: 7, index_bits: 16, first_record: 64, record: 100 };

    fn keys(room: usize) -> (OpenKeys, Arc<Opener>) {
        let carrier = Arc::new(Opener { room, ..Opener::default() });
        let crypto = CryptoProvider::aws_lc().with_key_store(Arc::<Opener>::clone(&carrier));
        let secrets = secrets(Suite::Aes128Gcm, Side::Client);
        let mut keys =
            OpenKeys::with_provider(secrets, Suite::Aes128Gcm, small_limits(), None, crypto);
        keys.open_at_carrier(FLOW);
        (keys, carrier)
    }

    // SMT [7.3-9], [7.3-14]
    #[test]
    fn a_key_is_there_from_the_first_opening_to_the_end_of_its_epoch() {
        let (mut keys, carrier) = keys(9);
        assert!(keys.data(0).is_ok());
        assert_eq!(carrier.has(), [], "nothing has opened under it");
        keys.opened(0);
        keys.opened(0);
        assert_eq!(carrier.has(), [(1, 0)]);
        assert!(keys.data(1).is_ok());
        assert_eq!(carrier.has(), [(1, 0)], "the next epoch's is not told");
        keys.opened(1);
        assert_eq!(carrier.has(), [(1, 0), (2, 1)]);
        keys.finish(0);
        assert_eq!(carrier.has(), [(2, 1)]);
        keys.hibernate();
        assert_eq!(carrier.has(), []);
        keys.opened(1);
        assert_eq!(carrier.has(), [(3, 1)], "its handle is new");
        drop(keys);
        assert_eq!(carrier.has(), []);
    }

    #[test]
    fn the_carriers_word_counts_for_its_own_key_of_that_epoch() {
        let (mut keys, _) = keys(9);
        let is_carriers = |keys: &mut OpenKeys, epoch, key| keys.is_carriers(epoch, KeyHandle(key));
        assert_eq!(is_carriers(&mut keys, 0, 1), None, "no key was given yet");
        keys.opened(0);
        assert_eq!(is_carriers(&mut keys, 0, 1), Some(0));
        assert!(keys.data(1).is_ok());
        keys.opened(1);
        assert_eq!(is_carriers(&mut keys, 1, 2), Some(1));
        assert_eq!(is_carriers(&mut keys, 0, 1), Some(0));
        for (epoch, key) in [(0, 2), (1, 1), (2, 1), (0, 0), (0, 3)] {
            assert_eq!(is_carriers(&mut keys, epoch, key), None);
        }
        keys.finish(0);
        assert_eq!(is_carriers(&mut keys, 0, 1), None);
    }

    #[test]
    fn a_carrier_without_room_or_keys_without_a_carrier_give_no_word() {
        let (mut keys, carrier) = keys(0);
        keys.opened(0);
        assert_eq!(carrier.has(), []);
        assert_eq!(keys.is_carriers(0, KeyHandle(1)), None);
        let mut keys = open_keys(Suite::Aes128Gcm);
        keys.open_at_carrier(FLOW);
        keys.opened(0);
        assert_eq!(keys.is_carriers(0, KeyHandle(1)), None);
        assert_eq!(keys.integrity_limit, Suite::Aes128Gcm.integrity_limit());
    }

    // SMT [7.3-8]
    #[test]
    fn wrong_tags_that_the_carrier_counts_are_taken_off_the_limit_each_time() {
        let (mut keys, carrier) = keys(9);
        keys.integrity_limit = 6 * CARRIER_FAILURES_MAX;
        for handle in 1..=3 {
            keys.opened(0);
            keys.opened(0);
            assert_eq!(carrier.has(), [(handle, 0)]);
            keys.hibernate();
        }
        keys.opened(0);
        assert_eq!(carrier.has(), [], "half of the limit is the carrier's");
        keys.current.failed = 3 * CARRIER_FAILURES_MAX - 1;
        assert_eq!(epoch_of(&mut keys, 0), Some(0));
        keys.failed();
        assert_eq!(epoch_of(&mut keys, 0), None);
        assert!(keys.control(0).is_err());
    }

    // SMT [7.3-8]
    #[test]
    fn each_epoch_has_a_limit_of_its_own_beside_the_carriers_failures() {
        let (mut keys, carrier) = keys(9);
        keys.integrity_limit = 2 * CARRIER_FAILURES_MAX;
        keys.opened(0);
        assert!(keys.data(1).is_ok());
        keys.opened(1);
        assert_eq!(carrier.has(), [(1, 0), (2, 1)]);
        let previous = keys.previous.as_mut().unwrap();
        assert_eq!(previous.reserved, CARRIER_FAILURES_MAX);
        previous.failed = CARRIER_FAILURES_MAX;
        assert_eq!(epoch_of(&mut keys, 0), None);
        assert_eq!(keys.is_carriers(0, KeyHandle(1)), None);
        assert_eq!(epoch_of(&mut keys, 1), Some(1));
    }

    // SMT [7.3-8]
    #[test]
    fn a_carrier_that_takes_no_key_is_left_no_failures() {
        let (mut keys, _) = keys(0);
        for _ in 0..3 {
            keys.opened(0);
            keys.hibernate();
        }
        assert_eq!(keys.current.failures(), 0);
        assert_eq!(keys.integrity_limit, Suite::Aes128Gcm.integrity_limit());
    }
}
