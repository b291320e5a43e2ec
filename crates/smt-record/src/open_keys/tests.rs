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
        assert_eq!(
            counting.0.load(Ordering::Relaxed),
            4,
            "data and control of epochs 0 and 1"
        );
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
        assert_eq!(
            epoch_of(&mut keys, 1),
            Some(1),
            "the peer's update is still heard"
        );
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
