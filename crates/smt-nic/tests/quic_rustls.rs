// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The engine beside rustls: what one seals the other opens, byte for byte.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic;
use smt_nic::quic::{
    Batch, ConnectionId, ConnectionKeys, Freshness, Handle, HeaderProtectionKey, PhaseKey,
    QuicConfig, QuicEngine, Received, Suite,
};

const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
/// rustls takes keys of 32 bytes as they are. AES-128 is held to the vectors of RFC 9001.
const SUITES: [(Suite, SupportedCipherSuite); 2] = [
    (Suite::Aes256Gcm, cipher_suite::TLS13_AES_256_GCM_SHA384),
    (Suite::ChaCha20Poly1305, cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
];

struct Library {
    packet: Box<dyn quic::PacketKey>,
    header: Box<dyn quic::HeaderProtectionKey>,
}

fn both(suite: Suite, of_library: SupportedCipherSuite) -> (QuicEngine, Handle, Library) {
    let (key, iv, hp) = ([0x5a; 32], [0xc3; 12], [0x17; 32]);
    let algorithm = of_library.tls13().unwrap().quic.unwrap();
    let library = Library {
        packet: algorithm.packet_key(AeadKey::from(key), Iv::from(iv)),
        header: algorithm.header_protection_key(AeadKey::from(hp)),
    };
    let mut engine = QuicEngine::new(&QuicConfig {
        connections_max: 1,
        id_places: 8,
        id_length: 8,
        hash_key: [1; 16],
    })
    .unwrap();
    let (phase, header) =
        (PhaseKey::new(suite, &key, iv).unwrap(), HeaderProtectionKey::new(suite, &hp).unwrap());
    let connection = engine.add(&ConnectionKeys {
        receive: phase.clone(),
        receive_next: None,
        receive_header: header.clone(),
        transmit: phase,
        transmit_header: header,
        generation: 0,
        largest: None,
        sealed: 0,
    });
    let connection = connection.unwrap();
    let id = ConnectionId::new(&ID).unwrap();
    engine.add_id(connection, id).unwrap();
    (engine, connection, library)
}

/// A packet as a host builds it: header, frames, and room for a tag.
fn built(number: u64, number_bytes: usize, frames: usize) -> Vec<u8> {
    let low = &number.to_be_bytes()[8 - number_bytes..];
    let first = 0x40 | (number_bytes - 1) as u8;
    let body = vec![number as u8; frames];
    [&[first][..], &ID, low, &body, &[0; 16]].concat()
}

impl Library {
    fn seal(&self, number: u64, number_bytes: usize, frames: usize) -> Vec<u8> {
        let mut packet = built(number, number_bytes, frames);
        let (header, payload) = packet.split_at_mut(9 + number_bytes);
        let (body, tag) = payload.split_at_mut(frames);
        let made = self.packet.encrypt_in_place(number, header, body).unwrap();
        tag.copy_from_slice(made.as_ref());
        let (header, rest) = packet.split_at_mut(9);
        let (low, _) = rest.split_at_mut(number_bytes);
        let low_copy = low.to_vec();
        let sample = rest[4..20].to_vec();
        let mut low = low_copy;
        let first = &mut header[..1];
        self.header.encrypt_in_place(&sample, &mut first[0], &mut low).unwrap();
        rest[..number_bytes].copy_from_slice(&low);
        packet
    }
}

#[test]
fn both_seal_the_same_bytes_and_the_engine_opens_them() {
    for (suite, of_library) in SUITES {
        let (mut engine, connection, library) = both(suite, of_library);
        for number in 0..20_000_u64 {
            let number_bytes = 2 + (number % 3) as usize;
            let frames = 4 + (number as usize * 37) % 1_300;
            let sealed = library.seal(number, number_bytes, frames);
            let mut own = built(number, number_bytes, frames);
            let stride = own.len();
            let mut batch =
                Batch { packets: &mut own, stride, id_length: ID.len(), numbers: &[number] };
            engine.seal(connection, &mut batch).unwrap();
            assert_eq!(own, sealed, "{suite:?}, number {number}");
            let mut packet = sealed;
            let Received::Opened(opened) = engine.receive(&mut packet) else {
                panic!("{suite:?}: number {number} does not open");
            };
            assert_eq!((opened.number, opened.freshness), (number, Freshness::New));
            assert_eq!(packet[opened.payload], vec![number as u8; frames]);
        }
        assert_eq!(engine.counters().opened, 20_000);
    }
}
