// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which connections get an entry, and which give up theirs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod quic_peer;

use quic_peer::{Peer, engine, id, keys};
use smt_nic::quic::{AdmissionPolicy, NotAdmitted, QuicEngine, Received, Removed, Untouched};

/// Each connection with the id of its number.
fn admit(engine: &mut QuicEngine, policy: &AdmissionPolicy, byte: u8) -> Result<(), NotAdmitted> {
    let admitted = engine.admit(policy, &keys(), 100_000)?;
    engine.add_id(admitted.connection, id(byte)).unwrap();
    Ok(())
}

fn is_opened(engine: &mut QuicEngine, packet: &[u8]) -> bool {
    matches!(engine.receive(&mut packet.to_vec()), Received::Opened(_))
}

#[test]
fn a_short_transfer_gets_no_entry_and_a_long_one_does() {
    let policy = AdmissionPolicy { bytes_min: 50_000, ..AdmissionPolicy::ALL };
    let mut engine = engine(2);
    assert_eq!(engine.admit(&policy, &keys(), 49_999), Err(NotAdmitted::TooShort));
    assert_eq!(engine.sizes(), (0, 0));
    assert!(engine.admit(&policy, &keys(), 50_000).is_ok());
    assert!(engine.admit(&AdmissionPolicy::ALL, &keys(), 0).is_ok());
    assert_eq!(engine.admit(&AdmissionPolicy::ALL, &keys(), 1 << 40), Err(NotAdmitted::NoRoom));
}

#[test]
fn the_connection_that_was_used_least_recently_gives_up_its_entry() {
    let policy = AdmissionPolicy { bytes_min: 0, evicted_after: Some(3) };
    let (mut engine, mut peer) = (engine(3), Peer::new(0));
    for byte in 0..3 {
        admit(&mut engine, &policy, byte).unwrap();
    }
    // Connection 1 is idle while the others have packets.
    for number in 0..2 {
        for byte in [0, 2] {
            assert!(is_opened(&mut engine, &peer.seal(number, 0, &id(byte))));
        }
    }
    let admitted = engine.admit(&policy, &keys(), 0).unwrap();
    engine.add_id(admitted.connection, id(9)).unwrap();
    let (_, removed) = admitted.evicted.unwrap();
    let expected = Removed { generation: 0, largest: None, failures: 0, sealed: 0 };
    assert_eq!(removed, expected);
    assert!(!is_opened(&mut engine, &peer.seal(7, 0, &id(1))));
    for byte in [0, 2, 9] {
        assert!(is_opened(&mut engine, &peer.seal(7, 0, &id(byte))));
    }
    assert_eq!(engine.sizes(), (3, 3));
}

#[test]
fn a_connection_that_is_in_use_keeps_its_entry() {
    let policy = AdmissionPolicy { bytes_min: 0, evicted_after: Some(100) };
    let (mut engine, mut peer) = (engine(2), Peer::new(0));
    admit(&mut engine, &policy, 0).unwrap();
    admit(&mut engine, &policy, 1).unwrap();
    for number in 0..40 {
        for byte in [0, 1] {
            assert!(is_opened(&mut engine, &peer.seal(number, 0, &id(byte))));
        }
    }
    assert_eq!(admit(&mut engine, &policy, 2), Err(NotAdmitted::NoRoom));
}

#[test]
fn software_goes_on_with_what_the_device_has_counted() {
    let (mut engine, mut peer) = (engine(1), Peer::new(0));
    let connection = engine.add(&keys()).unwrap();
    engine.add_id(connection, id(0)).unwrap();
    assert!(is_opened(&mut engine, &peer.seal(41, 0, &id(0))));
    // A byte of the tag behind the sample: phase and number are those that were sealed.
    let mut forged = peer.seal(42, 0, &id(0));
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(engine.receive(&mut forged), Received::Untouched(Untouched::NotOpened));
    engine.count_failures(connection, 5);
    engine.count_seals(connection, 7);
    let expected = Removed { generation: 0, largest: Some(41), failures: 6, sealed: 7 };
    assert_eq!(engine.remove(connection), Some(expected));
    assert_eq!(engine.remove(connection), None);
}
