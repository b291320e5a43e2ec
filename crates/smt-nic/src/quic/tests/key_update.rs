// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key phases are followed.

use super::*;

#[test]
fn the_peers_first_packet_of_the_next_phase_moves_on_and_late_ones_still_open() {
    let mut pair = Pair::new(Suite::ChaCha20Poly1305);
    let late = pair.sealed(8, 0);
    let packet = pair.sealed(9, 0);
    pair.open(&packet);
    let next = key_of(Suite::ChaCha20Poly1305, 1);
    assert!(pair.peer.set_transmit_key(pair.at_peer, &next, 1));
    let packet = pair.sealed(10, 1);
    assert_eq!(pair.open(&packet).generation, 1);
    assert_eq!(pair.open(&late).generation, 0);
    pair.here.drop_previous_key(pair.connection);
    // Its phase is the next one's bit again, and that key is not there.
    assert_eq!(pair.receive(&late), Received::Untouched(Untouched::NoKey));
}

#[test]
fn a_forged_flip_of_the_phase_changes_nothing() {
    let mut pair = Pair::new(Suite::Aes256Gcm);
    let packet = pair.sealed(9, 0);
    let mut forged = packet.clone();
    // The bit is masked, and flips all the same.
    forged[0] ^= 0x04;
    assert_eq!(pair.receive(&forged), Received::Untouched(Untouched::NotOpened));
    assert_eq!(pair.open(&packet).generation, 0);
}

#[test]
fn a_key_that_comes_after_its_phase_is_refused_and_software_opens_meanwhile() {
    let mut pair = Pair::new(Suite::Aes128Gcm);
    let suite = Suite::Aes128Gcm;
    for generation in 1..=2 {
        let key = key_of(suite, generation);
        pair.peer.set_transmit_key(pair.at_peer, &key, generation);
        let packet = pair.sealed(generation * 10, generation);
        if generation == 2 {
            assert_eq!(pair.receive(&packet), Received::Untouched(Untouched::NoKey));
            assert!(!pair.here.set_next_key(pair.connection, &key_of(suite, 1), 1));
            assert!(pair.here.set_next_key(pair.connection, &key, 2));
        }
        assert_eq!(pair.open(&packet).generation, generation);
    }
}
