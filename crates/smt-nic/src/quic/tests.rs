// SPDX-License-Identifier: Apache-2.0 OR MIT
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod in_step;
mod key_update;
mod receive;
mod seal;
mod table;
mod vectors;

use alloc::vec::Vec;

use super::header_key::HeaderKey;
use super::packet_key::PacketKey;
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn phase_key(suite: Suite, key: &str, iv: &str) -> PhaseKey {
    PhaseKey::new(suite, &bytes(key), bytes(iv).try_into().unwrap()).unwrap()
}

fn header_key(suite: Suite, key: &str) -> HeaderProtectionKey {
    HeaderProtectionKey::new(suite, &bytes(key)).unwrap()
}

const ID: [u8; 8] = [9, 8, 7, 6, 5, 4, 3, 2];

fn engine(connections_max: u32, id_places: usize) -> QuicEngine {
    QuicEngine::new(&QuicConfig { connections_max, id_places, id_length: 8, hash_key: [5; 16] })
        .unwrap()
}

/// The key of a phase: any bytes that no other phase has.
fn key_of(suite: Suite, generation: u64) -> PhaseKey {
    let byte = 1 + generation as u8;
    PhaseKey::new(suite, &[byte; 32][..suite.key_bytes()], [byte; 12]).unwrap()
}

/// Keys of a peer that has the same ones in both directions.
fn keys(suite: Suite) -> ConnectionKeys {
    let header = HeaderProtectionKey::new(suite, &[200; 32][..suite.key_bytes()]).unwrap();
    ConnectionKeys {
        receive: key_of(suite, 0),
        receive_next: Some(key_of(suite, 1)),
        receive_header: header.clone(),
        transmit: key_of(suite, 0),
        transmit_header: header,
        generation: 0,
        largest: None,
        sealed: 0,
    }
}

/// A connection with the id, and an engine of the peer that seals for it.
struct Pair {
    here: QuicEngine,
    connection: Handle,
    peer: QuicEngine,
    at_peer: Handle,
}

impl Pair {
    fn new(suite: Suite) -> Self {
        let (mut here, mut peer) = (engine(4, 16), engine(4, 16));
        let connection = here.add(&keys(suite)).unwrap();
        here.add_id(connection, ConnectionId::new(&ID).unwrap()).unwrap();
        let at_peer = peer.add(&keys(suite)).unwrap();
        Self { here, connection, peer, at_peer }
    }

    /// A packet of the peer, in the phase that its key is of.
    fn sealed(&mut self, number: u64, generation: u64) -> Vec<u8> {
        let first = 0x43 | if generation % 2 == 1 { 0x04 } else { 0 };
        let low = (number as u32).to_be_bytes();
        let frames = number.to_be_bytes();
        let mut packet = [&[first][..], &ID, &low, &frames, &[0; 16]].concat();
        let stride = packet.len();
        let mut batch =
            Batch { packets: &mut packet, stride, id_length: ID.len(), numbers: &[number] };
        self.peer.seal(self.at_peer, &mut batch).unwrap();
        packet
    }

    /// Hands a packet to the engine. One that opens has its number as its frames.
    fn receive(&mut self, packet: &[u8]) -> Received {
        let mut received = packet.to_vec();
        let outcome = self.here.receive(&mut received);
        match &outcome {
            Received::Opened(opened) => {
                assert_eq!(received[opened.payload.clone()], opened.number.to_be_bytes());
            }
            Received::Untouched(_) => assert_eq!(received, packet, "it goes up as it came"),
        }
        outcome
    }

    fn open(&mut self, packet: &[u8]) -> Opened {
        match self.receive(packet) {
            Received::Opened(opened) => opened,
            Received::Untouched(why) => panic!("{why:?}"),
        }
    }
}

const SUITES: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];
