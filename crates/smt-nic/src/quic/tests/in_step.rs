// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Device and host's software take turns.

use super::*;

#[test]
fn every_sample_has_a_mask() {
    // The block counter of ChaCha20 is the sample's: the last block is one of them.
    let mut pair = Pair::new(Suite::ChaCha20Poly1305);
    let mut packet = pair.sealed(7, 0);
    packet[13..17].copy_from_slice(&[0xff; 4]);
    let forged = pair.receive(&packet);
    assert_eq!(forged, Received::Untouched(Untouched::NotOpened));
}

#[test]
fn a_connection_that_was_admitted_late_goes_on_from_softwares_numbers() {
    let suite = Suite::Aes128Gcm;
    let mut pair = Pair::new(suite);
    pair.here.remove(pair.connection);
    let keys = ConnectionKeys { largest: Some(1 << 40), ..keys(suite) };
    pair.connection = pair.here.add(&keys).unwrap();
    let id = ConnectionId::new(&ID).unwrap();
    pair.here.add_id(pair.connection, id).unwrap();
    let packet = pair.sealed((1 << 40) + 1, 0);
    assert_eq!(pair.open(&packet).number, (1 << 40) + 1);
    pair.here.note_opened(pair.connection, (1 << 40) + 5);
    let packet = pair.sealed((1 << 40) + 5, 0);
    assert_eq!(pair.open(&packet).freshness, Freshness::Duplicate);
}

#[test]
fn packets_that_software_has_sealed_count_towards_the_limit() {
    let suite = Suite::Aes128Gcm;
    let mut pair = Pair::new(suite);
    pair.peer.count_seals(pair.at_peer, suite.seals_max() - 1);
    pair.sealed(1, 0);
    let mut packet = [&[0x43][..], &ID, &[0, 0, 0, 2], &[0; 24]].concat();
    let stride = packet.len();
    let mut batch = Batch { packets: &mut packet, stride, id_length: ID.len(), numbers: &[2] };
    let sealed = pair.peer.seal(pair.at_peer, &mut batch);
    assert_eq!(sealed, Err(NotSealed::ConfidentialityLimit));
    let same = pair.peer.set_transmit_key(pair.at_peer, &key_of(suite, 0), 0);
    assert!(!same, "the same phase again would have no limit");
    assert!(pair.peer.set_transmit_key(pair.at_peer, &key_of(suite, 1), 1));
}

#[test]
fn a_lower_number_of_the_next_phase_does_not_move_on() {
    let suite = Suite::Aes128Gcm;
    let mut pair = Pair::new(suite);
    let packet = pair.sealed(9, 0);
    pair.open(&packet);
    pair.peer.set_transmit_key(pair.at_peer, &key_of(suite, 1), 1);
    let wrong = pair.sealed(8, 1);
    assert_eq!(pair.receive(&wrong), Received::Untouched(Untouched::NoKey));
    let right = pair.sealed(10, 1);
    assert_eq!(pair.open(&right).generation, 1);
}

#[test]
fn ids_without_bytes_are_the_hosts() {
    for id_length in [0, 21] {
        let config = QuicConfig { connections_max: 1, id_places: 8, id_length, hash_key: [1; 16] };
        let refused = QuicEngine::new(&config).err();
        assert_eq!(refused, Some(QuicTableError::BadIdLength));
    }
}
