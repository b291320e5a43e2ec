// SPDX-License-Identifier: Apache-2.0 OR MIT
use core::convert::Infallible;

use super::*;
use crate::limits::OLD_EPOCH_LIFE;
use smt_record::{KeyLimits, SessionSecrets, Suite};

const INTERVAL: Duration = Duration::from_millis(5);
/// Records of a key, after how many the next is wanted, and failures after which the peer is asked.
const LIMITS: (u64, u64, u64) = (16, 12, 20);

fn keys() -> Keys {
    let secrets = SessionSecrets::from_exporter(Suite::Aes128Gcm, &[0; 32], |out, label, _| {
        out.fill(label.len() as u8);
        Ok::<_, Infallible>(())
    });
    let SessionSecrets { client, server, .. } = secrets.unwrap();
    let limits = KeyLimits::new(LIMITS.0, LIMITS.1, LIMITS.2).unwrap();
    Keys::new(
        SealKeys::new(client, Suite::Aes128Gcm, limits, None),
        OpenKeys::new(server, Suite::Aes128Gcm, limits, None),
    )
}

fn seal_records(keys: &mut Keys, records: u64) {
    (0..records).for_each(|_| keys.seal.count_record().unwrap());
}

/// Asks about the previous epoch when that is due; no message holds it.
fn tell_epoch_done(keys: &mut Keys) -> PreviousEpoch {
    let due = keys.epoch_done_due().unwrap();
    keys.finish_previous(due, INTERVAL, |_| Vec::new())
}

#[test]
fn a_second_epoch_waits_until_the_peer_has_let_go_of_the_one_before() {
    let (mut keys, now) = (keys(), Time::default());
    assert!(!keys.update(now, INTERVAL));
    seal_records(&mut keys, LIMITS.1);
    assert!(keys.update(now, INTERVAL) && keys.seal.epoch() == 1);
    seal_records(&mut keys, LIMITS.1);
    assert!(!keys.update(now, INTERVAL));
    assert!(!keys.epoch_acked(0), "EPOCH_DONE has not left");
    assert_eq!(tell_epoch_done(&mut keys), PreviousEpoch::Finished { epoch: 0 });
    assert!(!keys.epoch_acked(1) && keys.epoch_acked(0) && !keys.epoch_acked(0));
    assert_eq!(keys.epoch_done_due(), None);
    assert!(keys.update(now, INTERVAL) && keys.seal.epoch() == 2);
}

#[test]
fn an_acknowledgement_counts_only_after_this_epochs_own_question() {
    let (mut keys, now) = (keys(), Time::default());
    for epoch in 0..2 {
        seal_records(&mut keys, LIMITS.1);
        assert!(keys.update(now, INTERVAL));
        assert!(!keys.epoch_acked(epoch));
        tell_epoch_done(&mut keys);
        assert!(keys.epoch_acked(epoch));
    }
}

#[test]
fn the_rest_of_a_key_is_for_messages_that_have_begun() {
    let mut keys = keys();
    keys.count_message(10);
    assert!(keys.suffice(6, LIMITS.0, || panic!("known without counting")));
    assert!(!keys.suffice(7, LIMITS.0, || 10));
    assert!(keys.seal.wants_update(), "the next key makes room");
    assert!(!keys.suffice(7, LIMITS.0, || panic!("nothing was sealed since")));
}

#[test]
fn messages_are_counted_once_for_a_state_of_the_key() {
    let (mut keys, now) = (keys(), Time::default());
    seal_records(&mut keys, LIMITS.1);
    keys.update(now, INTERVAL);
    keys.count_message(10);
    assert!(!keys.suffice(7, LIMITS.0, || 10));
    assert!(!keys.suffice(7, LIMITS.0, || panic!("nothing was sealed since")));
    seal_records(&mut keys, 1);
    assert!(keys.suffice(7, LIMITS.0, || 8));
}

// SMT [7.3-21]
#[test]
fn a_message_with_more_records_than_a_key_begins_all_the_same() {
    let mut keys = keys();
    assert!(keys.suffice(17, LIMITS.0, || 0));
}

#[test]
fn the_last_control_packets_of_a_key_are_for_its_end() {
    let mut keys = keys();
    let most = 16 * LIMITS.0;
    let mut left = |count| {
        let seal_one = |()| {
            let left = keys.controls_left(most);
            keys.seal.count_control().unwrap();
            left
        };
        core::iter::repeat_n((), count).map(seal_one).collect::<Vec<_>>()
    };
    assert_eq!(left(224), [ControlsLeft::All; 224]);
    assert_eq!(left(16), [ControlsLeft::Holders; 16]);
    assert_eq!(left(16), [ControlsLeft::Epochs; 16]);
}

#[test]
fn an_old_epoch_that_the_peer_forgets_is_dropped() {
    let (mut keys, now) = (keys(), Time::default());
    keys.open.control(1).unwrap();
    assert!(keys.open.opened(1) && keys.open.previous() == Some(0));
    assert_eq!(keys.watch_peer(now, INTERVAL), None);
    keys.watch_peer(now + OLD_EPOCH_LIFE / 2, INTERVAL);
    assert_eq!(keys.open.previous(), Some(0));
    keys.watch_peer(now + OLD_EPOCH_LIFE, INTERVAL);
    assert_eq!(keys.open.previous(), None);
}

#[test]
fn a_new_epoch_is_asked_for_until_the_peer_has_moved() {
    let (mut keys, now) = (keys(), Time::default());
    for _ in 0..LIMITS.2 {
        keys.open.control(0).unwrap();
        keys.open.failed();
    }
    let ask = |is_again| Some(AskForUpdate { epoch: 0, is_again });
    assert_eq!(keys.watch_peer(now, INTERVAL), ask(false));
    assert_eq!(keys.watch_peer(now, INTERVAL), None);
    let due = keys.update_request_due().unwrap();
    assert_eq!(keys.watch_peer(due, INTERVAL), ask(true));
    keys.open.control(1).unwrap();
    keys.open.opened(1);
    assert_eq!(keys.watch_peer(due + INTERVAL * 10, INTERVAL), None);
    assert_eq!(keys.update_request_due(), None);
}
