// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Values that are adopted, step by step.

use zeroize::Zeroizing;

use super::*;
use crate::handover::value::{EXPORTED_LEN, HandoverTerms};

const OWN: AdopterId = AdopterId([1; 16]);
const OTHER: AdopterId = AdopterId([2; 16]);
const NOW: WallTime = WallTime::from_secs(1_000_000);

fn value_until(side: Side, number: u32, valid_until: u64) -> Handover {
    value_of("peer", side, number, valid_until)
}

fn value_of(peer_name: &str, side: Side, number: u32, valid_until: u64) -> Handover {
    let (client, server) = match side {
        Side::Client => (OWN, OTHER),
        Side::Server => (OTHER, OWN),
    };
    let terms = HandoverTerms {
        client,
        server,
        suite: smt_record::Suite::Aes128Gcm,
        valid_until: WallTime::from_secs(valid_until),
        number: number.into(),
    };
    let mut exported = Zeroizing::new([7; EXPORTED_LEN]);
    exported[..4].copy_from_slice(&number.to_be_bytes());
    Handover::new(side, terms, peer_name, None, &exported).unwrap()
}

fn value(side: Side, number: u32) -> Handover {
    value_until(side, number, NOW.as_secs() + 60)
}

fn with(values: &[Handover]) -> AdoptedValues {
    let mut adopted = AdoptedValues::default();
    for value in values {
        adopted.adopt(OWN, value, NOW).unwrap();
    }
    adopted
}

// SMT [7.5-5]
#[test]
fn a_value_is_adopted_once() {
    let mut adopted = with(&[value(Side::Client, 1)]);
    let again = |adopted: &mut AdoptedValues| adopted.adopt(OWN, &value(Side::Client, 1), NOW);
    let is_before = |result| matches!(result, Err(HandoverError::AdoptedBefore { .. }));
    assert!(is_before(again(&mut adopted)));
    let one = adopted.begin("peer", false, Some(NOW)).unwrap();
    assert!(is_before(again(&mut adopted)));
    assert_eq!(adopted.confirm(&one.name), Ok(()));
    assert!(is_before(again(&mut adopted)));
    assert_eq!(adopted.waiting(), 0);
}

// SMT [7.5-4]
/// Another process, and the same one after it has begun anew, are other adopters.
#[test]
fn a_value_for_another_run_of_the_process_is_refused() {
    let mut adopted = AdoptedValues::default();
    let result = adopted.adopt(OTHER, &value(Side::Client, 1), NOW);
    assert!(matches!(result, Err(HandoverError::OtherProcess { .. })));
}

// SMT [7.5-4]
#[test]
fn a_value_that_is_too_old_or_too_long_good_is_refused() {
    let mut adopted = AdoptedValues::default();
    let mut adopt =
        |until| adopted.adopt(OWN, &value_until(Side::Server, until as u32, until), NOW);
    let now = NOW.as_secs();
    assert!(matches!(adopt(now), Err(HandoverError::Expired { late: 0, .. })));
    assert!(adopt(now + 1).is_ok());
    assert!(adopt(now + HANDOVER_LIFE_MAX).is_ok());
    let long = adopt(now + HANDOVER_LIFE_MAX + 1);
    assert!(matches!(long, Err(HandoverError::TooLong { .. })));
}

#[test]
fn a_value_that_waits_too_long_begins_no_session() {
    let mut adopted = with(&[value(Side::Client, 1), value(Side::Server, 2)]);
    let late = Some(WallTime::from_secs(NOW.as_secs() + 60));
    let name = *value(Side::Server, 2).name();
    assert!(adopted.answer(&name, Some(NOW)).is_ok());
    assert!(adopted.begin("peer", false, late).is_none());
    assert_eq!(adopted.answer(&name, late).unwrap_err(), Unnamed::Unknown);
    assert_eq!(adopted.waiting(), 0);
}

// SMT [7.5-6]
/// The first of two sessions by one value that confirms is the only one.
#[test]
fn a_value_is_used_up_by_the_first_confirm() {
    let mut adopted = with(&[value(Side::Server, 1)]);
    let name = *value(Side::Server, 1).name();
    let (first, second) = (adopted.answer(&name, None), adopted.answer(&name, None));
    assert_eq!(adopted.confirm(&first.unwrap().name), Ok(()));
    let second = adopted.confirm(&second.unwrap().name);
    assert_eq!(second, Err(Unnamed::UsedUp));
    assert_eq!(adopted.answer(&name, None).unwrap_err(), Unnamed::UsedUp);
}

/// It becomes too old between flight 2 and CONFIRM: that is not a second session by it.
#[test]
fn a_value_that_becomes_too_old_in_its_handshake_was_not_used_up() {
    let mut adopted = with(&[value(Side::Server, 1)]);
    let name = *value(Side::Server, 1).name();
    let begun = adopted.answer(&name, Some(NOW)).unwrap();
    let late = WallTime::from_secs(NOW.as_secs() + 60);
    // Any other flight tells the time.
    assert!(adopted.answer(b"another", Some(late)).is_err());
    assert_eq!(adopted.confirm(&begun.name), Err(Unnamed::Unknown));
}

/// A flight 1 may come from anybody, with any name: it costs no look at all names that are
/// remembered, but for one a second.
#[test]
fn values_that_are_too_old_are_looked_for_once_a_second() {
    let mut adopted = with(&[]);
    let flight = |adopted: &mut AdoptedValues, seconds: u64| {
        let now = WallTime::from_secs(NOW.as_secs() + seconds);
        assert!(adopted.answer(&[9; 16], Some(now)).is_err());
        adopted.used_up.len()
    };
    assert_eq!(flight(&mut adopted, 1), 0);
    // It is too old already: a look would find it.
    adopted.used_up.insert([3; 16], NOW);
    for _ in 0..3 {
        assert_eq!(flight(&mut adopted, 1), 1);
    }
    assert_eq!(flight(&mut adopted, 0), 1);
    assert_eq!(flight(&mut adopted, 2), 0);
}

/// A clock that is set back must not let a value in again that was forgotten for its age.
#[test]
fn a_clock_that_goes_back_lets_no_value_in_again() {
    let mut adopted = with(&[value(Side::Client, 1)]);
    let one = adopted.begin("peer", false, Some(NOW)).unwrap();
    assert_eq!(adopted.confirm(&one.name), Ok(()));
    adopted.begin("peer", false, Some(WallTime::from_secs(NOW.as_secs() + 61)));
    let again = adopted.adopt(OWN, &value(Side::Client, 1), NOW);
    assert!(matches!(again, Err(HandoverError::Expired { .. })));
}

#[test]
fn connects_that_begin_together_have_different_values() {
    let mut adopted = with(&[value(Side::Client, 1), value(Side::Client, 2)]);
    let first = adopted.begin("peer", false, None).unwrap();
    let second = adopted.begin("peer", false, None).unwrap();
    assert_ne!(first.name, second.name);
    assert!(adopted.begin("peer", false, None).is_none());
    // The attempt that follows a lost one may have its value.
    assert!(adopted.begin("peer", true, None).is_some());
}

// SMT [7.5-7]
#[test]
fn an_attempt_that_fails_gives_its_value_back_however_often() {
    let mut adopted = with(&[value(Side::Client, 1)]);
    for _ in 0..100 {
        let one = adopted.begin("peer", false, None).unwrap();
        adopted.give_up(&one.name);
    }
    assert_eq!(adopted.waiting(), 1);
    assert!(adopted.begin("peer", false, None).is_some());
}

#[test]
fn a_value_serves_its_own_side_and_its_own_peer() {
    let mut adopted = with(&[value(Side::Client, 1), value(Side::Server, 2)]);
    assert!(adopted.begin("stranger", false, None).is_none());
    let client = *value(Side::Client, 1).name();
    assert_eq!(adopted.answer(&client, None).unwrap_err(), Unnamed::Unknown);
    assert_eq!(adopted.answer(b"short", None).unwrap_err(), Unnamed::Unknown);
    assert!(adopted.begin("peer", false, None).is_some());
    assert!(adopted.begin("peer", false, None).is_none());
}

#[test]
fn values_that_wait_are_bounded_for_each_peer_and_for_all() {
    let mut adopted = AdoptedValues::default();
    let mut adopt = |peer_name: &str, number: usize| {
        let until = NOW.as_secs() + 60;
        let value = value_of(peer_name, Side::Server, number as u32, until);
        adopted.adopt(OWN, &value, NOW)
    };
    for number in 0..HANDOVERS_OF_PEER_MAX {
        adopt("greedy", number).unwrap();
    }
    let more = adopt("greedy", HANDOVERS_WAITING_MAX);
    let count = HANDOVERS_OF_PEER_MAX;
    assert!(matches!(more, Err(HandoverError::FullOfPeer { count: full, .. }) if full == count));
    // Others have their room.
    for number in HANDOVERS_OF_PEER_MAX..HANDOVERS_WAITING_MAX {
        adopt(&format!("peer {}", number % 7), number).unwrap();
    }
    let more = adopt("another", HANDOVERS_WAITING_MAX);
    assert!(matches!(more, Err(HandoverError::Full { .. })));
}
