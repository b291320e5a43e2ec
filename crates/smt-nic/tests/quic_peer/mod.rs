// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer whose packets carry their number, for tests of the QUIC engine.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "not every test uses all of it")]

use smt_nic::quic::{
    Batch, ConnectionId, ConnectionKeys, Handle, HeaderProtectionKey, PhaseKey, QuicConfig,
    QuicEngine, Suite,
};

/// An engine for ids of 8 bytes.
pub(crate) fn engine(connections_max: u32) -> QuicEngine {
    QuicEngine::new(&QuicConfig {
        connections_max,
        id_places: 4 * connections_max as usize + 16,
        id_length: 8,
        hash_key: [5; 16],
    })
    .unwrap()
}

/// The key of a phase: any bytes that no other phase has.
pub(crate) fn key_of(generation: u64) -> PhaseKey {
    let byte = 1 + generation as u8;
    PhaseKey::new(Suite::Aes128Gcm, &[byte; 16], [byte; 12]).unwrap()
}

/// Keys of a connection whose two sides have the same ones.
pub(crate) fn keys() -> ConnectionKeys {
    let header = HeaderProtectionKey::new(Suite::Aes128Gcm, &[200; 16]).unwrap();
    ConnectionKeys {
        receive: key_of(0),
        receive_next: None,
        receive_header: header.clone(),
        transmit: key_of(0),
        transmit_header: header,
        generation: 0,
        largest: None,
        sealed: 0,
    }
}

/// An id by one byte.
pub(crate) fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).unwrap()
}

/// The other side.
pub(crate) struct Peer {
    engine: QuicEngine,
    connection: Handle,
}

impl Peer {
    /// Seals by the keys of a phase.
    pub(crate) fn new(generation: u64) -> Self {
        let mut engine = engine(1);
        let connection = engine
            .add(&ConnectionKeys { transmit: key_of(generation), generation, ..keys() })
            .unwrap();
        Self { engine, connection }
    }

    /// A packet of this number to this id.
    pub(crate) fn seal(&mut self, number: u64, generation: u64, id: &ConnectionId) -> Vec<u8> {
        let first = 0x43 | if generation % 2 == 1 { 0x04 } else { 0 };
        let low = (number as u32).to_be_bytes();
        let frames = number.to_be_bytes();
        let mut packet = [&[first][..], id.bytes(), &low, &frames, &[0; 16]].concat();
        let stride = packet.len();
        let mut batch =
            Batch { packets: &mut packet, stride, id_length: id.bytes().len(), numbers: &[number] };
        self.engine.seal(self.connection, &mut batch).unwrap();
        packet
    }
}
