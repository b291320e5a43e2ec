// SPDX-License-Identifier: Apache-2.0 OR MIT
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::Mutex;

use smt_wire::SessionIndex;

use super::*;
use crate::key_log::{KeyLog, KeyLogEntry};
use crate::key_schedule::{SessionSecrets, Side};
use crate::testing::{open_keys, seal_keys, secrets, small_limits};

/// Tag of nothing: tells keys apart.
fn tag(aead: &dyn Aead) -> [u8; 16] {
    aead.seal(1, b"", &mut []).unwrap()
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl KeyLog for Lines {
    fn log(&self, line: &KeyLogEntry<'_>) {
        self.0.lock().unwrap().push(line.to_string());
    }
}

mod leave_records_to_packets {
    use super::*;

    // SMT [15.4-6]
    #[test]
    fn records_have_no_seal_in_any_epoch_and_control_packets_have_theirs() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        let control = tag(keys.control().unwrap());
        keys = keys.leave_records_to_packets();
        assert_eq!(tag(keys.data(0).unwrap()), [0; 16]);
        assert_eq!(tag(keys.control().unwrap()), control);
        keys.update();
        for epoch in [0, 1] {
            assert_eq!(tag(keys.data(epoch).unwrap()), [0; 16]);
        }
        assert_ne!(tag(keys.control().unwrap()), [0; 16]);
    }
}

mod new {
    use super::*;

    #[test]
    fn epoch_0_and_updates_are_logged_by_sender_and_receiver_alike() {
        let lines = [Arc::new(Lines::default()), Arc::new(Lines::default())];
        let context = |log: &Arc<Lines>| {
            let log: Arc<dyn KeyLog> = Arc::clone(log) as _;
            Some(KeyLogContext { log, index: SessionIndex(7), side: Side::Client })
        };
        let suite = Suite::Aes256Gcm;
        let secrets = || secrets(suite, Side::Client);
        let mut seal = SealKeys::new(secrets(), suite, small_limits(), context(&lines[0]));
        seal.update();
        let limits = small_limits();
        let mut open = crate::OpenKeys::new(secrets(), suite, limits, context(&lines[1]));
        open.data(1).unwrap();
        assert_eq!(lines[1].0.lock().unwrap().len(), 2, "a claimed epoch is not logged");
        open.opened(1);
        let [sent, received] = lines.map(|lines| lines.0.lock().unwrap().clone());
        assert_eq!(sent, received);
        let heads: Vec<&str> = sent.iter().map(|line| &line[..line.len() - 96]).collect();
        assert_eq!(
            heads,
            [
                "SMT_SECRET 0000000000000007 client data 0 1302 ",
                "SMT_SECRET 0000000000000007 client control 0 1302 ",
                "SMT_SECRET 0000000000000007 client data 1 1302 ",
                "SMT_SECRET 0000000000000007 client control 1 1302 ",
            ]
        );
    }
}

mod plaintext {
    use super::*;

    #[test]
    fn is_never_logged() {
        let lines = Arc::new(Lines::default());
        let log: Arc<dyn KeyLog> = Arc::clone(&lines) as _;
        let side = Side::Client;
        let log = Some(KeyLogContext { log, index: SessionIndex(7), side });
        let secrets = SessionSecrets::plaintext();
        let mut keys = SealKeys::new(secrets.client, secrets.suite, small_limits(), log);
        keys.update();
        assert_eq!(lines.0.lock().unwrap().len(), 0);
    }
}

mod hibernate {
    use super::*;

    #[test]
    fn changes_no_key() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        let before = (tag(keys.data(0).unwrap()), tag(keys.control().unwrap()));
        assert!(keys.has_ciphers());
        keys.hibernate();
        assert!(!keys.has_ciphers());
        assert_eq!((tag(keys.data(0).unwrap()), tag(keys.control().unwrap())), before);
        keys.hibernate();
        keys.update();
        assert_eq!(tag(keys.data(0).unwrap()), before.0, "the old data key");
        keys.hibernate();
        assert_eq!(tag(keys.data(0).unwrap()), before.0, "it has no secret any more");
    }
}

mod drop_ciphers {
    use super::*;

    #[test]
    fn gives_tables_up_and_changes_no_key() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        assert!(!keys.has_ciphers());
        let before = (tag(keys.data(0).unwrap()), tag(keys.control().unwrap()));
        assert!(keys.has_ciphers());
        keys.drop_ciphers();
        assert!(!keys.has_ciphers());
        assert_eq!((tag(keys.data(0).unwrap()), tag(keys.control().unwrap())), before);
        keys.drop_ciphers();
        keys.update();
        assert_eq!(tag(keys.data(0).unwrap()), before.0, "the old data key");
        assert_ne!(tag(keys.data(1).unwrap()), before.0);
        keys.drop_ciphers();
        assert!(!keys.has_ciphers(), "nor are the old key's");
        assert_eq!(tag(keys.data(0).unwrap()), before.0);
    }
}

mod update {
    use super::*;

    // SMT [7.3-1]
    #[test]
    fn renews_both_keys_and_keeps_the_old_data_key() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        let (data, control) = (tag(keys.data(0).unwrap()), tag(keys.control().unwrap()));
        assert_ne!(data, control);
        keys.update();
        assert_eq!((keys.epoch(), keys.previous()), (1, Some(0)));
        assert_eq!(tag(keys.data(0).unwrap()), data);
        assert_ne!(tag(keys.data(1).unwrap()), data);
        assert_ne!(tag(keys.control().unwrap()), control);
        assert!(keys.data(2).is_err());
    }

    // SMT [7.3-18]
    #[test]
    fn waits_until_the_previous_epoch_is_finished() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        keys.update();
        assert!(!keys.can_update());
        keys.finish_previous();
        assert!(keys.can_update() && keys.data(0).is_err());
        keys.update();
        assert_eq!(keys.previous(), Some(1));
    }

    /// A number that began again would seal under keys that were in use before.
    #[test]
    fn the_last_epoch_is_followed_by_none() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        keys.current = EpochKeys::new(u32::MAX - 1);
        assert!(keys.can_update());
        keys.update();
        keys.finish_previous();
        assert_eq!(keys.epoch(), u32::MAX);
        assert!(!keys.can_update());
    }

    #[test]
    #[should_panic(expected = "not finished")]
    fn a_second_update_too_early_panics() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        keys.update();
        keys.update();
    }
}

mod count_record {
    use super::*;

    // SMT [7.3-4]
    #[test]
    fn wants_an_update_at_three_quarters_and_stops_hard_at_the_limit() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        for sealed in 1..=16 {
            assert_eq!(keys.count_record(), Ok(()));
            assert_eq!(keys.wants_update(), sealed >= 12, "{sealed}");
            assert_eq!(keys.records_left(), 16 - sealed);
        }
        let used_up = Err(KeyUsedUp { epoch: 0, sealed: 16 });
        assert_eq!((keys.count_record(), keys.count_record()), (used_up, used_up));
        assert_eq!(keys.count_control(), Ok(()), "control packets have a key of their own");
        keys.update();
        assert!(!keys.wants_update());
        assert_eq!(keys.records_left(), 16);
        assert_eq!(keys.count_record(), Ok(()));
    }

    #[test]
    fn control_packets_are_limited_as_well() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        for sealed in 1..=16 * 16 {
            assert_eq!(keys.count_control(), Ok(()));
            assert_eq!(keys.wants_update(), sealed >= 12, "{sealed}");
        }
        assert_eq!(keys.count_control(), Err(KeyUsedUp { epoch: 0, sealed: 256 }));
        assert_eq!(keys.count_record(), Ok(()));
    }
}

mod request_update {
    use super::*;

    #[test]
    fn only_the_current_epoch_can_be_asked_for() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        keys.request_update(1);
        assert!(!keys.wants_update());
        keys.request_update(0);
        assert!(keys.wants_update());
        keys.update();
        assert!(!keys.wants_update());
        keys.request_update(0);
        assert!(!keys.wants_update());
    }
}

mod request_update_while_the_previous_epoch_is_open {
    use super::*;

    // SMT [7.3-6]
    #[test]
    fn is_remembered_until_that_is_finished() {
        let mut keys = seal_keys(Suite::Aes128Gcm);
        keys.update();
        keys.request_update(1);
        assert!(!keys.can_update());
        keys.finish_previous();
        assert!(keys.wants_update() && keys.can_update());
    }
}

mod data {
    use super::*;

    #[test]
    fn peer_has_the_same_keys_in_every_epoch_and_suite() {
        for suite in Suite::ALL {
            let (mut seal, mut open) = (seal_keys(suite), open_keys(suite));
            for epoch in 0..300_u32 {
                let byte = epoch.to_le_bytes()[0];
                assert_eq!(seal.epoch(), epoch);
                assert_eq!(tag(open.data(byte).unwrap().1), tag(seal.data(epoch).unwrap()));
                let (candidate, control) = open.control(byte).unwrap();
                assert_eq!((candidate, tag(control)), (epoch, tag(seal.control().unwrap())));
                assert_eq!(open.opened(epoch), epoch > 0);
                seal.finish_previous();
                assert_eq!(open.finish(epoch.wrapping_sub(1)), epoch > 0);
                seal.update();
            }
        }
    }

    #[test]
    fn plaintext_secrets_give_the_null_cipher_in_every_epoch() {
        let secrets = SessionSecrets::plaintext();
        let mut keys = SealKeys::new(secrets.client, secrets.suite, small_limits(), None);
        keys.update();
        for epoch in [0, 1] {
            assert_eq!(tag(keys.data(epoch).unwrap()), [0; 16]);
        }
        assert_eq!(tag(keys.control().unwrap()), [0; 16]);
    }
}

mod debug {
    use super::*;

    #[test]
    fn shows_counts_only() {
        let text = format!("{:?}", seal_keys(Suite::Aes128Gcm));
        let expected = "SealKeys { suite: Aes128Gcm, epoch: 0, previous: None, records: 0, \
                        controls: 0, .. }";
        assert_eq!(text, expected);
    }
}
